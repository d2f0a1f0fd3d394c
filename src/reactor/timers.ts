import type { Ground, Reactor } from "./reactor.ts";

/**
 * timers: each firing is one conditional transaction, SET → FIRED plus the note. No lease: the condition is the fence, and
 * a crash before or after it leaves a timer that is due or one that has fired, never something in between.
 */
export function timers(ground: Pick<Ground, "store" | "log">): Reactor {
  const { store, log } = ground;
  return {
    name: "timers",
    async runOnce(limit) {
      const due = await store.read.dueTimers(limit);
      let failed = 0;
      const fired = await Promise.all(
        due.map((timer) =>
          store.intake.fireTimer(timer).catch((error: unknown) => {
            failed++; // still SET, or fired and not told: the next look finds out
            log("warn", "timers.not_fired", { run: timer.run, pos: timer.pos, error: String(error) });
            return false;
          }),
        ),
      );
      const lagMs = due.reduce((most, { lateMs }) => Math.max(most, lateMs), 0);
      return { found: due.length, done: fired.filter(Boolean).length, failed, lagMs };
    },
  };
}
