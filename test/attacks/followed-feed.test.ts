import { describe, expect, inject, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { defaultLimits } from "../../src/model/limits.ts";
import type { FeedPage, Store } from "../../src/store/contract/store.ts";
import { FeedTail } from "../../src/store/feed-tail.ts";
import { PostgresFeed } from "../../src/store/postgres/feed.ts";
import { type Row, runPlan } from "../../src/store/sql/plan.ts";
import { feedPlan } from "../../src/store/sql/plans/feed.ts";
import { Statements } from "../../src/store/sqlite/statements.ts";
import { parseCursor } from "../../src/store/validate/arguments.ts";
import { spec, tenant } from "../../testkit/conformance/frame.ts";
import { sceneOn } from "../store/postgres/scene.ts";
import { placeForFile } from "../store/sqlite/files.ts";

/** Tenants that write nothing or little follow the feed beside one that writes much. */
const runs = 2_000;
const readers = 20;
const limits = { ...defaultLimits, feedScan: 500 };

/** The feed of a process, and what it asked the database for. */
interface Watched {
  readonly store: Store;
  readonly asked: { readonly sql: string; readonly params: Row; readonly rows: number }[];
  page(cursor: string | undefined, of: string): Promise<FeedPage>;
}

const stores: Readonly<Record<string, () => Promise<Watched>>> = {
  async SQLite() {
    const place = placeForFile();
    onTestFinished(() => place.close());
    const store = await place.open({ durability: "relaxed" });
    const statements = new Statements(place.raw());
    const times = { at: 0, now: 0, steady: 0 };
    const asked: Watched["asked"] = [];
    const tail = new FeedTail();
    const page = async (cursor: string | undefined, of: string): Promise<FeedPage> =>
      runPlan(feedPlan(parseCursor(cursor), 100, of, { limits, tail }), ({ sql, params }) => {
        const answer = statements.perform(sql, params, times);
        asked.push({ sql, params, rows: answer.rows.length });
        return answer;
      });
    return { store, asked, page };
  },
  async PostgreSQL() {
    const scene = await sceneOn(inject("postgres18"));
    onTestFinished(() => scene.close());
    const hand = await scene.hand();
    const asked: Watched["asked"] = [];
    const ask: ConstructorParameters<typeof PostgresFeed>[0] = async (sql, params) => {
      const answer = await hand.run(sql, params);
      asked.push({ sql, params, rows: answer.rows.length });
      return answer;
    };
    const feed = new PostgresFeed(ask, limits, { ...systemClock, mono: () => 0 });
    return { store: scene.store, asked, page: (cursor, of) => feed.page(cursor, 100, of) };
  },
};

/** The journal of the last one. */
async function create(store: Store, of: string, count: number): Promise<number> {
  const specs = Array.from({ length: count }, () => spec());
  const journals = (await store.intake.createRuns(of, specs)).map((verdict) => (verdict.ok ? verdict.journal : 0));
  return journals.at(-1)!;
}

/** On PostgreSQL an older transaction, also of another database, holds the feed back for as long as it is open. */
async function untilTold({ store }: Watched, journal: number): Promise<void> {
  let told = false;
  for (let cursor: string | undefined; !told; ) {
    const page = await store.read.feed(cursor);
    told = page.records.some((record) => record.journal === journal);
    cursor = page.cursor;
  }
}

/** On until there is nothing more. */
async function follow({ page }: Watched, of: string, from: string | undefined) {
  let cursor = from;
  const journals: number[] = [];
  for (;;) {
    const next = await page(cursor, of);
    journals.push(...next.records.map(({ journal }) => journal));
    cursor = next.cursor;
    if (next.more !== true) return { journals, cursor };
  }
}

describe.each(Object.entries(stores))("%s: the feed of many beside one that writes much", (name, open) => {
  const quiet = Array.from({ length: readers }, (_, k) => `quiet-${k}`);

  it("is looked through once for all of them, and those who wrote nothing read no record", async () => {
    const watched = await open();
    const cursors = new Map<string, string>();
    for (const of of quiet) cursors.set(of, (await follow(watched, of, undefined)).cursor);
    watched.asked.length = 0;
    let newest = 0;
    for (let written = 0; written < runs; written += 100) newest = await create(watched.store, tenant, 100);
    await untilTold(watched, newest);
    for (const of of quiet) expect((await follow(watched, of, cursors.get(of))).journals).toEqual([]);
    const asked = (sql: string) => watched.asked.filter((one) => one.sql === sql);
    expect(asked("feed.page")).toEqual([]);
    // Each part was looked at once, whoever came first; the others asked whether there was anything behind it.
    const found = asked("feed.tenants").filter(({ rows }) => rows > (name === "SQLite" ? 0 : 1)); // one says how far
    expect(new Set(found.map(({ params }) => params.after)).size).toBe(found.length);
    expect(found.length).toBeLessThanOrEqual(2 * (runs / limits.feedScan) + 1);
  });

  it("one that wrote a little reads that, exactly and once, and passes over the rest", async () => {
    const watched = await open();
    const [of] = quiet;
    const { cursor } = await follow(watched, of!, undefined);
    const mine: number[] = [];
    for (let k = 0; k < 3; k++) {
      await create(watched.store, tenant, 400);
      mine.push(await create(watched.store, of!, 1));
    }
    await untilTold(watched, await create(watched.store, tenant, 400));
    watched.asked.length = 0;
    const { journals, cursor: end } = await follow(watched, of!, cursor);
    expect(journals).toEqual(mine);
    expect(watched.asked.filter(({ sql }) => sql === "feed.page").length).toBeLessThanOrEqual(mine.length + 2);
    expect((await follow(watched, of!, end)).journals).toEqual([]);
    // An old cursor tells the same again, within what is remembered and before it.
    expect((await follow(watched, of!, cursor)).journals).toEqual(mine);
    expect((await follow(watched, of!, undefined)).journals).toEqual(mine);
  });

  it("a cursor that lies behind everything, made up or of a store that was put back, spoils nobody's", async () => {
    const watched = await open();
    const { cursor } = await follow(watched, "globex", undefined);
    const far = cursor.includes(".") ? "9007199254740000.1.1" : "999999999999999";
    expect((await follow(watched, "stranger", far)).journals).toEqual([]);
    const mine = await create(watched.store, "globex", 1);
    await untilTold(watched, await create(watched.store, tenant, 10));
    expect((await follow(watched, "globex", cursor)).journals).toEqual([mine]);
  });
});
