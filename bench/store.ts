import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "../src/host/open-store.ts";
import type { Store } from "../src/store/contract/store.ts";
import { startPostgres } from "../test/postgres/server.ts";
import { handover, leaseFigures } from "./leases.ts";
import { type RawWriter, rawPostgres, rawSqlite } from "./raw.ts";
import type { BenchOptions } from "./run.ts";
import { appendFor, median, runPool, say } from "./work.ts";

/**
 * Fenced group append against the raw batched insert: the same table with the same indexes, the same number and length
 * of journals, the same bodies, no fence, no promises. Rounds alternate, and each ratio is taken within its round: the
 * machine may be noisy, the neighbours in time are equally so.
 */
export async function benchStore(options: BenchOptions): Promise<object> {
  const figures: Record<string, object> = {};
  if (options.only !== "postgres") figures.sqlite = await onSqlite(options);
  if (options.only !== "sqlite") figures.postgres = await onPostgres(options);
  return figures;
}

async function onSqlite(options: BenchOptions): Promise<object> {
  const folder = await mkdtemp(join(tmpdir(), "tape-bench-"));
  try {
    const url = `sqlite:${join(folder, "ours.db")}`;
    const rawFile = join(folder, "raw.db");
    await (await openStore(`sqlite:${rawFile}`)).close(); // the same schema
    return await compare("sqlite", url, rawSqlite(rawFile), options);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function onPostgres(options: BenchOptions): Promise<object> {
  const server = await startPostgres({ major: 18, settings: {} });
  try {
    await (await openStore(`${server.url}?schema=raw`)).close();
    return await compare("postgres", server.url, await rawPostgres(server.url, "raw"), options);
  } finally {
    await server.stop();
  }
}

const writers = [1, 16, 128];
const rounds = 9;

async function compare(name: string, url: string, raw: RawWriter, options: BenchOptions): Promise<object> {
  const store = await openStore(url);
  const figures: Record<string, number> = {};
  try {
    for (const w of writers) {
      const sliceMs = (options.seconds * 1000) / rounds;
      const ours: number[] = [];
      const theirs: number[] = [];
      for (let round = 0; round < rounds + 1; round++) {
        const rawRate = await raw.run(w, sliceMs);
        const rate = await measureAppend(store, w, sliceMs, rawRate);
        if (round === 0) continue; // warm-up
        theirs.push(rawRate);
        ours.push(rate);
      }
      figures[`raw${w}`] = Math.round(median(theirs));
      figures[`append${w}`] = Math.round(median(ours));
      figures[`ratio${w}`] = round2(median(ours.map((rate, k) => rate / theirs[k]!)));
      say(
        `${name} ${w} writers: raw ${figures[`raw${w}`]}/s, fenced ${figures[`append${w}`]}/s, ratio ${figures[`ratio${w}`]}`,
      );
    }
    const leases = { ...(await leaseFigures(store)), ...(await handover(url)) };
    say(`${name} leases: ${JSON.stringify(leases)}`);
    return { ...figures, appendRatio: figures.ratio128, soloRatio: figures.ratio1, ...leases };
  } finally {
    await store.close();
    await raw.close();
  }
}

/** Runs are created beforehand, not timed; enough of them even if we are faster than raw. */
async function measureAppend(store: Store, w: number, ms: number, rawRate: number): Promise<number> {
  const pool = await runPool(store, Math.ceil((rawRate * ms * 1.5) / 1000 / 11) + 2 * w);
  return appendFor(store, pool, w, ms);
}

const round2 = (value: number): number => Math.round(value * 100) / 100;
