import { systemClock } from "../../src/base/clock.ts";
import { isTapeError } from "../../src/model/errors.ts";

/** Longer than any outage that is injected here. */
const patienceMs = 90_000;

/** Whether the same call may succeed later; a permanent error may not. */
function isTransient(error: unknown): boolean {
  return isTapeError(error) && (error.retry !== "no" || error.code === "TAPE_STORE_UNREACHABLE");
}

/** Repeats a call while the store is busy, unreachable or full. Starts, signals and reads can be repeated. */
export async function persistently<T>(call: () => Promise<T>, forMs = patienceMs): Promise<T> {
  const until = systemClock.mono() + forMs;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isTransient(error) || systemClock.mono() > until) throw error;
      await systemClock.sleep(50);
    }
  }
}
