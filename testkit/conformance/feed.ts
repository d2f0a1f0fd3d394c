import { strict as assert } from "node:assert";
import { isStoreJournal } from "../../src/model/journal-numbers.ts";
import type { JournalRecord } from "../../src/model/records.ts";
import type { FeedRecord, Store } from "../../src/store/contract/store.ts";
import { bigintText, type Cases, record, refused, type StoreFixture, spec, step, tenant } from "./frame.ts";
import { armed, begin, confirmed, dispatched, ended, intent, settled, startChild } from "./holder.ts";

const line = (one: JournalRecord, inside: "journal" | "inbox"): string =>
  JSON.stringify([one.journal, inside, one.seq, one.token, one.at, one.kind, one.data], bigintText);

/**
 * Every record and note of these tenants, read journal by journal: the feed must deliver them, in any order of
 * journals.
 */
async function direct(store: Store, ...tenants: readonly string[]): Promise<string[]> {
  const lines: string[] = [];
  for (const whose of tenants) {
    for (const { journal } of await store.read.leases(whose)) {
      const notes = await store.read.journal(whose, { journal }, { inbox: true });
      lines.push(...(await store.read.journal(whose, { journal })).map((one) => line(one, "journal")));
      lines.push(...notes.map((one) => line({ ...one, journal }, "inbox")));
    }
  }
  return lines.sort();
}

/** Reads from a cursor until a page is empty. */
async function page(
  store: Store,
  size: number,
  from?: { cursor?: string | undefined; tenant?: string },
): Promise<{ records: FeedRecord[]; cursor: string | undefined }> {
  const records: FeedRecord[] = [];
  let cursor = from?.cursor;
  for (;;) {
    const next = await store.read.feed(cursor, size, from?.tenant);
    assert.ok(next.records.length <= size);
    cursor = next.cursor;
    if (next.records.length === 0) return { records, cursor };
    records.push(...next.records);
  }
}

const lines = (records: readonly FeedRecord[]): string[] => records.map((one) => line(one, one.in)).sort();
/** The store's own journal belongs to no tenant. */
const ofTenants = (records: readonly FeedRecord[]): FeedRecord[] =>
  records.filter(({ journal }) => !isStoreJournal(journal));

function assertOrdered(records: readonly FeedRecord[]): void {
  const heads = new Map<string, number>();
  for (const { journal, in: inside, seq } of records) {
    const key = `${journal} ${inside}`;
    assert.equal(seq, (heads.get(key) ?? 0) + 1, `${key} is out of order`);
    heads.set(key, seq);
  }
}

/** Some records of every kind, in two tenants. */
async function busyStore(store: Store): Promise<void> {
  const root = await begin(store, { budget: { usd: 5 } });
  const child = await startChild(root, 0, `${root.id}/0`);
  await root.write(intent(1), dispatched(1), settled(1, "UNKNOWN"), intent(2, { dispatch: "outbox" }));
  await child.write(...confirmed(0), armed(0));
  await store.intake.signal(tenant, root.id, { name: "s", value: 1 });
  await store.intake.createRuns("globex", [spec(), spec()]);
  await child.write(ended("COMPLETED", { outcome: 1, parent: { journal: root.journal, pos: 0, id: child.id } }));
  await store.intake.cancel(tenant, root.id, { reason: "r" });
  const item = await store.claim.acquire(tenant, {
    target: { name: "sweeper" },
    claimant: { owner: "o", label: "l", reactor: "r", ttlMs: 60_000 },
    nonce: 5n,
    expect: "free",
  });
  assert.ok(item.ok);
}

/** Waits until the feed has caught up: open transactions may hold it back for a while. */
async function caughtUp({ store, elapse }: StoreFixture, ...tenants: readonly string[]): Promise<string[]> {
  const expected = await direct(store, ...tenants);
  for (let tries = 0; tries < 200; tries++) {
    const { records } = await page(store, 500);
    if (ofTenants(records).length >= expected.length) break;
    await elapse(10);
  }
  return expected;
}

