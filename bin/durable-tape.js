#!/usr/bin/env node
import { start } from "./start.js";

process.exitCode = await start("cli/main");
