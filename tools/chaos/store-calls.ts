import { systemClock } from "../../src/base/clock.ts";
import { isTapeError } from "../../src/model/errors.ts";

/** Longer than any outage that is played here. */
const patienceMs = 90_000;

/** Whether the same call may succeed later: what was refused for good is not. */
function passes(error: unknown): boolean {
  return isTapeError(error) && (error.retry !== "no" || error.code === "TAPE_STORE_UNREACHABLE");
}

/** A store that faults are played on is busy, away or full at times; starts, signals and reads can be repeated. */
export async function persistently<T>(ask: () => Promise<T>, forMs = patienceMs): Promise<T> {
  const until = systemClock.mono() + forMs;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!passes(error) || systemClock.mono() > until) throw error;
      await systemClock.sleep(50);
    }
  }
}
