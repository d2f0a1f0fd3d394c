#!/usr/bin/env node
import { start } from "./start.js";

// Work that did not drain in time must not keep the process alive: everything is closed.
process.exit(await start("cli/reactors/main"));
