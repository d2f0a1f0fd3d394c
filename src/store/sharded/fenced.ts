import { TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import type { ItemResult } from "../../model/lease.ts";
import type { Limits } from "../../model/limits.ts";
import type { FencedOps, Store } from "../contract/store.ts";
import { checkBatch } from "../validate/arguments.ts";
import { checkFence } from "../validate/entry.ts";
import type { Router } from "./router.ts";

/** Writes under a fence, which names its tenant. */
export function shardedFenced(router: Router, limits: Limits): FencedOps {
  const under = async <T>(fence: Fence, work: (ops: FencedOps) => Promise<T>): Promise<T> => {
    checkFence(fence);
    return router.fenced(fence.tenant, (store) => work(store.fenced));
  };
  return {
    append: (fence, entry) => under(fence, (ops) => ops.append(fence, entry)),
    async appendAll(batch) {
      checkBatch(batch, limits);
      return split(router, batch, fenceIn, (store, part) => store.fenced.appendAll(part));
    },
    async appendChunks(batch) {
      checkBatch(batch, limits);
      return split(router, batch, fenceIn, (store, part) => store.fenced.appendChunks(part));
    },
    putBlob: (fence, part) => under(fence, (ops) => ops.putBlob(fence, part)),
    checkpoint: (fence, text) => under(fence, (ops) => ops.checkpoint(fence, text)),
    deadLetter: (fence, letter) => under(fence, (ops) => ops.deadLetter(fence, letter)),
    letterSent: (fence, event) => under(fence, (ops) => ops.letterSent(fence, event)),
  };
}

/** The fence of an item; undefined: the item has not the shape of one. */
const fenceIn = (item: readonly [Fence, unknown]): Fence | undefined => (Array.isArray(item) ? item[0] : undefined);

/** Each shard gets its items of a batch. A shard that cannot be reached refuses its own items only. */
export async function split<I, T extends object>(
  router: Router,
  batch: readonly I[],
  fenceOf: (item: I) => Fence | undefined,
  work: (store: Store, part: readonly I[]) => Promise<ItemResult<T>[]>,
): Promise<ItemResult<T>[]> {
  const parts = new Map<string | undefined, number[]>();
  for (const [k, item] of batch.entries()) {
    const { tenant } = fenceOf(item) ?? {};
    const key = typeof tenant === "string" ? tenant : undefined;
    const part = parts.get(key);
    if (part === undefined) parts.set(key, [k]);
    else part.push(k);
  }
  const results: ItemResult<T>[] = [];
  const send = async (tenant: string | undefined, places: readonly number[]): Promise<void> => {
    const items = places.map((k) => batch[k]!);
    // Items without a tenant are bad input: any shard refuses each of them.
    const sent =
      tenant === undefined
        ? router.any((store) => work(store, items))
        : router.fenced(tenant, (store) => work(store, items));
    const done = await sent.catch((error: unknown): ItemResult<T>[] => {
      if (!(error instanceof TapeError)) throw error;
      return items.map(() => ({ ok: false, error }));
    });
    for (const [n, k] of places.entries()) results[k] = done[n]!;
  };
  await Promise.all([...parts].map(([tenant, places]) => send(tenant, places)));
  return results;
}
