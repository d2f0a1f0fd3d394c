import type { Store } from "../store/contract/store.ts";

/** Lists hold journal numbers; people and signals need the ids of the runs. */
export async function runIds(
  store: Store,
  tenant: string,
  rows: readonly { readonly run: number }[],
): Promise<ReadonlyMap<number, string>> {
  const journals = [...new Set(rows.map(({ run }) => run))];
  const ids = new Map<number, string>();
  // A few at a time: a page may name a thousand runs, and others ask the store too.
  for (let k = 0; k < journals.length; k += atOnce) {
    const some = journals.slice(k, k + atOnce);
    const leases = await Promise.all(some.map((journal) => store.read.lease(tenant, { journal })));
    for (const [i, journal] of some.entries()) ids.set(journal, leases[i]?.name ?? String(journal));
  }
  return ids;
}

const atOnce = 50;
