import { firstJournalOf, storeJournal } from "../../model/journal-numbers.ts";
import type { FeedPage, FeedRecord, ReadOps } from "../contract/store.ts";

import type { Router } from "./router.ts";
import { openVector, sealVector } from "./vector.ts";

/** Records of a page when the caller names no number. */
const usualPage = 1_000;

/**
 * The feed of one tenant is that of its shard. The feed of all tenants merges those of the shards by time: the order
 * within a journal is its shard's, and the cursor has one place for each shard.
 */
export function shardedFeed(router: Router): Pick<ReadOps, "feed" | "frontier"> {
  return {
    async feed(cursor, limit, tenant) {
      if (tenant !== undefined) return router.read(tenant, (store) => store.read.feed(cursor, limit, tenant));
      return mergedFeed(router, cursor, limit ?? usualPage);
    },
    async frontier(tenant) {
      if (tenant !== undefined) return router.read(tenant, (store) => store.read.frontier(tenant));
      const places: string[] = [];
      await router.every(async (store, shard) => {
        places[shard.number] = await store.read.frontier();
      });
      return sealVector(places, router, await router.directory.moves());
    },
  };
}

async function mergedFeed(router: Router, cursor: string | undefined, limit: number): Promise<FeedPage> {
  const moves = await router.directory.moves();
  const places = [...openVector(cursor, router, moves)];
  const { found, missing } = await router.all((store, shard) => store.read.feed(places[shard.number], limit));
  const records: FeedRecord[] = [];
  const lists = found.map(({ shard, value }) => ({ shard, page: value, next: 0 }));
  while (records.length < limit) {
    // Of a page that was cut, the next record is not known: what comes before it is not known either.
    if (lists.some(({ page, next }) => next === page.records.length && page.more === true && next > 0)) break;
    const heads = lists.filter(({ page, next }) => next < page.records.length);
    if (heads.length === 0) break;
    // The choice depends on the places alone, so a reader that resumes at any cursor sees the same order.
    const first = heads.reduce((a, b) => (headOf(b).at < headOf(a).at ? b : a));
    const record = headOf(first);
    first.next++;
    places[first.shard.number] = record.cursor;
    records.push({ ...ofShard(record, first.shard.number), cursor: sealVector(places, router, moves) });
  }
  let more = missing.length > 0;
  for (const { shard, value } of found) {
    const last = value.records.at(-1);
    const passed = last === undefined || places[shard.number] === last.cursor;
    if (passed) places[shard.number] = value.cursor;
    if (!passed || value.more === true) more = true;
  }
  const held = found.find(({ value }) => value.blockedBy !== undefined)?.value.blockedBy;
  const blockedBy = missing.length > 0 ? router.unreachable(missing).message : held;
  return {
    records,
    cursor: sealVector(places, router, moves),
    ...(more && { more }),
    ...(blockedBy !== undefined && { blockedBy }),
  };
}

const headOf = ({ page, next }: { readonly page: FeedPage; readonly next: number }): FeedRecord => page.records[next]!;

/** Every shard has a journal of its own for the store. */
function ofShard(record: FeedRecord, shard: number): FeedRecord {
  return record.journal === storeJournal ? { ...record, journal: firstJournalOf(shard) + storeJournal } : record;
}
