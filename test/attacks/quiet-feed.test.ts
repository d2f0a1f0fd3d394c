import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import type { ItemResult } from "../../src/model/lease.ts";
import type { CreateResult, FeedPage, Store } from "../../src/store/contract/store.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { spec, tenant } from "../../testkit/conformance/frame.ts";
import { freshDatabase } from "../postgres/database.ts";

/** One tenant has written much, the other nothing: each query of the other's feed may scan a bounded part of it. */
const limits = { feedScan: 500 };
const runs = 4_000;

const stores: Readonly<Record<string, () => Promise<Store>>> = {
  SQLite: async () => {
    const folder = mkdtempSync(join(tmpdir(), "tape-feed-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    return openSqlite({ file: join(folder, "tape.db"), durability: "relaxed", limits });
  },
  PostgreSQL: async () => openPostgres({ url: await freshDatabase(inject("postgres18")), limits }),
};

async function filled(open: () => Promise<Store>): Promise<Store> {
  const store = await open();
  onTestFinished(() => store.close());
  let last: number | undefined;
  for (let done = 0; done < runs; done += 500) {
    const made = await store.intake.createRuns(
      tenant,
      Array.from({ length: 500 }, () => spec()),
    );
    last = journalOf(made.at(-1));
  }
  await untilDelivered(store, last);
  return store;
}

const journalOf = (made: ItemResult<CreateResult> | undefined): number | undefined =>
  made?.ok ? made.journal : undefined;

/** On PostgreSQL an older open transaction, also of another database, delays the feed. */
async function untilDelivered(store: Store, journal: number | undefined): Promise<void> {
  for (let cursor: string | undefined; ; ) {
    const page = await store.read.feed(cursor);
    if (page.records.some((record) => record.journal === journal)) return;
    cursor = page.cursor;
  }
}

describe.each(Object.entries(stores))("%s: the feed of a quiet tenant beside a busy one", (_name, open) => {
  it("reaches its end in bounded queries, and is never scanned again", async () => {
    const store = await filled(open);
    const pages: FeedPage[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await store.read.feed(cursor, undefined, "globex");
      pages.push(page);
      expect(page.records).toEqual([]);
      expect(page.cursor).not.toBe(cursor);
      if (page.more !== true) break;
      cursor = page.cursor;
    }
    expect(pages.length).toBeGreaterThanOrEqual(Math.floor(runs / limits.feedScan));
    const end = pages.at(-1)!.cursor;
    expect((await store.read.feed(end, undefined, "globex")).records).toEqual([]);
    const [made] = await store.intake.createRuns("globex", [spec()]);
    await untilDelivered(store, journalOf(made));
    const { records } = await store.read.feed(end, undefined, "globex");
    expect(records.map(({ journal }) => journal)).toEqual([journalOf(made)]);
  });

  it("the busy tenant's feed has every record once", async () => {
    const store = await filled(open);
    const seen = new Set<number>();
    for (let cursor: string | undefined; ; ) {
      const page = await store.read.feed(cursor, undefined, tenant);
      for (const { journal } of page.records) seen.add(journal);
      cursor = page.cursor;
      if (page.more !== true) break;
    }
    expect(seen.size).toBe(runs);
  });
});
