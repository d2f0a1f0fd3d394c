import { systemClock } from "../../src/base/clock.ts";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { fill } from "../growth-fill.ts";
import { median, say } from "../work.ts";
import { type EventPart, rounded, worst } from "./part.ts";
import type { EventSite, StoreKind } from "./site.ts";

/** Two stores of one kind: one without runs, one with many of another tenant. */
export interface FilledStores {
  readonly empty: string;
  readonly full: string;
}

export interface FeedPages {
  readonly feedPageRatio: number;
  readonly emptyMs: number;
  readonly fullMs: number;
  readonly pagesToEnd: number;
}

export interface CensusTimes {
  readonly censusMs: number;
  readonly scrapeMs: number;
  readonly censusesIn15s: number;
}

type LargeStoreTimes = FeedPages & CensusTimes;

const rounds = 200;
/** It writes nothing; every run belongs to the tenant "default". */
const idle = "idle";

/** Reads the feed of the idle tenant to its end. */
async function endOfFeed(store: Store): Promise<{ cursor: string; pages: number }> {
  let cursor = "";
  for (let pages = 1; ; pages++) {
    const page = await store.read.feed(cursor === "" ? undefined : cursor, undefined, idle);
    cursor = page.cursor;
    if (page.more !== true) return { cursor, pages };
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/**
 * The time of a page of the feed for a tenant without records, at the feed's end, on both stores in turn.
 *
 *   feedPageRatio   median time on the full store ÷ on the empty one
 */
export async function feedPages({ empty, full }: FilledStores): Promise<FeedPages> {
  const stores = await Promise.all([openStore(empty), openStore(full)]);
  try {
    const ends = [await endOfFeed(stores[0]!), await endOfFeed(stores[1]!)];
    const times: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      for (const k of [0, 1] as const) {
        times[k].push(await timed(() => stores[k]!.read.feed(ends[k]!.cursor, undefined, idle)));
      }
    }
    const [emptyMs, fullMs] = [median(times[0]), median(times[1])];
    return { feedPageRatio: fullMs / emptyMs, emptyMs, fullMs, pagesToEnd: ends[1]!.pages };
  } finally {
    for (const store of stores) await store.close();
  }
}

/**
 * The time of a scrape of `/metrics` on the full store, with and without a census, and how many censuses 15 s of
 * scrapes need.
 */
export async function census({ full }: FilledStores): Promise<CensusTimes> {
  const opened = await openStore(full);
  let queries = 0;
  const read: Store["read"] = {
    ...opened.read,
    census: (tenant) => {
      queries++;
      return opened.read.census(tenant);
    },
  };
  let now = 0; // moved by hand: 15 s of scrapes take no time
  const clock = { ...systemClock, mono: () => now };
  const runner = createRunner({ workflows: [] });
  const app = await Tape.open({ store: { ...opened, read }, runner, work: false, log: "silent", clock });
  try {
    const reads: number[] = [];
    const scrapes: number[] = [];
    for (let round = 0; round < rounds; round++) {
      now += 15_000;
      reads.push(await timed(() => app.metrics.text()));
      scrapes.push(await timed(() => app.metrics.text()));
    }
    const before = queries;
    now += 15_000;
    for (let k = 0; k < 15; k++, now += 999) await app.metrics.text();
    return { censusMs: median(reads), scrapeMs: median(scrapes), censusesIn15s: queries - before };
  } finally {
    await app.close();
    await opened.close();
  }
}

async function measureOn(site: EventSite, kind: StoreKind, runs: number): Promise<LargeStoreTimes> {
  const stores = { empty: await site.store(kind), full: await site.store(kind) };
  for (const url of Object.values(stores)) await (await openStore(url)).close();
  say(`${kind}: filling a store with ${runs} runs`);
  await fill(stores.full, runs);
  const times = { ...(await feedPages(stores)), ...(await census(stores)) };
  say(`${kind}: ${JSON.stringify(times)}`);
  return times;
}

/**
 * What a large store costs those who ask little of it; the worse of both stores.
 *
 *   quietTenantRatio     a page of the feed for a tenant without records ÷ the same on an empty store
 *   metricsMs            a scrape of `/metrics` that counts what is in the store
 *   metricsStatements    how often 15 s of scrapes count it
 */
export const largeStore: EventPart<{ readonly runs: number }> = {
  usual: { runs: 1_000_000 },
  small: { runs: 4_000 },
  figures: ["quietTenantRatio", "metricsMs", "metricsStatements"],
  async measure(site, { runs }) {
    const found: LargeStoreTimes[] = [];
    for (const kind of site.stores) found.push(await measureOn(site, kind, runs));
    return {
      quietTenantRatio: worst(...found.map(({ feedPageRatio }) => rounded(feedPageRatio))),
      metricsMs: worst(...found.map(({ censusMs }) => rounded(censusMs, 2))),
      metricsStatements: worst(...found.map(({ censusesIn15s }) => censusesIn15s)),
    };
  },
};
