import { systemClock } from "../../src/base/clock.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { percentile, say } from "../work.ts";
import type { EventPart } from "./part.ts";

export interface TimerSizes {
  readonly timers: number;
  readonly inMs: number;
}

/**
 * Timers of a serverless app that are due at one moment, with alarms of NATS.
 *
 *   timersLateP99Ms    from that moment until the line after the sleep runs
 *   timersEarly        runs that continued before it
 *   alarmsFired        alarms that fired for them, from a second before the moment on
 */
export const timers: EventPart<TimerSizes> = {
  usual: { timers: 1_000, inMs: 30_000 },
  small: { timers: 10, inMs: 2_500 },
  figures: ["timersLateP50Ms", "timersLateP99Ms", "timersEarly", "alarmsFired"],
  async measure(site, { timers: count, inMs }) {
    const kind = site.stores.includes("postgres") ? "postgres" : "sqlite";
    const nats = await site.nats("timers", "default");
    if (nats === undefined) return {};
    const late: number[] = [];
    let due = Number.POSITIVE_INFINITY;
    const nap = workflow("nap", async (tape, at: number) => {
      await tape.sleepUntil(new Date(at));
      late.push(systemClock.wall() - at);
    });
    const runner = createRunner({ workflows: [nap] });
    try {
      const store = await site.store(kind);
      await using app = await Tape.open({ store, runner, serverless: { alarms: nats.alarms }, log: "warn" });
      due = systemClock.wall() + inMs;
      const all = Array.from({ length: count }, (_, k) => ({ input: due, id: `n${k}` }));
      await app.startAll(nap, all);
      await app.sweep(); // parks them all
      say(`${count} timers are set, ${due - systemClock.wall()} ms before they are due`);
      let fired = 0;
      const sweep = async (): Promise<void> => {
        if (systemClock.wall() >= due - 1_000) fired++;
        await app.sweep();
      };
      const sweeps = await nats.sweeps("default", { sweep });
      while (late.length < count) await systemClock.sleep(20);
      await sweeps.stop();
      const figures = {
        timersLateP50Ms: percentile(late, 0.5),
        timersLateP99Ms: percentile(late, 0.99),
        timersEarly: late.filter((ms) => ms < 0).length,
        alarmsFired: fired,
      };
      say(`${count} timers on ${kind}: ${JSON.stringify(figures)}`);
      return figures;
    } finally {
      await nats.close();
    }
  },
};
