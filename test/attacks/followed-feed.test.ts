import { describe, expect, inject, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { defaultLimits } from "../../src/model/limits.ts";
import type { FeedPage, Store } from "../../src/store/contract/store.ts";
import { FeedTail } from "../../src/store/feed-tail.ts";
import { type Row, runPlan } from "../../src/store/sql/plan.ts";
import { feedPlan } from "../../src/store/sql/plans/feed.ts";
import { StampFeed } from "../../src/store/sql/stamp-feed.ts";
import { Statements } from "../../src/store/sqlite/statements.ts";
import { parseCursor } from "../../src/store/validate/arguments.ts";
import { spec, tenant } from "../../testkit/conformance/frame.ts";
import { sceneOn } from "../store/postgres/scene.ts";
import { placeForFile } from "../store/sqlite/files.ts";

/** Tenants that write little or nothing follow the feed while another one writes much. */
const runs = 2_000;
const readers = 20;
const limits = { ...defaultLimits, feedScan: 500 };

/** The feed of a process, and its queries. */
interface WatchedFeed {
  readonly store: Store;
  readonly queries: { readonly sql: string; readonly params: Row; readonly rows: number }[];
  page(cursor: string | undefined, of: string): Promise<FeedPage>;
}

const stores: Readonly<Record<string, () => Promise<WatchedFeed>>> = {
  async SQLite() {
    const place = placeForFile();
    onTestFinished(() => place.close());
    const store = await place.open({ durability: "relaxed" });
    const statements = new Statements(place.raw());
    const times = { at: 0, now: 0, steady: 0 };
    const queries: WatchedFeed["queries"] = [];
    const tail = new FeedTail();
    const page = async (cursor: string | undefined, of: string): Promise<FeedPage> =>
      runPlan(feedPlan(parseCursor(cursor), 100, of, { limits, tail }), ({ sql, params }) => {
        const result = statements.perform(sql, params, times);
        queries.push({ sql, params, rows: result.rows.length });
        return result;
      });
    return { store, queries, page };
  },
  async PostgreSQL() {
    const scene = await sceneOn(inject("postgres18"));
    onTestFinished(() => scene.close());
    const hand = await scene.hand();
    const queries: WatchedFeed["queries"] = [];
    const ask: ConstructorParameters<typeof StampFeed>[0] = async (sql, params) => {
      const result = await hand.run(sql, params);
      queries.push({ sql, params, rows: result.rows.length });
      return result;
    };
    const feed = new StampFeed(ask, limits, { ...systemClock, mono: () => 0 });
    return { store: scene.store, queries, page: (cursor, of) => feed.page(cursor, 100, of) };
  },
};

/** Returns the journal of the last run. */
async function create(store: Store, of: string, count: number): Promise<number> {
  const specs = Array.from({ length: count }, () => spec());
  const journals = (await store.intake.createRuns(of, specs)).map((verdict) => (verdict.ok ? verdict.journal : 0));
  return journals.at(-1)!;
}

/** On PostgreSQL an older open transaction, also of another database, delays the feed. */
async function untilDelivered({ store }: WatchedFeed, journal: number): Promise<void> {
  let delivered = false;
  for (let cursor: string | undefined; !delivered; ) {
    const page = await store.read.feed(cursor);
    delivered = page.records.some((record) => record.journal === journal);
    cursor = page.cursor;
  }
}

/** Reads to the end. */
async function follow({ page }: WatchedFeed, of: string, from: string | undefined) {
  let cursor = from;
  const journals: number[] = [];
  for (;;) {
    const next = await page(cursor, of);
    journals.push(...next.records.map(({ journal }) => journal));
    cursor = next.cursor;
    if (next.more !== true) return { journals, cursor };
  }
}

describe.each(Object.entries(stores))("%s: the feeds of many tenants beside a busy one", (name, open) => {
  const quiet = Array.from({ length: readers }, (_, k) => `quiet-${k}`);

  it("are scanned once for all of them; a tenant without records reads none", async () => {
    const watched = await open();
    const cursors = new Map<string, string>();
    for (const of of quiet) cursors.set(of, (await follow(watched, of, undefined)).cursor);
    watched.queries.length = 0;
    let newest = 0;
    for (let written = 0; written < runs; written += 100) newest = await create(watched.store, tenant, 100);
    await untilDelivered(watched, newest);
    for (const of of quiet) expect((await follow(watched, of, cursors.get(of))).journals).toEqual([]);
    const queriesOf = (sql: string) => watched.queries.filter((one) => one.sql === sql);
    expect(queriesOf("feed.page")).toEqual([]);
    // Each part is scanned once; the other readers only check for records after it.
    // On PostgreSQL one row is the position.
    const found = queriesOf("feed.tenants").filter(({ rows }) => rows > (name === "SQLite" ? 0 : 1));
    expect(new Set(found.map(({ params }) => params.after)).size).toBe(found.length);
    expect(found.length).toBeLessThanOrEqual(2 * (runs / limits.feedScan) + 1);
  });

  it("deliver a tenant's own records exactly once and skip the rest", async () => {
    const watched = await open();
    const [of] = quiet;
    const { cursor } = await follow(watched, of!, undefined);
    const mine: number[] = [];
    for (let k = 0; k < 3; k++) {
      await create(watched.store, tenant, 400);
      mine.push(await create(watched.store, of!, 1));
    }
    await untilDelivered(watched, await create(watched.store, tenant, 400));
    watched.queries.length = 0;
    const { journals, cursor: end } = await follow(watched, of!, cursor);
    expect(journals).toEqual(mine);
    expect(watched.queries.filter(({ sql }) => sql === "feed.page").length).toBeLessThanOrEqual(mine.length + 2);
    expect((await follow(watched, of!, end)).journals).toEqual([]);
    // An old cursor returns the same records again, inside and outside of the cache.
    expect((await follow(watched, of!, cursor)).journals).toEqual(mine);
    expect((await follow(watched, of!, undefined)).journals).toEqual(mine);
  });

  it("tolerate a cursor beyond the end, forged or from before a restore", async () => {
    const watched = await open();
    const { cursor } = await follow(watched, "globex", undefined);
    const far = cursor.includes(".") ? "9007199254740000.1.1" : "999999999999999";
    expect((await follow(watched, "stranger", far)).journals).toEqual([]);
    const mine = await create(watched.store, "globex", 1);
    await untilDelivered(watched, await create(watched.store, tenant, 10));
    expect((await follow(watched, "globex", cursor)).journals).toEqual([mine]);
  });
});
