/**
 * THE FENCE. Read this file and you know why a stale owner cannot write.
 *
 * A lease row in the store has a `tenant` (never changes), a `token` (rises with every term, never reused) and a
 * `nonce` (random, names the term). Acquiring the lease returns all three as a Fence. Every write to a journal takes
 * the Fence as its first argument, and the store compares it with the row *inside the transaction of the write, under a
 * lock that conflicts with takeover*:
 *
 *   src/store/sqlite/sql/leases.sql         `fence`: BEGIN IMMEDIATE is the lock
 *   src/store/postgres/sql/batched.sql      `append_many`: FOR KEY SHARE + the unique index leases_fence is the lock
 *   src/store/sqlite/sql/streams.sql        `stream.fence`, `stream_many`: the same, for chunks beside the journal
 *
 * The same statement compares the tenant, so that no cache above the store has to know a journal's tenant. With another
 * tenant's fence the journal does not exist. Over HTTP a fence carries no tenant: the server adds the credential's.
 *
 * The comparison is "equal", not "at least": the old holder is fenced from the takeover's commit on, not from the new
 * holder's first write. After a restore has rewound the store, a token may be issued a second time. The nonce, and the
 * rule that an append's predecessor must be the journal's head, refuse old holders there.
 *
 * A Fence cannot be written as an object literal (the brand is not exported), so an unfenced journal write does not
 * compile. Only this file makes one, from a term that the store granted or from its wire form.
 */
declare const brand: unique symbol;

/** Proof of a term, which every journal write carries. */
export interface Fence {
  /** Never set: a fence cannot be written as a literal. */
  readonly [brand]: "fence";
  readonly tenant: string;
  /** The journal (and lease) that it authorises writes to. */
  readonly journal: number;
  readonly token: bigint;
  /** A random number of the term. */
  readonly nonce: bigint;
}

export function makeFence(tenant: string, journal: number, token: bigint, nonce: bigint): Fence {
  return Object.freeze({ tenant, journal, token, nonce }) as Fence;
}

/** The columns of the lease row that decide a fenced write. Time is not among them, on purpose. */
export interface FencedRow {
  readonly tenant: string;
  readonly token: bigint;
  readonly nonce: bigint | null;
  readonly doomed: boolean;
}

export function admits(row: FencedRow | undefined, fence: Fence): boolean {
  return (
    row !== undefined &&
    row.token === fence.token &&
    row.nonce === fence.nonce &&
    row.tenant === fence.tenant &&
    !row.doomed
  );
}

export function sameFence(a: Fence, b: Fence): boolean {
  return a.journal === b.journal && a.token === b.token && a.nonce === b.nonce && a.tenant === b.tenant;
}

/**
 * A fence as text, for a child process of the holder. It is a secret: it authorises writes and renewals as the holder.
 * Numbers stay decimal strings, because a JSON number would round tokens above 2^53.
 *
 * @example
 * const text = fenceToWire(lease.fence); // a secret: it authorises writes
 */
export function fenceToWire({ tenant, journal, token, nonce }: Fence): string {
  return `${journal}.${token}.${nonce}.${encodeURIComponent(tenant)}`;
}

/**
 * Parses a fence; undefined: the text is not a fence.
 *
 * @example
 * const fence = fenceFromWire(text);
 */
export function fenceFromWire(text: string): Fence | undefined {
  const match = /^(\d{1,16})\.(\d{1,19})\.(\d{1,19})\.([\w.!~*'()%-]+)$/.exec(text);
  if (match === null) return undefined;
  const [journal, token, nonce] = [Number(match[1]), BigInt(match[2]!), BigInt(match[3]!)];
  const tenant = decoded(match[4]!);
  // No store has larger numbers, so fenceToWire never wrote such a text.
  const fits = Number.isSafeInteger(journal) && token < 2n ** 63n && nonce < 2n ** 63n;
  return fits && tenant !== undefined ? makeFence(tenant, journal, token, nonce) : undefined;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