/** The feed: every record of every journal, exactly once, in order within each. */
export const feed: Cases = ({ it }, fresh) => {
  it("[INV-10] delivers every record and note once, in journal order, for every page size", async () => {
    const fixture = fresh();
    const { store } = fixture;
    await busyStore(store);
    const expected = await caughtUp(fixture, tenant, "globex");
    assert.ok(expected.length > 20);
    for (const size of [1, 2, 3, 4, 5, 6, 7, 1_000]) {
      const { records } = await page(store, size);
      assertOrdered(records);
      assert.deepEqual(lines(ofTenants(records)), expected);
    }
  });

  it("resumes from any cursor, and returns the same records for an old cursor", async () => {
    const fixture = fresh();
    const { store } = fixture;
    await busyStore(store);
    await caughtUp(fixture, tenant, "globex");
    const whole = await page(store, 1_000);
    const texts = whole.records.map((one) => line(one, one.in));
    for (let k = 1; k < texts.length; k += 4) {
      const head = await store.read.feed(undefined, k);
      const rest = await page(store, 5, { cursor: head.cursor });
      assert.deepEqual(
        [...head.records, ...rest.records].map((one) => line(one, one.in)),
        texts,
      );
    }
    const { records, cursor } = await store.read.feed(whole.cursor, 10);
    assert.deepEqual(records, []);
    await store.intake.createRuns(tenant, [spec({ id: "later" })]);
    await caughtUp(fixture, tenant, "globex");
    for (const from of [whole.cursor, cursor]) {
      const later = await page(store, 10, { cursor: from });
      assert.deepEqual(
        later.records.map(({ kind }) => kind),
        ["run.created"],
      );
    }
  });

  it("returns one tenant's records when requested", async () => {
    const fixture = fresh();
    const { store } = fixture;
    await busyStore(store);
    await caughtUp(fixture, tenant, "globex");
    for (const whose of [tenant, "globex"]) {
      for (const size of [2, 500]) {
        const { records } = await page(store, size, { tenant: whose });
        assertOrdered(records);
        assert.deepEqual(lines(records), await direct(store, whose));
      }
    }
    assert.deepEqual((await page(store, 10, { tenant: "nobody" })).records, []);
  });

  it("[INV-10] misses nothing while several clients write", async () => {
    const fixture = fresh();
    const { store, elapse } = fixture;
    const clients = [store, await fixture.another(), await fixture.another()];
    const reader = await fixture.another();
    let writing = true;
    const writers = Promise.all(
      Array.from({ length: 9 }, async (_, k) => {
        const run = await begin(clients[k % 3]!);
        for (let pos = 0; pos < 12; pos++) {
          if (pos % 4 === 3) await run.write(intent(pos, { dispatch: "outbox" }), step(pos));
          else await run.write(step(pos));
          if (pos % 5 === k % 5) await clients[(k + 1) % 3]!.intake.signal(tenant, run.id, { name: "s", value: pos });
        }
        await run.write(record("notes.taken", { through: 1 }));
      }),
    ).then(() => {
      writing = false;
    });
    const seen: FeedRecord[] = [];
    let cursor: string | undefined;
    let pages = 0;
    const collect = async () => {
      const next = await reader.read.feed(cursor, 7);
      seen.push(...next.records);
      cursor = next.cursor;
      pages++;
      return next.records.length;
    };
    while (writing) {
      if ((await collect()) === 0) await elapse(1);
    }
    await writers;
    const expected = await direct(store, tenant);
    for (let tries = 0; tries < 200; tries++) {
      while ((await collect()) > 0);
      if (ofTenants(seen).length >= expected.length) break;
      await elapse(10);
    }
    assert.ok(pages > expected.length / 7, "the reader kept pace with the writers");
    assertOrdered(seen);
    assert.deepEqual(lines(ofTenants(seen)), expected);
  });

  it("a tenant's cursors reveal nothing of others, and foreign ones are refused", async () => {
    const { store } = fresh();
    await busyStore(store);
    const first = await store.read.feed(undefined, 2, "globex");
    const cursors = [first.cursor, ...first.records.map(({ cursor }) => cursor)];
    for (let k = 0; k < 4; k++) {
      const { cursor, records } = await store.read.feed(first.cursor, 9, "globex");
      assert.deepEqual(records, []);
      cursors.push(cursor); // also where nothing was written, so that a changed cursor reveals nothing
      if (k % 2 === 1)
        await store.intake.createRuns(
          tenant,
          Array.from({ length: 60 }, () => spec()),
        );
    }
    assert.equal(new Set(cursors).size, cursors.length, "none twice");
    assert.equal(new Set(cursors.map(({ length }) => length)).size, 1, "all alike in length");
    const [one] = first.records;
    assert.deepEqual(
      (await store.read.feed(one!.cursor, 1, "globex")).records.map(({ journal, seq }) => [journal, seq]),
      first.records.slice(1).map(({ journal, seq }) => [journal, seq]),
    );
    const changed = [...first.cursor].map((letter, k) => first.cursor.slice(0, k) + (letter === "A" ? "B" : "A"));
    const others = (await store.read.feed(undefined, 1, tenant)).cursor;
    const { cursor: everybodys } = await store.read.feed(undefined, 1);
    const made = changed.map((start, k) => start + first.cursor.slice(k + 1));
    for (const bad of [others, everybodys, "0", "1", "1.1.1", ...made]) {
      await refused("TAPE_BAD_INPUT", store.read.feed(bad, 1, "globex"));
    }
  });

  it("a cursor that the store did not issue is refused", async () => {
    const { store } = fresh();
    await busyStore(store);
    const { cursor } = await store.read.feed(undefined, 3);
    const garbage: unknown[] = [
      "x",
      "",
      " ",
      "-1",
      "1.5",
      "1e3",
      "0x10",
      `${cursor}x`,
      ` ${cursor}`,
      "9".repeat(40),
      "\0",
    ];
    for (const bad of [...garbage, 5, {}, null, ["1"]]) {
      await refused("TAPE_BAD_INPUT", store.read.feed(bad as string, 3));
    }
    for (const limit of [0, -1, 1.5, Number.NaN, "3"]) {
      await refused("TAPE_BAD_INPUT", store.read.feed(undefined, limit as number));
    }
  });
};
