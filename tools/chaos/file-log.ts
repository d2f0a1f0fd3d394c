import { appendFileSync } from "node:fs";
import { systemClock } from "../../src/base/clock.ts";
import { jsonLog, type Log } from "../../src/base/log.ts";

/** A log in that file. A full disk may not accept it either, which must not end the process. */
export function fileLog(file: string): Log {
  const write = (line: string): void => {
    try {
      appendFileSync(file, line);
    } catch {}
  };
  return jsonLog(write, systemClock.wall);
}
