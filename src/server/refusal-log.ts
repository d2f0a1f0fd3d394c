import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { Bucket } from "./bucket.ts";

/** Lines a second about strangers: enough to see that somebody tries, too few to fill a disk. */
const strangersPerSecond = 5;
const strangersBurst = 100;

/** One line for each refused call; of strangers' only some, and the next one says how many were left out. */
export function refusalLog(
  log: Log,
  clock: Clock,
): (stranger: boolean, about: Readonly<Record<string, unknown>>) => void {
  const strangers = new Bucket(strangersPerSecond, strangersBurst, clock);
  let unlogged = 0;
  return (stranger, about) => {
    if (!stranger) {
      log("info", "server.refused", about);
      return;
    }
    if (!strangers.tryTake()) {
      unlogged++;
      return;
    }
    log("info", "server.refused", unlogged === 0 ? about : { ...about, unlogged });
    unlogged = 0;
  };
}
