import { readFileSync } from "node:fs";
import type { TapeEvent } from "../../src/events/event.ts";

/** An event of every kind, as receivers of this version of the schemas know them. */
export const goldenEvents = (): TapeEvent[] =>
  readFileSync(new URL("golden/events.jsonl", import.meta.url), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as TapeEvent);
