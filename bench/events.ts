import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { functionSink } from "../src/events/sinks/function.ts";
import { openStore } from "../src/host/open-store.ts";
import { Tape } from "../src/host/tape.ts";
import { createRunner } from "../src/sdk/workflow.ts";
import type { Store } from "../src/store/contract/store.ts";
import { startPostgres } from "../test/postgres/server.ts";
import type { StoreKind } from "./events/site.ts";
import { median, runPool, say, stepRecord } from "./work.ts";

export interface RatioSizes {
  /** Records in the feed. */
  readonly records: number;
  readonly rounds: number;
}

export const usual: RatioSizes = { records: 100_000, rounds: 3 };
export const small: RatioSizes = { records: 4_000, rounds: 1 };

/** Records per second through a function sink ÷ bare pages of the feed, in the same process. */
export interface RatioFigures {
  readonly fanoutRatioSqlite: number | null;
  readonly fanoutRatioPostgres: number | null;
}

export async function measureRatios(sizes: RatioSizes, stores: readonly StoreKind[]): Promise<RatioFigures> {
  const folder = await mkdtemp(join(tmpdir(), "tape-events-"));
  try {
    const file = `sqlite:${join(folder, "feed.db")}`;
    const sqlite = stores.includes("sqlite") ? await ratio(file, sizes) : null;
    const postgres = stores.includes("postgres") ? await ratioOnPostgres(sizes) : null;
    return { fanoutRatioSqlite: sqlite, fanoutRatioPostgres: postgres };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function ratioOnPostgres(sizes: RatioSizes): Promise<number> {
  const server = await startPostgres({ major: 18, settings: {} });
  try {
    return await ratio(server.url, sizes);
  } finally {
    await server.stop();
  }
}

const tenant = "bench";
/** Records of one run besides the first. */
const perRun = 99;

async function ratio(url: string, { records, rounds }: RatioSizes): Promise<number> {
  const store = await openStore(url);
  try {
    const terms = await runPool(store, Math.ceil(records / (perRun + 1)));
    const steps = Array.from({ length: perRun }, () => stepRecord);
    for (const { fence } of terms) await store.fenced.append(fence, { after: 1, records: steps });
    const ratios: number[] = [];
    for (let k = 0; k < rounds; k++) {
      const bare = await barePages(store);
      const sent = await throughFanout(store, `round-${k}`, bare.records);
      ratios.push(sent / bare.perSecond);
      say(`${url.split(":")[0]}: bare ${Math.round(bare.perSecond)}/s, through a sink ${Math.round(sent)}/s`);
    }
    return median(ratios);
  } finally {
    await store.close();
  }
}

async function barePages(store: Store): Promise<{ readonly records: number; readonly perSecond: number }> {
  const started = performance.now();
  let records = 0;
  for (let cursor: string | undefined; ; ) {
    const page = await store.read.feed(cursor, undefined, tenant);
    records += page.records.length;
    ({ cursor } = page);
    if (page.records.length === 0 && page.more !== true) break;
  }
  return { records, perSecond: (records * 1_000) / (performance.now() - started) };
}

async function throughFanout(store: Store, name: string, expected: number): Promise<number> {
  const runner = createRunner({ workflows: [] });
  await using app = await Tape.open({ store, runner, tenant, work: false, report: false, log: "silent" });
  const all = Promise.withResolvers<void>();
  let received = 0;
  const sink = functionSink(
    (events) => {
      received += events.length;
      if (received >= expected) all.resolve();
      return undefined;
    },
    { events: 1_000 },
  );
  const started = performance.now();
  app.fanouts.start({ name, sink, from: "start", filter: { kinds: ["all"] } });
  await all.promise;
  return (received * 1_000) / (performance.now() - started);
}
