import { TapeError } from "../model/errors.ts";
import { assertHolder, refuseStale, scopeOf, type TokenHolder } from "./token-holder.ts";

/** An object, its version, and the fence of its last guarded write. */
export interface StoredObject<B> {
  /** The content. */
  readonly body: B;
  /** Changes with every write: an ETag, a generation, a resource version. */
  readonly version: string;
  /** As the last guarded write gave it; undefined: the object was never written under a guard. */
  readonly fence?: string | undefined;
}

/**
 * Objects or files with conditional writes: S3 and GCS by `If-Match`, a table with a version column, a folder
 * ({@link fileObjects}). An adapter has two methods:
 *
 *   get   the object with its version and fence; undefined: there is none
 *   put   writes body and fence together, but only if the version is still `match` (undefined: only if there is no
 *         object). Returns false if it is not: then nothing was written
 */
export interface ConditionalObjects<B> {
  /** The object of a key; undefined if there is none. */
  get(key: string): Promise<StoredObject<B> | undefined>;
  /** Writes the object if it still has this version (undefined: if there is none); false: it has another. */
  put(key: string, object: { readonly body: B; readonly fence: string }, match: string | undefined): Promise<boolean>;
}

/** Each further try means that another write came first; a holder rarely competes with others. */
const maxTries = 100;

/**
 * Writes an object under a lease. Throws TAPE_FENCED if a newer token has written it: the condition of the write makes
 * check and write one step. The object refuses the previous holder from the new holder's first write on, not from the
 * takeover on. `body` may be a function of the present body; it is called again if another write comes first.
 *
 * @example
 * await guardObject(fileObjects("./reports"), lease, "monday.json", JSON.stringify(report));
 */
export async function guardObject<B extends string | Uint8Array>(
  objects: ConditionalObjects<B>,
  holder: TokenHolder,
  key: string,
  body: B | ((current: B | undefined) => B | Promise<B>),
): Promise<void> {
  const scope = scopeOf(holder);
  const fence = `${holder.token}@${scope}`;
  for (let tries = 0; tries < maxTries; tries++) {
    assertHolder(holder);
    const current = await objects.get(key);
    if (current?.fence !== undefined) assertNewest(key, current.fence, scope, holder.token);
    const next = typeof body === "function" ? await body(current?.body) : body;
    assertHolder(holder);
    if (await objects.put(key, { body: next, fence }, current?.version)) return;
  }
  const message = `object ${key} was written by others ${maxTries} times meanwhile`;
  throw new TapeError("TAPE_STORE_BUSY", message, { key });
}

/** Tokens are compared only within one scope: an object belongs to the lease that first guarded it. */
function assertNewest(key: string, fence: string, scope: string, token: bigint): void {
  const [, highest, owner] = /^(\d{1,19})@(.+)$/s.exec(fence) ?? [];
  if (highest === undefined || owner !== scope) {
    const message = `object ${key} is guarded by ${owner ?? "something else"}, not by ${scope}`;
    throw new TapeError("TAPE_BAD_INPUT", message, { key, scope });
  }
  if (BigInt(highest) > token) refuseStale(scope, token, BigInt(highest));
}
