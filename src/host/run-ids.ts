import type { Store } from "../store/contract/store.ts";

/** Lists hold journal numbers; operators and signals need the run ids. */
export async function runIds(
  store: Store,
  tenant: string,
  rows: readonly { readonly run: number }[],
): Promise<ReadonlyMap<number, string>> {
  const journals = [...new Set(rows.map(({ run }) => run))];
  const ids = new Map<number, string>();
  // In small batches: a page may name a thousand runs, and other callers use the store too.
  for (let k = 0; k < journals.length; k += batchSize) {
    const some = journals.slice(k, k + batchSize);
    const leases = await Promise.all(some.map((journal) => store.read.lease(tenant, { journal })));
    for (const [i, journal] of some.entries()) ids.set(journal, leases[i]?.name ?? String(journal));
  }
  return ids;
}

const batchSize = 50;
