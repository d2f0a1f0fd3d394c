import type { Command } from "./command.ts";
import { config } from "./commands/config.ts";
import { demos } from "./commands/demo.ts";

/** Everything that the program can do, in the order in which --help shows it. */
export const commands: readonly Command[] = [...demos, config];
