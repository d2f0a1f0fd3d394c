import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import pg from "pg";
import { systemRandom } from "../src/base/random.ts";
import { openStore } from "../src/host/open-store.ts";
import { Tape } from "../src/host/tape.ts";
import { createRunner } from "../src/sdk/workflow.ts";
import type { Store } from "../src/store/contract/store.ts";
import { startPostgres } from "../test/postgres/server.ts";
import { checkProjection } from "../testkit/projection.ts";
import { fill } from "./growth-fill.ts";
import type { BenchOptions } from "./run.ts";
import { stepsFor, ten } from "./ten.ts";
import { median, say } from "./work.ts";

/**
 * What a long history costs: ten-step runs, claims and takeovers on a store with no finished runs, a tenth of `--runs`,
 * and all of them. The three stores are filled first and measured in turn, round after round.
 *
 *   stepsRatio      steps a second ÷ those on the empty store
 *   claimRatio      time of a claim of fifty due runs ÷ the same on the empty store
 *   takeoverRatio   the same of fifty runs whose holder is dead
 */
export async function benchGrowth({ flags, seconds }: BenchOptions): Promise<object> {
  const { values } = parseArgs({
    args: [...flags],
    options: {
      runs: { type: "string" },
      only: { type: "string" },
      seconds: { type: "string" },
      json: { type: "boolean" },
    },
  });
  const maxRuns = Number(values.runs ?? 1_000_000);
  const levels = [0, Math.round(maxRuns / 10), maxRuns];
  const figures: Record<string, unknown> = { levels };
  if (values.only !== "postgres") figures.sqlite = await onSqlite(levels, seconds);
  if (values.only !== "sqlite") figures.postgres = await onPostgres(levels, seconds);
  return figures;
}

