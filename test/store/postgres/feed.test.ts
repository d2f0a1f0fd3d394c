import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { defaultLimits } from "../../../src/model/limits.ts";
import type { FeedRecord, Store } from "../../../src/store/contract/store.ts";
import { StampFeed } from "../../../src/store/sql/stamp-feed.ts";
import { claimant, heldRun, step, tenant } from "../../../testkit/conformance/frame.ts";
import { ownPostgres } from "../../postgres/own.ts";
import { fenced, type Scene, sceneOn, stepAt, until } from "./scene.ts";

const postgresUrl = ownPostgres(18);

/**
 * Transactions overlap, and the older one may commit last. Neither a sequence nor the transaction's number alone gives
 * an order in which nothing is missed; ours must hold the feed back until everything that could still come has come.
 */
let scene: Scene;
beforeAll(async () => {
  scene = await sceneOn(postgresUrl());
});
afterAll(() => scene.close());

const held = (store = scene.store) => heldRun(store, {}, claimant(undefined, { ttlMs: 60_000 }));
const label = ({ journal, seq }: { journal: number; seq: number }) => `${journal}.${seq}`;

interface FeedReading {
  readonly records: FeedRecord[];
  readonly cursor: string;
  readonly blockedBy: string | undefined;
}

/** Everything that the feed delivers from here, page by page. */
async function readOn(store: Store, from?: string, limit = 7): Promise<FeedReading> {
  const records: FeedRecord[] = [];
  let cursor = from;
  for (;;) {
    const page = await store.read.feed(cursor, limit);
    records.push(...page.records);
    cursor = page.cursor;
    if (page.records.length === 0) return { records, cursor, blockedBy: page.blockedBy };
  }
}

/**
 * Like readOn, but it waits: transactions of other databases on the same server, and so of other tests, hold the feed
 * back as well. Waits for as many records as are expected, and checks that no more come.
 */
async function readAll(store: Store, from: string | undefined, count: number, limit = 7): Promise<FeedRecord[]> {
  let all: FeedReading | undefined;
  await until(async () => {
    all = await readOn(store, from, limit);
    return all.records.length >= count;
  }, "the feed does not catch up");
  return all!.records;
}

/** The end of the feed, with nothing after it: everything is finished that is older than one more run. */
async function endOf(store: Store): Promise<string> {
  const last = await held(store);
  let end: FeedReading | undefined;
  await until(async () => {
    end = await readOn(store, end?.cursor, 500);
    return end.records.some(({ journal }) => journal === last.journal);
  }, "the feed does not come to rest");
  return end!.cursor;
}

function expectOrdered(records: readonly FeedRecord[]): void {
  const heads = new Map<string, number>();
  for (const { in: where, journal, seq } of records) {
    const key = `${where} ${journal}`;
    if (heads.has(key)) expect(seq).toBe(heads.get(key)! + 1);
    heads.set(key, seq);
  }
  expect(new Set(records.map((r) => `${r.in} ${label(r)}`)).size).toBe(records.length);
}

describe("an older transaction commits last", () => {
  it("[INV-10] holds the feed back, is named, and then everything is delivered once and in order", async () => {
    const { store } = scene;
    const [slow, fast] = await Promise.all([held(), held()]);
    const before = await endOf(store);
    const hand = await scene.hand();
    await hand.sql("begin");
    await hand.run("fence", fenced(slow.fence));
    await hand.run("record.append", stepAt(slow.fence, 2)); // has its number now, and does not commit
    for (let k = 0; k < 5; k++) await store.fenced.append(fast.fence, { after: 1 + k, records: [step(k)] });
    let during: FeedReading | undefined;
    await until(async () => {
      during = await readOn(store, before);
      expect(during.records.map(label)).toEqual([]);
      return during.blockedBy?.includes(`process ${hand.pid} `) === true; // unless an older one is blocking
    }, "the blocker is not named");
    const later = await held();
    expect((await readOn(store, before)).records).toEqual([]);
    await hand.sql("commit");
    const expected = [label({ journal: slow.journal, seq: 2 }), label({ journal: later.journal, seq: 1 })];
    for (let seq = 2; seq <= 6; seq++) expected.push(label({ journal: fast.journal, seq }));
    for (const cursor of [before, during!.cursor]) {
      const after = await readAll(store, cursor, expected.length, 2);
      expect(after.map(label).sort()).toEqual(expected.sort());
      expectOrdered(after);
    }
  });

  it("writes after a younger one in the same journal: the feed follows the order of the journal", async () => {
    const { store } = scene;
    const run = await held();
    const from = await endOf(store);
    const hand = await scene.hand();
    await hand.sql("begin");
    const { rows } = await hand.sql("select pg_current_xact_id()::text::bigint as xid"); // old, and idle for a while
    for (let k = 0; k < 3; k++) await store.fenced.append(run.fence, { after: 1 + k, records: [step(k)] });
    await hand.run("fence", fenced(run.fence));
    expect((await hand.run("record.append", stepAt(run.fence, 5))).count).toBe(1);
    expect((await readOn(store, from)).records).toEqual([]);
    await hand.sql("commit");
    await store.fenced.append(run.fence, { after: 5, records: [step(9)] });
    const records = await readAll(store, from, 5, 2);
    expect(records.map(({ seq }) => seq)).toEqual([2, 3, 4, 5, 6]);
    const stamps = await scene.admin.query("select stamp from tape.records where journal = $1 and seq = 5", [
      run.journal,
    ]);
    expect(Number(stamps.rows[0].stamp)).toBeGreaterThan(Number(rows[0].xid)); // raised to its predecessor's
  });

  it("holds the feed back only until it rolls back", async () => {
    const run = await held();
    const from = await endOf(scene.store);
    const hand = await scene.hand();
    await hand.sql("begin");
    await hand.run("record.append", stepAt(run.fence, 2));
    await scene.store.intake.signal(tenant, run.id, { name: "s", value: 1 });
    expect((await readOn(scene.store, from)).records).toEqual([]);
    await hand.sql("rollback");
    expect(await readAll(scene.store, from, 1)).toMatchObject([{ in: "inbox", journal: run.journal, seq: 1 }]);
  });
});

