import { TapeError } from "../model/errors.ts";
import { type Bearer, refuseStale, scopeOf } from "./bearer.ts";
import { type GuardTable, memoryGuards } from "./table.ts";

/** The headers of a request that carries a token. The HTTP connector sends the last two. */
export const leaseHeader = "tape-lease";
export const keyHeader = "idempotency-key";
export const tokenHeader = "tape-fencing-token";

/** Headers that say under which term a request is made. */
export function fenceHeaders(bearer: Bearer): Record<string, string> {
  const token = { [tokenHeader]: String(bearer.token) };
  // A lease may have any name, a header may not.
  if ("name" in bearer) return { [leaseHeader]: encodeURIComponent(scopeOf(bearer)), ...token };
  return { [keyHeader]: bearer.key, ...token };
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
export class FencedDoor {
  readonly #guards: GuardTable;
  readonly #scopes = new Map<string, Scope>();

  constructor(guards: GuardTable = memoryGuards()) {
    this.#guards = guards;
  }

  async through<T>(
    header: (name: string) => string | null | undefined,
    work: (request: FencedRequest) => T | Promise<T>,
  ): Promise<T> {
    const { key, token } = readHeaders(header);
    const scope = this.#scopes.get(key) ?? { inside: 0, current: -1n, ready: Promise.resolve(), running: new Map() };
    this.#scopes.set(key, scope);
    scope.inside++;
    try {
      if (token > scope.current) this.#knock(key, scope, token);
      if (token === scope.current) await scope.ready;
      if (token < scope.current) refuseStale(key, token, scope.current);
      return await this.#enter(scope, { key, token }, work);
    } finally {
      // Nothing is forgotten: the guard table has it.
      if (--scope.inside === 0) this.#scopes.delete(key);
    }
  }

  #knock(key: string, scope: Scope, token: bigint): void {
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

function readHeaders(header: (name: string) => string | null | undefined): { key: string; token: bigint } {
  const lease = header(leaseHeader);
  const key = lease === null || lease === undefined ? header(keyHeader) : decoded(lease);
  const token = header(tokenHeader);
  if (key === null || key === undefined || key === "" || token === null || token === undefined) {
    throw new TapeError("TAPE_BAD_INPUT", `the request needs ${leaseHeader} (or ${keyHeader}) and ${tokenHeader}`, {
      field: tokenHeader,
    });
  }
  // No store issues more: a longer number would lock every honest holder out for good.
  if (!/^\d{1,19}$/.test(token) || BigInt(token) >= 2n ** 63n) {
    throw new TapeError("TAPE_BAD_INPUT", `${tokenHeader} is not a token`, { field: tokenHeader });
  }
  return { key, token: BigInt(token) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new TapeError("TAPE_BAD_INPUT", `${leaseHeader} is not URI-encoded`, { field: leaseHeader });
  }
}
