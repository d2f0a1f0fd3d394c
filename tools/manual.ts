// Writes docs/cli.md from the program's table of commands; a test compares the two.
import { writeFileSync } from "node:fs";
import { commands } from "../src/cli/commands.ts";
import { manual } from "../src/cli/manual.ts";

writeFileSync(new URL("../docs/cli.md", import.meta.url), manual(commands));
