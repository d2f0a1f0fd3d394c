import { systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import { eventIdOf } from "../../src/events/event.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { percentile, runPool, say, stepRecord } from "../work.ts";
import { Child } from "./child.ts";
import { feedTenant } from "./feed.ts";
import type { LatencyMessage } from "./latency-process.ts";
import { type EventPart, rounded } from "./part.ts";

/** Pauses between writes: no poll of the fan-out can be in step with them. */
const pauseMs = { min: 20, range: 400 };

/**
 * From a commit to the call of a sink in another process, on PostgreSQL.
 *
 *   sinkLatencyP50, sinkLatencyP99    starts of runs, which send a hint with their commit
 *   stepLatencyP50, stepLatencyP99    steps, which send none: the fan-out polls
 */
export const latency: EventPart<{ readonly writes: number }> = {
  usual: { writes: 300 },
  small: { writes: 10 },
  figures: ["sinkLatencyP50", "sinkLatencyP99", "stepLatencyP50", "stepLatencyP99"],
  async measure(site, { writes }) {
    if (!site.stores.includes("postgres")) return {};
    const url = await site.store("postgres");
    const store = await openStore(url);
    const calledAt = new Map<string, number>();
    let called = (): void => {};
    const child = new Child<LatencyMessage>("latency-process.ts", [url, "all"], (message) => {
      if (message.say !== "called") return false;
      for (const id of message.ids) calledAt.set(id, calledAt.get(id) ?? message.at);
      called();
      return true;
    });
    try {
      await child.receive("ready");
      const terms = await runPool(store, writes);
      const committedAt = { starts: new Map<string, number>(), steps: new Map<string, number>() };
      for (let k = 0; k < writes; k++) {
        await pause();
        const id = `started-${k}`;
        await store.intake.createRuns(feedTenant, [{ id, workflow: "w", input: 1 }]);
        const startedAt = systemClock.mono();
        await pause();
        const { fence } = terms[k]!;
        await store.fenced.append(fence, { after: 1, records: [stepRecord] });
        const steppedAt = systemClock.mono();
        committedAt.starts.set((await idsOf(store, { run: id }))[0]!, startedAt);
        committedAt.steps.set((await idsOf(store, { journal: fence.journal }))[1]!, steppedAt);
      }
      const wanted = [...committedAt.starts.keys(), ...committedAt.steps.keys()];
      while (!wanted.every((id) => calledAt.has(id))) {
        await new Promise<void>((resolve) => {
          called = resolve;
        });
      }
      const late = (of: ReadonlyMap<string, number>): number[] =>
        [...of].map(([id, at]) => Math.max(0, calledAt.get(id)! - at)); // the sink may be faster than the response
      const [starts, steps] = [late(committedAt.starts), late(committedAt.steps)];
      const figures = {
        sinkLatencyP50: rounded(percentile(starts, 0.5), 1),
        sinkLatencyP99: rounded(percentile(starts, 0.99), 1),
        stepLatencyP50: rounded(percentile(steps, 0.5), 1),
        stepLatencyP99: rounded(percentile(steps, 0.99), 1),
      };
      say(`commit → sink: ${JSON.stringify(figures)}`);
      return figures;
    } finally {
      await child.kill();
      await store.close();
    }
  },
};

const pause = (): Promise<void> => systemClock.sleep(pauseMs.min + systemRandom.int(pauseMs.range));

async function idsOf(store: Store, target: { readonly run: string } | { readonly journal: number }): Promise<string[]> {
  const lease = await store.read.lease(feedTenant, target);
  const records = await store.read.journal(feedTenant, target);
  return records.map((record) => eventIdOf({ ...record, journal: lease!.journal, in: "journal" }));
}
