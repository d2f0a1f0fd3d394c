import type { Store } from "../../src/store/contract/store.ts";
import { runPool, stepRecord } from "../work.ts";

export const feedTenant = "bench";
/** Records of one run: its first, its steps. */
const perRun = 12;
/** Runs that are under way at once: their records are interleaved, as those of a busy worker are. */
const together = 256;

/** Fills a feed with interleaved runs. Returns the number of records. */
export async function fillFeed(store: Store, records: number): Promise<number> {
  const runs = Math.ceil(records / perRun);
  for (let from = 0; from < runs; from += together) {
    const terms = await runPool(store, Math.min(together, runs - from));
    for (let after = 1; after < perRun; after++) {
      await store.fenced.appendAll(terms.map(({ fence }) => [fence, { after, records: [stepRecord] }] as const));
    }
  }
  return runs * perRun;
}
