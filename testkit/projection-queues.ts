import type { PartitionView, QueueView, Store } from "../src/store/contract/store.ts";
import { readList } from "../src/store/read-all.ts";
import type { SlotTable } from "./projection-slots.ts";

type Comparison = readonly [about: string, found: unknown, expected: unknown];

export const allQueues = (store: Store, tenant: string): Promise<QueueView[]> =>
  readList(
    (above) => store.read.queues(tenant, { above }),
    ({ name }) => name,
  );

/** The counters of each key as the store has them, beside what the slots explain. */
export async function queueRows(store: Store, tenant: string, slots: SlotTable): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  for (const { name } of await allQueues(store, tenant)) {
    const counted = (await allPartitions(store, tenant, name)).filter(
      ({ running, waiting }) => running !== 0 || waiting !== 0,
    );
    const found = counted.map(({ key, running, waiting }) => [key, running, waiting]);
    const expected = [...slots.keysOf(tenant, name)]
      .filter(([, { running, waiting }]) => running + waiting > 0)
      .map(([key, { running, waiting }]) => [key, running, waiting]);
    comparisons.push([`the keys of queue ${name}`, byKey(found), byKey(expected)]);
  }
  return comparisons;
}

const byKey = (rows: readonly unknown[][]): unknown[][] =>
  rows.toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1));

async function allPartitions(store: Store, tenant: string, queue: string): Promise<PartitionView[]> {
  const all: PartitionView[] = [];
  for (;;) {
    const above = all.at(-1)?.key;
    const page = await store.read.queuePartitions(tenant, queue, above === undefined ? {} : { above });
    all.push(...page);
    if (page.more !== true) return all;
  }
}