it("delivers 1000 records of four concurrent writers, each exactly once", async () => {
  const from = await endOf(scene.store);
  const stores = await Promise.all(Array.from({ length: 4 }, () => scene.open("?connections=3")));
  const expected = new Set<string>();
  const writers = stores.map(async (store, w) => {
    const runs = await Promise.all(Array.from({ length: 5 }, () => held(store)));
    for (const run of runs) expected.add(`journal ${label({ journal: run.journal, seq: 1 })}`);
    for (let k = 0; k < 24; k++) {
      await Promise.all(
        runs.map(async (run, r) => {
          // Some in groups, some in separate transactions with two records, which are open for longer.
          const after = run.head + k * 2;
          const records = [step(k), step(k)];
          if ((k + r + w) % 3 === 0) await store.fenced.append(run.fence, { after, records });
          else {
            await store.fenced.append(run.fence, { after, records: [step(k)] });
            await store.fenced.append(run.fence, { after: after + 1, records: [step(k)] });
          }
          for (const seq of [after + 1, after + 2]) expected.add(`journal ${label({ journal: run.journal, seq })}`);
        }),
      );
    }
  });
  // The reader may receive the last run before this test knows its number, so it compares all that it has received.
  let last: number | undefined;
  const reading = (async () => {
    const all: FeedRecord[] = [];
    for (let cursor = from; ; ) {
      const page = await scene.store.read.feed(cursor, 50);
      all.push(...page.records);
      cursor = page.cursor;
      const end = all.findIndex(({ journal }) => journal === last);
      if (end !== -1) return all.slice(0, end);
    }
  })();
  await Promise.all(writers);
  last = (await held()).journal;
  const delivered = await reading;
  expect(expected.size).toBe(4 * 5 * (1 + 48));
  expect(new Set(delivered.map((r) => `${r.in} ${label(r)}`))).toEqual(expected);
  expectOrdered(delivered);
});

describe("after a restore", () => {
  it("the feed continues from earlier cursors", async () => {
    const from = await endOf(scene.store);
    const { epoch } = await scene.store.claim.restored("a drill");
    expect(epoch).toBeGreaterThan(0);
    const run = await held();
    const records = await readAll(scene.store, from, 2);
    expect(records.map(({ kind }) => kind)).toEqual(["store.restored", "run.created"]);
    expect(records.at(-1)!.journal).toBe(run.journal);
  });

  it("in a cluster that counts from lower numbers, new records come after the old ones", async () => {
    const [stamp, ...place] = (await endOf(scene.store)).split(".");
    // As if the store had been written, and read to its end, in a cluster that had seen a million transactions more.
    await scene.admin.query("update tape.records set stamp = stamp + 1000000");
    const from = [Number(stamp) + 1_000_000, ...place].join(".");
    const restored = await scene.open();
    await restored.claim.restored("moved to a new cluster");
    const run = await held(restored);
    await restored.fenced.append(run.fence, { after: 1, records: [step(0)] });
    const records = await readAll(restored, from, 3);
    expect(records.map(({ kind }) => kind)).toEqual(["store.restored", "run.created", "step.done"]);
    const { rows } = await scene.admin.query("select count(*)::int as n from tape.records");
    expectOrdered(await readAll(restored, undefined, rows[0].n, 500));
  });

  it("concurrent with other writes, it does not let the feed pass open transactions", async () => {
    const { rows: before } = await scene.admin.query("select feed_offset from tape.meta");
    const run = await held();
    const hand = await scene.hand();
    await hand.sql("begin");
    await hand.sql("select pg_current_xact_id()"); // the restore's own number is lower than that of the next write
    await scene.store.fenced.append(run.fence, { after: 1, records: [step(0)] });
    await hand.run("meta.restored", {});
    await hand.sql("commit");
    expect((await scene.admin.query("select feed_offset from tape.meta")).rows).toEqual(before);
  });
});

it("an empty page names no transaction before it has held the feed back for a second", async () => {
  const hand = await scene.hand();
  let now = 0;
  const feed = new StampFeed((sql, params) => hand.run(sql, params), defaultLimits, {
    ...systemClock,
    mono: () => now,
  });
  for (const whose of [undefined, tenant]) {
    const page = async () => feed.page(await scene.store.read.frontier(), 10, whose);
    const open = await scene.hand();
    await open.sql("begin");
    await open.sql("select pg_current_xact_id()");
    await held(); // a younger transaction finishes
    await page();
    expect(feed.isHeldBack).toBe(false);
    now += 999;
    expect(feed.isHeldBack).toBe(false);
    now += 1;
    expect(feed.isHeldBack).toBe(true);
    await open.sql("rollback");
    await until(async () => {
      await page();
      return !feed.isHeldBack;
    }, "another transaction holds the feed back");
  }
});

it("health names the transaction that holds the feed back", async () => {
  expect(await scene.store.health()).toEqual({});
  const hand = await scene.hand();
  await hand.sql("begin");
  await hand.run("idempotency.claim", { tenant, key: "k", hash: "h" });
  await until(async () => (await scene.store.health()).feedBlockedBy !== undefined, "no transaction is named");
  expect((await scene.store.health()).feedBlockedBy).toContain(`process ${hand.pid}`);
  await hand.sql("rollback");
  expect(await scene.store.health()).toEqual({});
});
