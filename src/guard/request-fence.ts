import { TapeError } from "../model/errors.ts";
import { assertMacSecret, fenceMac, isSameMac, macHeader } from "../model/fence-mac.ts";
import { assertKnownKeys } from "../sdk/validate.ts";
import { type GuardTable, memoryGuardTable } from "./guard-table.ts";
import { refuseStale, scopeOf, type TokenHolder } from "./token-holder.ts";

/** The headers of a request that carries a token. The HTTP connector sends the last two. */
export const leaseHeader = "tape-lease";
export const keyHeader = "idempotency-key";
export const tokenHeader = "tape-fencing-token";

/** Headers that say under which term a request is made, and with a secret also prove it. */
export function fenceHeaders(bearer: TokenHolder, options: { readonly secret?: string } = {}): Record<string, string> {
  const { secret } = options;
  // A lease may have any name, a header may not.
  const [header, scope] =
    "name" in bearer ? [leaseHeader, encodeURIComponent(scopeOf(bearer))] : [keyHeader, bearer.key];
  if (secret !== undefined) assertMacSecret(secret);
  const mac = secret === undefined ? {} : { [macHeader]: fenceMac(secret, header, scope, bearer.token) };
  return { [header]: scope, [tokenHeader]: String(bearer.token), ...mac };
}

export interface FencedDoorOptions {
  /**
   * Shared with the callers: a request whose token they did not sign is refused, and changes nothing. Without one anybody
   * who reaches the service can bring the highest number there is, and lock every honest holder out. Several while a
   * secret is being changed.
   */
  readonly secret?: string | readonly string[];
}

/** What a request said about itself. A guard takes it as a bearer. */
export interface FencedRequest {
  readonly key: string;
  readonly token: bigint;
  /** Aborts when a newer token knocks: what is not yet done had better not be. */
  readonly abortSignal: AbortSignal;
}

interface Scope {
  /** Requests that wait or run: while there are any, all of them must meet here. */
  inside: number;
  current: bigint;
  ready: Promise<unknown>;
  readonly running: Map<Promise<unknown>, AbortController>;
}

/**
 * Lets requests through by their tokens. Within one scope:
 *
 * - a token lower than the highest that has knocked is refused, from that knock on;
 * - requests of one token run beside each other;
 * - a newer token waits until those of older ones have ended: a check at the door would be worth nothing if an old
 *   request could still write after a new one.
 *
 * That holds in one process. A service of several gives a guard table that they share, and guards its own transaction
 * with the request (it is a bearer) besides.
 */
export class RequestFence {
  readonly #guards: GuardTable;
  readonly #secrets: readonly string[];
  readonly #scopes = new Map<string, Scope>();

  constructor(guards: GuardTable = memoryGuardTable(), options: FencedDoorOptions = {}) {
    assertKnownKeys("a fenced door", options, ["secret"], { secrets: "several secrets are a list in secret" });
    // A variable that is not set would otherwise leave the door open without a word.
    if (Object.hasOwn(options, "secret") && options.secret === undefined) {
      const message = "secret is given and undefined: is a variable not set? Leave it out for a door without one";
      throw new TapeError("TAPE_BAD_INPUT", message, { field: "secret" });
    }
    this.#guards = guards;
    const { secret = [] } = options;
    this.#secrets = typeof secret === "string" ? [secret] : secret;
    this.#secrets.forEach(assertMacSecret);
    if (options.secret !== undefined && this.#secrets.length === 0) {
      throw new TapeError("TAPE_BAD_INPUT", "a door with no secret at all would let nobody in", { field: "secret" });
    }
  }

  async run<T>(
    header: (name: string) => string | null | undefined,
    work: (request: FencedRequest) => T | Promise<T>,
  ): Promise<T> {
    const { key, token } = readHeaders(header, this.#secrets);
    const scope = this.#scopes.get(key) ?? { inside: 0, current: -1n, ready: Promise.resolve(), running: new Map() };
    this.#scopes.set(key, scope);
    scope.inside++;
    try {
      if (token > scope.current) this.#arrive(key, scope, token);
      if (token === scope.current) await scope.ready;
      if (token < scope.current) refuseStale(key, token, scope.current);
      return await this.#enter(scope, { key, token }, work);
    } finally {
      // Nothing is forgotten: the guard table has it.
      if (--scope.inside === 0) this.#scopes.delete(key);
    }
  }

  #arrive(key: string, scope: Scope, token: bigint): void {
    scope.current = token;
    for (const abort of scope.running.values()) abort.abort();
    const ready = Promise.allSettled([...scope.running.keys(), scope.ready]).then(async () => {
      const highest = await this.#guards.raise(key, token);
      if (highest > scope.current) scope.current = highest;
    });
    scope.ready = ready;
    ready.catch(() => {
      // Nobody knows what the table holds now: the same token asks again, an older one is refused all the same.
      if (scope.ready === ready) scope.current = token - 1n;
    });
  }

  async #enter<T>(
    scope: Scope,
    { key, token }: { key: string; token: bigint },
    work: (request: FencedRequest) => T | Promise<T>,
  ): Promise<T> {
    const abort = new AbortController();
    const running = (async () => work({ key, token, abortSignal: abort.signal }))();
    scope.running.set(running, abort);
    try {
      return await running;
    } finally {
      scope.running.delete(running);
    }
  }
}

function readHeaders(
  header: (name: string) => string | null | undefined,
  secrets: readonly string[],
): { key: string; token: bigint } {
  const lease = header(leaseHeader) ?? undefined;
  const [name, scope] = lease === undefined ? [keyHeader, header(keyHeader) ?? ""] : [leaseHeader, lease];
  const text = header(tokenHeader) ?? "";
  if (scope === "" || text === "") {
    throw new TapeError("TAPE_BAD_INPUT", `the request needs ${leaseHeader} (or ${keyHeader}) and ${tokenHeader}`, {
      field: tokenHeader,
    });
  }
  // No store issues more: a longer number would lock every honest holder out for good.
  if (!/^\d{1,19}$/.test(text) || BigInt(text) >= 2n ** 63n) {
    throw new TapeError("TAPE_BAD_INPUT", `${tokenHeader} is not a token`, { field: tokenHeader });
  }
  const token = BigInt(text);
  const mac = header(macHeader) ?? "";
  if (secrets.length > 0 && !secrets.some((secret) => isSameMac(mac, fenceMac(secret, name, scope, token)))) {
    throw new TapeError("TAPE_UNAUTHENTICATED", `${macHeader} does not sign this token`, { field: macHeader });
  }
  return { key: lease === undefined ? scope : decoded(lease), token };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new TapeError("TAPE_BAD_INPUT", `${leaseHeader} is not URI-encoded`, { field: leaseHeader });
  }
}