async function onSqlite(levels: readonly number[], seconds: number): Promise<object> {
  const folder = await mkdtemp(join(tmpdir(), "tape-growth-"));
  try {
    return await measure("sqlite", (level) => `sqlite:${join(folder, `${level}.db`)}`, levels, seconds);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function onPostgres(levels: readonly number[], seconds: number): Promise<object> {
  const server = await startPostgres({ major: 18, settings: {} });
  try {
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    for (const level of ["sample", ...levels]) await client.query(`create database grown_${level}`);
    await client.end();
    return await measure("postgres", (level) => server.url.replace(/postgres$/, `grown_${level}`), levels, seconds);
  } finally {
    await server.stop();
  }
}

const rounds = 5;
const batch = 50;
/** Longer than any transaction of a store may take, which a lease must be. */
const ttlMs = 6_000;

type Level = { readonly level: number; readonly store: Store; readonly app: Tape };
type Sample = { readonly steps: number; readonly claimMs: number; readonly takeoverMs: number };

async function measure(
  name: string,
  urlOf: (level: number | "sample") => string,
  levels: readonly number[],
  seconds: number,
): Promise<object> {
  await fill(urlOf("sample"), 100);
  const sample = await openStore(urlOf("sample"));
  const faults = await checkProjection(sample, ["default"]);
  await sample.close();
  if (faults.length > 0) throw new Error(`the filled rows are not what their records say: ${faults[0]}`);
  const opened: Level[] = [];
  for (const level of levels) {
    const started = performance.now();
    await fill(urlOf(level), level);
    const store = await openStore(urlOf(level));
    opened.push({
      level,
      store,
      app: await Tape.open({ store, runner: createRunner({ workflows: [ten] }), concurrency: 5_000 }),
    });
    say(`${name}: ${level} finished runs, filled in ${Math.round((performance.now() - started) / 1000)} s`);
  }
  const samples = new Map(levels.map((level) => [level, [] as Sample[]]));
  try {
    for (let round = 0; round <= rounds; round++)
      for (const { level, figures } of await sampleAll(turned(opened, round), (seconds * 1000) / rounds)) {
        if (round > 0) samples.get(level)!.push(figures); // the first one warms up
        const { steps, claimMs, takeoverMs } = figures;
        say(
          `${name} ${level}: ${Math.round(steps)} steps/s, claim ${claimMs.toFixed(1)} ms, takeover ${takeoverMs.toFixed(1)} ms`,
        );
      }
  } finally {
    for (const { app, store } of opened) {
      await app.close();
      await store.close();
    }
  }
  return report(levels, samples);
}

/** Each store comes first equally often, because the first one in a round is slower. */
const turned = (opened: readonly Level[], by: number): Level[] =>
  opened.map((_, k) => opened[(k + by) % opened.length]!);

/** One round: leases start to expire, steps and claims are measured meanwhile, then the takeovers. */
async function sampleAll(opened: readonly Level[], ms: number): Promise<{ level: number; figures: Sample }[]> {
  const dead = { owner: "dead", label: "dead", reactor: "grown", ttlMs };
  const dying = await Promise.all(
    opened.map(({ store }) => createFor(store, { ...dead, nonce: systemRandom.bits63() })),
  );
  const samples = [];
  for (const { level, app, store } of opened) {
    const steps = await stepsFor(app, 128, ms);
    await createFor(store, undefined);
    samples.push({ level, steps, claimMs: await claim(store, []) });
  }
  const full = [];
  for (const [k, { level, steps, claimMs }] of samples.entries()) {
    const { store } = opened[k]!;
    while (((await store.read.lease(tenant, { run: dying[k]! }))?.remainingMs ?? 0) > 0)
      await new Promise((resolve) => setTimeout(resolve, 50));
    full.push({ level, figures: { steps, claimMs, takeoverMs: await claim(store, ["grown"]) } });
  }
  return full;
}

/** A separate tenant, which the workers of this process do not serve. */
const tenant = "claimed";
let created = 0;

async function createFor(store: Store, first: Parameters<Store["intake"]["createRuns"]>[2]): Promise<string> {
  const specs = Array.from({ length: batch }, () => ({ id: `claimed-${++created}`, workflow: "w", input: 1 }));
  for (const verdict of await store.intake.createRuns(tenant, specs, first)) if (!verdict.ok) throw verdict.error;
  return specs.at(-1)!.id;
}

/** Milliseconds for one claim of the batch; ends the terms again, so that the next round finds none of these. */
async function claim(store: Store, staleOf: readonly string[]): Promise<number> {
  const claimant = { owner: "bench", label: "bench", reactor: "bench", ttlMs: 600_000 };
  const started = performance.now();
  const found = await store.claim.find({
    claimant,
    nextReactor: "recovery",
    staleOf,
    limit: batch,
    nonce: systemRandom.bits63(),
    tenant,
  });
  const ms = performance.now() - started;
  if (found.length !== batch) throw new Error(`${found.length} of ${batch} were claimed`);
  const ended = { kind: "run.ended", data: { status: "COMPLETED", outcome: null, notesTaken: 0 } } as const;
  await store.fenced.appendAll(found.map(({ fence, head }) => [fence, { after: head, records: [ended] }] as const));
  return ms;
}

function report(levels: readonly number[], samples: ReadonlyMap<number, readonly Sample[]>): object {
  const of = (level: number, pick: (sample: Sample) => number): number => median(samples.get(level)!.map(pick));
  const ratio = (level: number, pick: (sample: Sample) => number): number => {
    const empty = samples.get(levels[0]!)!;
    return Math.round(median(samples.get(level)!.map((sample, k) => pick(sample) / pick(empty[k]!))) * 1000) / 1000;
  };
  return Object.fromEntries(
    levels.map((level) => [
      level,
      {
        stepsPerSecond: Math.round(of(level, ({ steps }) => steps)),
        claimMs: Math.round(of(level, ({ claimMs }) => claimMs) * 10) / 10,
        takeoverMs: Math.round(of(level, ({ takeoverMs }) => takeoverMs) * 10) / 10,
        stepsRatio: ratio(level, ({ steps }) => steps),
        claimRatio: ratio(level, ({ claimMs }) => claimMs),
        takeoverRatio: ratio(level, ({ takeoverMs }) => takeoverMs),
      },
    ]),
  );
}
