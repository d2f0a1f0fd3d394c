import type { Tool } from "../tool.ts";
import { operateTools } from "./operate.ts";
import { readTools } from "./read.ts";
import { writeTools } from "./write.ts";

/** Every tool, in the order in which `tools/list` shows those that a role permits. */
export const tools: readonly Tool[] = [...readTools, ...writeTools, ...operateTools];
