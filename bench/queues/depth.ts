import { systemRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { execute } from "../peers/places.ts";
import type { QueueSystemName } from "../peers/queues/system.ts";
import { stepsFor, ten } from "../ten.ts";
import { median, say } from "../work.ts";
import { type PartResult, round3, worst } from "./figures.ts";
import { among, type QueuePlan } from "./plan.ts";
import type { Place, QueueProcess, Site } from "./site.ts";

const batch = 50;
const limits = { concurrency: batch, perKey: 5 };
const shallow = { runs: 1_000, keys: 10 };
const ours: readonly QueueSystemName[] = ["tape-postgres", "tape-sqlite"];

type Level = { readonly runs: number; readonly keys: number };
interface Depth {
  readonly shallowMs: number;
  readonly deepMs: number;
  readonly ratio: number;
  /** Steps a second of runs without a queue ÷ the same on the store with few queued runs. */
  readonly besideQueued: number;
  readonly beginsPerSecond: number;
}

/**
 * What a long backlog costs: one claim of fifty runs, through the store, from a queue with a limit and a limit per key.
 * Beside it begins a second of a worker on the long backlog, ours and those of DBOS.
 *
 *   depth   time of a claim with all runs waiting in all keys ÷ with 1,000 in 10
 */
export async function measureDepth(site: Site, plan: QueuePlan): Promise<PartResult> {
  const { beginsMs, ...deep } = plan.sizes.depth;
  const depths: Partial<Record<QueueSystemName, Depth>> = {};
  for (const system of among(plan, ours))
    await site.at(system, { limits }, (few) =>
      site.at(system, { limits }, async (many) => {
        const places = [await fill(few, shallow), await fill(many, deep)] as const;
        const { shallowMs, deepMs, ratio } = await compare(places, deep.claims * plan.rounds);
        const besideQueued = await unqueued(places, plan.rounds, beginsMs / 3);
        for (const { store } of places) await store.close();
        const { beginsPerSecond } = await places[1].worker.ask({ ask: "begins", ms: beginsMs });
        depths[system] = { shallowMs, deepMs, ratio, besideQueued, beginsPerSecond: round3(beginsPerSecond!) };
        say(`depth ${system}: ${JSON.stringify(depths[system])}`);
      }),
    );
  const dbos = among(plan, ["dbos"]).length > 0 ? await beginsOfDbos(site, deep, beginsMs) : undefined;
  const begins = (system: QueueSystemName): number | null =>
    dbos === undefined || depths[system] === undefined ? null : round3(depths[system].beginsPerSecond / dbos);
  return {
    figures: { depth: worst("max", [depths["tape-sqlite"]?.ratio ?? null, depths["tape-postgres"]?.ratio ?? null]) },
    beside: { ...depths, dbosBeginsPerSecond: dbos, beginsBesideDbos: begins("tape-postgres") },
  };
}

async function beginsOfDbos(site: Site, deep: Level, ms: number): Promise<number> {
  return site.at("dbos", { limits }, async (place) => {
    const worker = await place.start("worker");
    await worker.ask({ ask: "enqueue", jobs: [{ count: deep.runs, key: "key-", keys: deep.keys }] }, 600_000);
    const { beginsPerSecond } = await worker.ask({ ask: "begins", ms }, 300_000);
    say(`depth dbos: ${beginsPerSecond!.toFixed(1)} begins/s`);
    return round3(beginsPerSecond!);
  });
}

interface Backlog {
  readonly store: Store;
  readonly worker: QueueProcess;
  readonly keys: number;
}

async function fill(place: Place, { runs, keys }: Level): Promise<Backlog> {
  const worker = await place.start("worker");
  await worker.ask({ ask: "enqueue", jobs: [{ count: runs, key: "key-", keys }] }, 1_800_000);
  // What autovacuum does within its first minute.
  if (!place.url.startsWith("sqlite:")) await execute(place.url, "vacuum analyze");
  return { store: await openStore(place.url), worker, keys };
}

/** Claims in turn, after one of each that warms up; what was claimed is ended and replaced, so that the depth stays. */
async function compare(
  [few, many]: readonly [Backlog, Backlog],
  claims: number,
): Promise<Pick<Depth, "shallowMs" | "deepMs" | "ratio">> {
  const times: { readonly few: number; readonly many: number }[] = [];
  for (let k = 0; k <= claims; k++) {
    const [first, second] = k % 2 === 0 ? [few, many] : [many, few];
    const [one, other] = [await claim(first), await claim(second)];
    if (k > 0) times.push(k % 2 === 0 ? { few: one, many: other } : { few: other, many: one });
  }
  const [shallowMs, deepMs] = [median(times.map(({ few }) => few)), median(times.map(({ many }) => many))];
  return { shallowMs: round3(shallowMs), deepMs: round3(deepMs), ratio: round3(deepMs / shallowMs) };
}

/** Ten-step runs without a queue, 128 at a time, on both stores in turn. */
async function unqueued(places: readonly [Backlog, Backlog], rounds: number, ms: number): Promise<number> {
  const runner = createRunner({ workflows: [ten] });
  const apps = await Promise.all(places.map(({ store }) => Tape.open({ store, runner, concurrency: 5_000 })));
  const ratios: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const rates: number[] = [];
    for (const app of apps) rates.push(await stepsFor(app, 128, ms / 2));
    if (round > 0) ratios.push(rates[1]! / rates[0]!); // the first one warms up
  }
  for (const app of apps) await app.close();
  return round3(median(ratios));
}

async function claim({ store, worker, keys }: Backlog): Promise<number> {
  const started = performance.now();
  const found = await store.claim.find({
    claimant: { owner: "bench", label: "bench", reactor: "bench", ttlMs: 600_000 },
    nextReactor: "none",
    staleOf: [],
    limit: batch,
    nonce: systemRandom.bits63(),
    tenant: "default",
    workflows: ["job"],
    queues: [{ name: "bench", room: batch }],
  });
  const ms = performance.now() - started;
  if (found.length !== batch) throw new Error(`${found.length} of ${batch} were claimed`);
  const ended = { kind: "run.ended", data: { status: "COMPLETED", outcome: null, notesTaken: 0 } } as const;
  for (const verdict of await store.fenced.appendAll(
    found.map(({ fence, head }) => [fence, { after: head, records: [ended] }] as const),
  ))
    if (!verdict.ok) throw verdict.error;
  await worker.ask({ ask: "enqueue", jobs: [{ count: batch, key: "key-", keys }] });
  return ms;
}
