import { isStoreJournal } from "../src/model/journal-numbers.ts";
import type { FeedRecord, Store } from "../src/store/contract/store.ts";
import { feedPages } from "../src/store/read-all.ts";
import { allQueues } from "./projection-queues.ts";

/** Every record of the tenants' journals, in feed order, and the tenant of each journal. */
export async function readFeed(store: Store, tenants: readonly string[]) {
  const tenantOf = new Map<number, string>();
  for (const tenant of tenants) {
    for (const { journal } of await wholeFeed(store, tenant)) tenantOf.set(journal, tenant);
  }
  const all = await wholeFeed(store);
  return { tenantOf, records: all.filter(({ journal }) => isStoreJournal(journal) || tenantOf.has(journal)) };
}

async function wholeFeed(store: Store, tenant?: string): Promise<FeedRecord[]> {
  const records: FeedRecord[] = [];
  for await (const page of feedPages(store.read, { tenant })) records.push(...page);
  return records;
}

/** What each queue counts. Queues are configuration, like schedules: no record explains them. */
export async function queueCounts(store: Store, tenants: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const counts = new Map<string, string>();
  for (const tenant of tenants) {
    for (const { name, spec } of await allQueues(store, tenant)) counts.set(`${tenant}/${name}`, spec.counts);
  }
  return counts;
}
