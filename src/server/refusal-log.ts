import type { Clock } from "../base/clock.ts";
import type { Log, LogLevel } from "../base/log.ts";
import { Bucket } from "./bucket.ts";

/** Lines per second of each sampled kind: enough to see what happens, too few to fill a disk. */
const linesPerSecond = 5;
const linesBurst = 100;

/**
 * Whom the refusal concerns: a known caller, a caller without a credential, or the store, which then fails all calls.
 */
export type RefusalKind = "caller" | "stranger" | "store";

/** Logs one line for each refusal of a known caller, and a sample of the others with the number left out. */
export function refusalLog(
  log: Log,
  clock: Clock,
): (kind: RefusalKind, about: Readonly<Record<string, unknown>>) => void {
  const sampled = (level: LogLevel) => {
    const lines = new Bucket(linesPerSecond, linesBurst, clock);
    let unlogged = 0;
    return (about: Readonly<Record<string, unknown>>): void => {
      if (!lines.tryTake()) {
        unlogged++;
        return;
      }
      log(level, "server.refused", unlogged === 0 ? about : { ...about, unlogged });
      unlogged = 0;
    };
  };
  const logs = {
    caller: (about: Readonly<Record<string, unknown>>) => log("info", "server.refused", about),
    stranger: sampled("info"),
    store: sampled("warn"),
  };
  return (kind, about) => logs[kind](about);
}
