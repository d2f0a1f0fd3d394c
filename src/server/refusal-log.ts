import type { Clock } from "../base/clock.ts";
import type { Log, LogLevel } from "../base/log.ts";
import { Bucket } from "./bucket.ts";

/** Lines a second of each sparing kind: enough to see what happens, too few to fill a disk. */
const linesPerSecond = 5;
const linesBurst = 100;

/** Whose refusal it is: a known caller's own, a stranger's, or the store's, which then refuses everything. */
export type RefusalKind = "caller" | "stranger" | "store";

/** One line for each call that is refused to a known caller; of the others some, with how many were left out. */
export function refusalLog(
  log: Log,
  clock: Clock,
): (kind: RefusalKind, about: Readonly<Record<string, unknown>>) => void {
  const sparing = (level: LogLevel) => {
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
  const say = {
    caller: (about: Readonly<Record<string, unknown>>) => log("info", "server.refused", about),
    stranger: sparing("info"),
    store: sparing("warn"),
  };
  return (kind, about) => say[kind](about);
}
