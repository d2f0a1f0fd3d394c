import { Tape } from "../../src/host/tape.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import { stepsFor, ten } from "../ten.ts";
import { median, say } from "../work.ts";
import { Child } from "./child.ts";
import { feedTenant } from "./feed.ts";
import type { LatencyMessage } from "./latency-process.ts";
import { type EventPart, type Figures, rounded } from "./part.ts";
import type { StoreKind } from "./site.ts";

export interface StepSizes {
  readonly rounds: number;
  readonly sliceMs: number;
}

/**
 * Steps a second while a sink in another process follows the feed with the default filter ÷ without it. Both take
 * turns on one store; the median of the rounds, and of both stores the worse.
 */
export const steps: EventPart<StepSizes> = {
  usual: { rounds: 7, sliceMs: 3_000 },
  small: { rounds: 1, sliceMs: 150 },
  figures: [
    "stepsWithSinkRatio1",
    "stepsWithSinkRatio128",
    ...["stepsWithSinkRatio1Sqlite", "stepsWithSinkRatio128Sqlite"],
    ...["stepsWithSinkRatio1Postgres", "stepsWithSinkRatio128Postgres"],
  ],
  async measure(site, sizes) {
    const figures: Record<string, number> = {};
    for (const kind of site.stores) {
      for (const [w, ratio] of await ratios(await site.store(kind), kind, sizes)) {
        figures[`stepsWithSinkRatio${w}${kind === "sqlite" ? "Sqlite" : "Postgres"}`] = ratio;
        figures[`stepsWithSinkRatio${w}`] = Math.min(figures[`stepsWithSinkRatio${w}`] ?? ratio, ratio);
      }
    }
    return figures satisfies Figures;
  },
};

async function ratios(url: string, kind: StoreKind, { rounds, sliceMs }: StepSizes): Promise<[number, number][]> {
  const runner = createRunner({ workflows: [ten] });
  await using app = await Tape.open({ store: url, runner, tenant: feedTenant, concurrency: 1_000, log: "silent" });
  const found: [number, number][] = [];
  for (const w of [1, 128]) {
    const shares: number[] = [];
    await stepsFor(app, w, sliceMs); // warm-up
    for (let round = 0; round < rounds; round++) {
      // Each half of a round is first in turn: what warms up or fills up favours neither.
      const [a, b] = round % 2 === 0 ? [await withSink(), await stepsFor(app, w, sliceMs)] : [];
      const [bare, followed] = b === undefined ? [await stepsFor(app, w, sliceMs), await withSink()] : [b, a!];
      shares.push(followed / bare);
      say(`${kind}, ${w} at a time: ${Math.round(bare)} steps/s, with a sink ${Math.round(followed)}`);

      async function withSink(): Promise<number> {
        const child = new Child<LatencyMessage>("latency-process.ts", [url, "outline"]);
        try {
          await child.receive("ready");
          return await stepsFor(app, w, sliceMs);
        } finally {
          await child.kill();
        }
      }
    }
    found.push([w, rounded(median(shares))]);
  }
  return found;
}
