import { TapeError } from "../model/errors.ts";
import { assertMacSecret, fenceMac, isSameMac, macHeader } from "../model/fence-mac.ts";
import { assertKnownKeys } from "../sdk/validate.ts";
import { type GuardTable, memoryGuardTable } from "./guard-table.ts";
import { refuseStale, scopeOf, type TokenHolder } from "./token-holder.ts";

/** The headers of a request with a token. The HTTP connector sends the last two. */
export const leaseHeader = "tape-lease";
export const keyHeader = "idempotency-key";
export const tokenHeader = "tape-fencing-token";

/**
 * Headers that name the term under which a request is made and, with a secret, prove it.
 *
 * @example
 * await fetch("https://ledger.example/entries", { method: "POST", headers: fenceHeaders(lease), body });
 */
export function fenceHeaders(holder: TokenHolder, options: { readonly secret?: string } = {}): Record<string, string> {
  const { secret } = options;
  // A lease name may contain characters that a header may not.
  const [header, scope] =
    "name" in holder ? [leaseHeader, encodeURIComponent(scopeOf(holder))] : [keyHeader, holder.key];
  if (secret !== undefined) assertMacSecret(secret);
  const mac = secret === undefined ? {} : { [macHeader]: fenceMac(secret, header, scope, holder.token) };
  return { [header]: scope, [tokenHeader]: String(holder.token), ...mac };
}

/** Options of a {@link RequestFence}. */
export interface RequestFenceOptions {
  /**
   * Shared with the callers. A request without their signature is refused and changes nothing. Without a secret, any
   * client that reaches the service can send the highest possible token and lock out every honest holder. Pass several
   * while you rotate the secret. Default: none.
   */
  readonly secret?: string | readonly string[];
}

/** The key and token of a request. Pass it to a guard as the token's holder. */
export interface FencedRequest {
  /** What the token fences, as the caller names it. */
  readonly key: string;
  readonly token: bigint;
  /** Aborts when a newer token arrives; stop as soon as possible. */
  readonly abortSignal: AbortSignal;
}

interface Scope {
  /** Requests that wait or run. While there are any, all requests of the scope must share this object. */
  inside: number;
  current: bigint;
  ready: Promise<unknown>;
  readonly running: Map<Promise<unknown>, AbortController>;
}

/**
 * Admits requests by their tokens. Within one scope:
 *
 * - a token lower than the highest that has arrived is refused, from that arrival on;
 * - requests with the same token run concurrently;
 * - a newer token waits until the requests of older tokens have ended. Otherwise an old request that passed the check
 *   could still write after a new one.
 *
 * This holds within one process. A service of several processes passes a shared guard table, and guards its own
 * transaction with the request as well.
 *
 * @example
 * const fence = new RequestFence(postgresGuardTable(client), { secret });
 * const stored = await fence.run((name) => request.headers.get(name), ({ token }) => put(request, token));
 */
export class RequestFence {
  readonly #guards: GuardTable;
  readonly #secrets: readonly string[];
  readonly #scopes = new Map<string, Scope>();

  /** The guard table, and the secret of the callers. */
  constructor(guards: GuardTable = memoryGuardTable(), options: RequestFenceOptions = {}) {
    assertKnownKeys("a request fence", options, ["secret"], { secrets: "pass several secrets as a list in secret" });
    // A variable that is not set would otherwise switch the check off silently.
    if (Object.hasOwn(options, "secret") && options.secret === undefined) {
      const message = "secret is undefined: is a variable not set? Leave it out for a fence without a secret";
      throw new TapeError("TAPE_BAD_INPUT", message, { field: "secret" });
    }
    this.#guards = guards;
    const { secret = [] } = options;
    this.#secrets = typeof secret === "string" ? [secret] : secret;
    this.#secrets.forEach(assertMacSecret);
    if (options.secret !== undefined && this.#secrets.length === 0) {
      throw new TapeError("TAPE_BAD_INPUT", "secret is an empty list, which would refuse every request", {
        field: "secret",
      });
    }
  }

  /** Calls the function if the token of the request is the newest; throws TAPE_FENCED for an older one. */
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
      // Nothing is lost: the guard table keeps the highest token.
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
      // The table's value is unknown now: the same token raises it again, and an older one is still refused.
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
  // No store issues a higher token. A longer number would lock out every honest holder permanently.
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
