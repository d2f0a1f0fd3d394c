#!/usr/bin/env node
import { start } from "./start.js";

// What did not come to rest within its bound must not keep the process: everything was closed.
process.exit(await start("cli/reactors/main"));
