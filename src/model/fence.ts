/**
 * THE FENCE. Read this file and you know why a stale owner cannot write.
 *
 * A lease row in the store carries `tenant` (whose it is, for ever), `token` (rises with every term, never reused) and
 * `nonce` (random, names the term). Who acquires the lease gets all three as a Fence. Every write to a journal takes the
 * Fence as its first argument, and the store compares it with the row *inside the transaction of the write, under a lock
 * that conflicts with takeover*:
 *
 *   src/store/sqlite/sql/leases.sql         `fence`: BEGIN IMMEDIATE is the lock
 *   src/store/postgres/sql/batched.sql      `append`: FOR KEY SHARE + the unique index leases_fence is the lock
 *
 * The tenant is compared in the same statement, so that no cache above the store has to know whose a journal is: a fence
 * that another tenant has got hold of is answered as if there were no such journal. Over HTTP a fence does not carry its
 * tenant: the server puts the credential's into it.
 *
 * Equal, not "at least": the door closes at the takeover's commit, not at the new holder's first write. The nonce and
 * the rule that an append's predecessor must be the journal's head refuse old holders of a store that was rewound by a
 * restore: there the token alone could be issued a second time.
 *
 * A Fence cannot be written down as an object literal (the brand is not exported), so an unfenced journal write does
 * not compile. It is made only here, from a term that the store granted or from its wire form.
 */
declare const brand: unique symbol;

/** Proof of a term, which every journal write carries. */
export interface Fence {
  readonly [brand]: "fence";
  readonly tenant: string;
  /** The journal (and lease) it opens. */
  readonly journal: number;
  readonly token: bigint;
  readonly nonce: bigint;
}

export function makeFence(tenant: string, journal: number, token: bigint, nonce: bigint): Fence {
  return Object.freeze({ tenant, journal, token, nonce }) as Fence;
}

/** What the lease row must say for a fenced write to be accepted. Clocks do not occur in it, on purpose. */
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
 * A fence as text, for a process of the holder's own: who has it may write and renew as the holder, so it is a secret.
 * Numbers are decimal strings end to end: a JSON number would round tokens above 2^53.
 */
export function fenceToWire({ tenant, journal, token, nonce }: Fence): string {
  return `${journal}.${token}.${nonce}.${encodeURIComponent(tenant)}`;
}

/** Reads a fence from its text; undefined: the text is not one. */
export function fenceFromWire(text: string): Fence | undefined {
  const match = /^(\d{1,16})\.(\d{1,19})\.(\d{1,19})\.([\w.!~*'()%-]+)$/.exec(text);
  if (match === null) return undefined;
  const [journal, token, nonce] = [Number(match[1]), BigInt(match[2]!), BigInt(match[3]!)];
  const tenant = decoded(match[4]!);
  // No store holds more: such a text was never written by fenceToWire.
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
