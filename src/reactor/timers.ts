import { errorFields } from "../base/reason.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import type { RunDriver } from "../engine/run-driver.ts";
import { fireSchedules } from "./fire-schedules.ts";
import type { Reactor, ReactorCounts } from "./reactor.ts";

type TimerDeps = Pick<ReactorDeps, "store" | "log" | "random" | "tenant">;

/**
 * timers: fires due timers and schedules. Each firing is one conditional transaction: SET → FIRED plus the note, or the
 * next version of the schedule plus the run. It needs no lease: the condition is the fence. A crash before or after it
 * leaves a timer that is due or one that has fired, never something in between.
 *
 * A run resumes after its sleep in one of three ways:
 *
 *   fired      any process fires the timer and leaves a note; recovery claims the run, which replays and takes the note
 *   preloaded  recovery claims the run shortly before the timer falls due and replays it up to its wait; the note then
 *              finds it ready
 *   ended      the process that drives the run ends the sleep with one write of its own, without a note
 *              (`RunDriver.endSleep`); this is the fast path of a preloaded run
 *
 * All three leave the same result in the journal. The first needs no live process but one, so it is what recovery from
 * any crash relies on; the other two only save time.
 */
export function timers(deps: TimerDeps, runs?: Pick<RunDriver, "endSleep">): Reactor {
  return {
    name: "timers",
    onAgenda: true,
    batch: 1_000,
    async runOnce(limit) {
      // Neither may delay the other: each has the whole limit, and its failure does not abort the other.
      const [timed, scheduled] = await Promise.allSettled([fireTimers(deps, limit, runs), fireSchedules(deps, limit)]);
      if (timed.status === "rejected") throw timed.reason;
      if (scheduled.status === "rejected") throw scheduled.reason;
      return sumOf(timed.value, scheduled.value);
    },
  };
}

function sumOf(a: ReactorCounts, b: ReactorCounts): ReactorCounts {
  return {
    found: a.found + b.found,
    done: a.done + b.done,
    failed: a.failed + b.failed,
    lagMs: Math.max(a.lagMs, b.lagMs),
  };
}

async function fireTimers(deps: TimerDeps, limit: number, runs?: Pick<RunDriver, "endSleep">): Promise<ReactorCounts> {
  const { store, log, tenant } = deps;
  const due = await store.read.dueTimers(limit, tenant);
  const fire = async (timer: (typeof due)[number]): Promise<boolean> =>
    (await runs?.endSleep(timer)) || store.intake.fireTimer(timer.tenant, timer);
  let failed = 0;
  const fired = await Promise.all(
    due.map((timer) =>
      fire(timer).catch((error: unknown) => {
        failed++; // still SET, or fired and the response lost: the next poll finds out
        log("warn", "timers.fire_failed", { run: timer.run, pos: timer.pos, ...errorFields(error) });
        return false;
      }),
    ),
  );
  const lagMs = due.reduce((max, { lateMs }) => Math.max(max, lateMs), 0);
  return { found: due.length, done: fired.filter(Boolean).length, failed, lagMs };
}
