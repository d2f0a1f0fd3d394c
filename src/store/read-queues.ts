import type { Page, PartitionView, QueueView, ReadOps } from "./contract/store.ts";
import { readList } from "./read-all.ts";

/** All queues of a tenant, by name. */
export const readQueues = (read: Pick<ReadOps, "queues">, tenant: string): Promise<QueueView[]> =>
  readList(
    (above) => read.queues(tenant, { above }),
    ({ name }) => name,
  );

/** More keys than an operator reads; the longest wait of the others is not known. */
const maxKeys = 10_000;

/** The keys of a queue, longest wait first. `more`: there are keys that were not read. */
export async function readKeys(
  read: Pick<ReadOps, "queuePartitions">,
  tenant: string,
  queue: string,
): Promise<{ readonly keys: readonly PartitionView[]; readonly more: boolean }> {
  const keys: PartitionView[] = [];
  let page: Page<PartitionView> | undefined;
  do {
    const last = keys.at(-1);
    page = await read.queuePartitions(tenant, queue, last === undefined ? {} : { above: last.key });
    keys.push(...page);
  } while (page.more === true && keys.length < maxKeys);
  keys.sort((a, b) => (b.oldestWaitMs ?? -1) - (a.oldestWaitMs ?? -1));
  return { keys, more: page.more === true };
}
