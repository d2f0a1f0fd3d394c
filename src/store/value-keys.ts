import { createHash } from "node:crypto";
import { isTapeError } from "../model/errors.ts";
import type { Store, StoredValue } from "./contract/store.ts";

/** Where an adapter keeps its values: an open `Tape`, or a store with a tenant. */
export interface ValuesOf {
  /** The store. */
  readonly store: Pick<Store, "read" | "intake">;
  readonly tenant: string;
}

/** Longer parts are replaced by their hash, so that a key of four parts stays below the limit of names. */
const maxPart = 100;

/** One part of a key. A separator in it is escaped, so that the keys of `a/b` and of `a`, `b` differ. */
export function part(text: string): string {
  const escaped = text.replace(/[%/~\p{Cc}]/gu, (found) => `%${found.charCodeAt(0).toString(16).padStart(2, "0")}`);
  return escaped.length <= maxPart ? escaped : `~${createHash("sha256").update(text).digest("hex")}`;
}

/** All values under a prefix, a page at a time; with `desc` from the last key, or from the one before `above`, down. */
export async function* valuesUnder(
  { store, tenant }: ValuesOf,
  prefix: string,
  { order = "asc", above }: { readonly order?: "asc" | "desc"; readonly above?: string } = {},
): AsyncGenerator<StoredValue> {
  let after = above;
  for (;;) {
    const page = await store.read.values(tenant, prefix, undefined, after, order);
    yield* page;
    if (page.more !== true) return;
    after = page.at(-1)!.key;
  }
}

/** Deletes what is under a prefix. A value that changes meanwhile is read again. */
export async function deleteUnder(of: ValuesOf, prefix: string): Promise<void> {
  for await (const { key } of valuesUnder(of, prefix)) await deleteKey(of, key);
}

/** Deletes one value, whatever its version. Each conflict means that another writer made progress. */
export async function deleteKey({ store, tenant }: ValuesOf, key: string): Promise<void> {
  for (;;) {
    const found = await store.read.value(tenant, key);
    if (found === undefined || found.deleted) return;
    try {
      await store.intake.deleteValue(tenant, key, found.version);
      return;
    } catch (error) {
      if (!isTapeError(error, "TAPE_VERSION_CONFLICT")) throw error;
    }
  }
}
