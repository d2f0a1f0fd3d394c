import { strict as assert } from "node:assert";
import type { FeedRecord, Store } from "../../src/store/contract/store.ts";
import { type Cases, refused, type StoreFixture, spec, tenant } from "./frame.ts";
import { callerCases } from "./transactions.ts";

const busy = "globex";
const idle = "initech";
const keyOf = (one: FeedRecord): string => `${one.in} ${one.journal}.${one.seq}`;

/** A reader of one feed, from page to page. */
class Reader {
  readonly seen: string[] = [];
  readonly #store: Store;
  readonly #of: string | undefined;
  #cursor: string | undefined;

  constructor(store: Store, of: string | undefined, from?: string) {
    this.#store = store;
    this.#of = of;
    this.#cursor = from;
  }

  /** Reads pages of two until there are no more for now. */
  async read(): Promise<this> {
    for (;;) {
      const { records, cursor, more } = await this.#store.read.feed(this.#cursor, 2, this.#of);
      this.#cursor = cursor;
      this.seen.push(...records.map(keyOf));
      if (records.length === 0 && more !== true) return this;
    }
  }

  /** Waits for a record: transactions of other databases may hold the feed back for a while. */
  async until(journal: number, { elapse }: Pick<StoreFixture, "elapse">): Promise<this> {
    const key = `journal ${journal}.1`;
    for (let tries = 0; tries < 500; tries++) {
      await this.read();
      if (this.seen.includes(key)) return this;
      await elapse(10);
    }
    return assert.fail(`${key} is never delivered`);
  }
}

async function create(store: Store, of: string): Promise<number> {
  const [made] = await store.intake.createRuns(of, [spec()]);
  assert.ok(made?.ok);
  return made.journal;
}

/** The end of the feed, and what a transaction that is open there means for every cursor. */
export const feedFrontier: Cases = (api, fresh) => {
  const { it } = api;
  it("the frontier is behind what was delivered, and before what is written next", async () => {
    const fixture = fresh();
    const { store } = fixture;
    for (const whose of [undefined, tenant, idle]) {
      assert.equal(typeof (await store.read.frontier(whose)), "string"); // also of an empty store
      const before = [await create(store, tenant), await create(store, busy)];
      for (const journal of before) await new Reader(store, undefined).until(journal, fixture);
      const from = await store.read.frontier(whose);
      const written = await create(store, whose ?? tenant);
      await create(store, busy);
      const { seen } = await new Reader(store, whose, from).until(written, fixture);
      for (const journal of before) assert.ok(!seen.includes(`journal ${journal}.1`), `${journal} is delivered again`);
      assert.equal(new Set(seen).size, seen.length);
    }
  });

  it("a frontier of one tenant is worth nothing to another", async () => {
    const { store } = fresh();
    const [own, other] = [await store.read.frontier(tenant), await store.read.frontier(tenant)];
    assert.notEqual(own, other, "equal texts would reveal that no tenant has written");
    await refused("TAPE_BAD_INPUT", store.read.feed(own, 1, busy));
    for (const bad of ["", 5, {}]) await refused("TAPE_BAD_INPUT", store.read.frontier(bad as string));
  });

  callerCases(api, fresh)("[INV-10] no cursor passes a transaction that is still open", async (fixture) => {
    const { store, caller, within } = fixture;
    const feeds = [undefined, tenant, busy, idle];
    const earlier = await create(store, busy);
    const readers = feeds.map((of) => ({ of, reader: new Reader(store, of) }));
    const frontiers: { readonly of: string | undefined; readonly cursor: string }[] = [];
    const own = await caller.connect();
    await own.begin();
    const late = [await within.createRun(own.transaction, tenant, spec())];
    late.push(await within.createRun(own.transaction, idle, spec()));
    const overtaking: number[] = [];
    for (let round = 0; round < 3; round++) {
      // SQLite has one writer at a time: there, no write can overtake.
      if (store.backend === "postgres") overtaking.push(await create(store, busy), await create(store, tenant));
      for (const { of, reader } of readers) {
        await reader.read();
        frontiers.push({ of, cursor: await store.read.frontier(of) });
      }
    }
    const open = late.map(({ journal }) => journal);
    for (const { reader } of readers) {
      for (const journal of open) assert.ok(!reader.seen.includes(`journal ${journal}.1`));
    }
    await own.commit();
    const last = new Map<string | undefined, number>();
    for (const whose of [busy, tenant, idle]) last.set(whose, await create(store, whose));
    last.set(undefined, last.get(idle)!);
    const journals = [earlier, ...open, ...overtaking, ...last.values()];
    for (const { of, reader } of readers) {
      const { seen } = await reader.until(last.get(of)!, fixture);
      assert.equal(new Set(seen).size, seen.length, "none is delivered twice");
      const whole = (await new Reader(store, of).until(last.get(of)!, fixture)).seen;
      assert.deepEqual(seen, whole, "a reader from page to page and a new one see the same");
      if (of === undefined) for (const journal of journals) assert.ok(seen.includes(`journal ${journal}.1`));
    }
    for (const { of, cursor } of frontiers) {
      const { seen } = await new Reader(store, of, cursor).until(last.get(of)!, fixture);
      const due = of === undefined ? open : of === tenant ? open.slice(0, 1) : of === idle ? open.slice(1) : [];
      for (const journal of due) assert.ok(seen.includes(`journal ${journal}.1`), `${journal} is skipped`);
    }
  });
};
