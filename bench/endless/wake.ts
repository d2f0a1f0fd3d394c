import { setTimeout as pause } from "node:timers/promises";
import { createRunner, gate, Tape, workflow } from "../../src/exports/index.ts";
import { median, say } from "../work.ts";
import { type EndlessPart, type Figures, heapMb, rounded } from "./part.ts";
import type { EndlessSite, StoreKind } from "./site.ts";

export interface WakeSizes {
  /** Loop iterations of the one run, by store. PostgreSQL gets fewer, because each append is a round trip. */
  readonly iterations: Readonly<Record<StoreKind, number>>;
  /** Iterations of the first measurement. The last one finds a generation of the same length. */
  readonly short: number;
  readonly rounds: number;
}

interface LoopState {
  readonly done: number;
  readonly short: number;
  readonly total: number;
  readonly rounds: number;
}

/** Iterations that are requested at once: their records share appends. */
const width = 100;
const go = gate<number>("go");
let live = (): void => {};

/** Continues as new whenever its journal is long; at two places it parks and is woken several times. */
const loop = workflow("loop", async (tape, state: LoopState) => {
  const { short, total, rounds } = state;
  for (let { done } = state; done < total; ) {
    await Promise.all(Array.from({ length: width }, (_, k) => tape.step("work", () => done + k)));
    done += width;
    for (let round = 0; round < rounds && (done === short || done === total); round++) {
      await tape.gate(go);
      await tape.step("live", () => live());
    }
    if (tape.journal.long) return tape.continueAsNew({ ...state, done });
  }
  return "over";
});

/**
 * One run with a million loop iterations: from its signal until its code is live again, at the end ÷ after the first
 * thousand, and the heap at both. The run is parked each time, so a wake-up is a claim and a replay.
 */
export const wake: EndlessPart<WakeSizes> = {
  usual: { iterations: { sqlite: 1_000_000, postgres: 100_000 }, short: 1_000, rounds: 15 },
  small: { iterations: { sqlite: 20_000, postgres: 10_000 }, short: 1_000, rounds: 3 },
  figures: ["", "Postgres"].flatMap((store) =>
    ["wakeRatio", "wakeShortMs", "wakeLongMs", "wakeShortHeapMb", "wakeLongHeapMb"].map((name) => `${name}${store}`),
  ),
  async measure(site, sizes) {
    const figures: Record<string, number | null> = {};
    for (const kind of site.stores) Object.assign(figures, await measureStore(site, kind, sizes));
    return figures;
  },
};

async function measureStore(site: EndlessSite, kind: StoreKind, sizes: WakeSizes): Promise<Figures> {
  const { short, rounds } = sizes;
  // The last generation has as many iterations as the first had when it was measured.
  const total = sizes.iterations[kind] + short;
  const runner = createRunner({ workflows: [loop] });
  await using app = await Tape.open({ store: await site.store(kind), runner, log: "silent" });
  const run = await app.start(loop, { done: 0, short, total, rounds }, { id: "endless" });
  const wakeUp = async (): Promise<{ readonly ms: number; readonly heap: number }> => {
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      while ((await app.runs.get(run.id))?.status !== "WAITING") await pause(5);
      const woken = new Promise<void>((resolve) => {
        live = resolve;
      });
      const sent = performance.now();
      await app.signal(run.id, go, round);
      await woken;
      times.push(performance.now() - sent);
    }
    return { ms: median(times), heap: heapMb() };
  };
  const first = await wakeUp();
  const started = performance.now();
  const last = await wakeUp();
  await run.result();
  say(`${kind}: ${total} iterations in ${Math.round((performance.now() - started) / 1_000)} s`);
  const suffix = kind === "sqlite" ? "" : "Postgres";
  const found = {
    wakeRatio: last.ms / first.ms,
    ...{ wakeShortMs: first.ms, wakeLongMs: last.ms },
    ...{ wakeShortHeapMb: first.heap, wakeLongHeapMb: last.heap },
  };
  return Object.fromEntries(Object.entries(found).map(([name, value]) => [`${name}${suffix}`, rounded(value)]));
}
