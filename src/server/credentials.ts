import { createHash, timingSafeEqual } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { errorFields } from "../base/reason.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import { type Role, roles } from "../protocol/route.ts";
import type { ApiToken, Store } from "../store/contract/store.ts";
import { bootstrapName } from "../store/validate/admin.ts";
import { limitKey } from "./address.ts";
import { Bucket, Buckets } from "./bucket.ts";
import type { Caller, TokenLifetimes } from "./handler-types.ts";

/** 32 bytes: nobody finds one by trying. Tries are counted all the same, because each may cost a look into the store. */
const secretBytes = 32;
/** A revoked token ends within five seconds everywhere: three of the cache, the rest for the read itself. */
const rememberedMs = 3_000;
const maxRemembered = 10_000;
const touchMs = 60_000;

/** `id.secret` as a caller brings it. */
const tokenText = /^([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_-]{32,256})$/;

export interface Credentials {
  /**
   * Who brings this header; refuses with TAPE_UNAUTHENTICATED, and with TAPE_RATE_LIMITED a bad one from an address from
   * which too many came. A good one is taken from everywhere.
   */
  caller(authorization: string | undefined, from?: string): Promise<Caller>;
  /** Whether what was good when a stream was opened still is. */
  stillGood(authorization: string | undefined): Promise<boolean>;
}

export const hashOf = (secret: string): string => createHash("sha256").update(secret).digest("hex");

/** A fresh token: its id may be shown, its secret is told once. */
export function mintToken(random: Random): { readonly id: string; readonly secret: string; readonly hash: string } {
  const id = Buffer.from(random.bytes(9)).toString("base64url");
  const secret = Buffer.from(random.bytes(secretBytes)).toString("base64url");
  return { id, secret, hash: hashOf(secret) };
}

/** How long a new token holds: as long as was asked for, within what this server allows. */
export function lifetimeOf(askedMs: number | undefined, { defaultMs, maxMs }: TokenLifetimes): number | undefined {
  if (askedMs !== undefined && maxMs !== undefined && askedMs > maxMs) {
    throw new TapeError("TAPE_BAD_INPUT", `a token may hold ${maxMs} ms here at most (tape.server.tokens.max_days)`, {
      ...{ field: "expiresInMs", maxMs },
    });
  }
  const defaulted = askedMs ?? defaultMs ?? maxMs;
  return defaulted === undefined || maxMs === undefined ? defaulted : Math.min(defaulted, maxMs);
}

/** Without credentials whoever reaches the server is its admin: only a loopback address may be bound then. */
export function noAuth(caller: Caller): Credentials {
  return { caller: async () => caller, stillGood: async () => true };
}

export interface TokenAuthOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** `id.secret` of an admin of `tenant`, to make the first tokens with. */
  readonly bootstrap: string | undefined;
  readonly tenant: string;
  readonly failedSignIns: number;
}

interface CachedToken {
  readonly at: number;
  readonly token: Promise<ApiToken | undefined>;
}

/** Tokens of the store, looked up at most every few seconds each. */
export class TokenAuth implements Credentials {
  readonly #options: TokenAuthOptions;
  readonly #bootstrap: ApiToken | undefined;
  readonly #remembered = new Map<string, CachedToken>();
  /** Hashes of secrets that were good, by the token's id. */
  readonly #good = new Map<string, string>();
  /** When a use was noted last, so that one a minute is. */
  readonly #touched = new Map<string, number>();
  readonly #failures: FailedSignIns;

  constructor(options: TokenAuthOptions) {
    this.#options = options;
    this.#failures = new FailedSignIns(options.failedSignIns, options.clock);
    this.#bootstrap = options.bootstrap === undefined ? undefined : bootstrapToken(options.bootstrap, options.tenant);
  }

  async caller(authorization: string | undefined, from = ""): Promise<Caller> {
    const address = limitKey(from);
    try {
      return await this.#caller(authorization, address);
    } catch (error) {
      // Whoever brings none has cost nothing: a page asks so before anybody has signed in.
      if (authorization !== undefined && isTapeError(error, "TAPE_UNAUTHENTICATED")) this.#failures.count(address);
      throw error;
    }
  }

  async stillGood(authorization: string | undefined): Promise<boolean> {
    try {
      await this.#caller(authorization, undefined);
      return true;
    } catch (error) {
      return !isTapeError(error, "TAPE_UNAUTHENTICATED"); // a store that is away says nothing about a token
    }
  }

  async #caller(authorization: string | undefined, address: string | undefined): Promise<Caller> {
    const [, id, secret] = tokenText.exec(/^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1] ?? "") ?? [];
    if (id === undefined || secret === undefined) {
      throw refused(authorization === undefined ? "no credential was sent" : "this is no token of the form id.secret");
    }
    const hash = hashOf(secret);
    const free = address === undefined || this.#good.get(id) === hash;
    const token = this.#bootstrap?.id === id ? this.#bootstrap : await this.#token(id, free ? undefined : address);
    // Compared also where there is no such token: an unknown id takes as long as a wrong secret.
    const same = sameHash(hash, token?.hash ?? hashOf("nobody's"));
    if (token === undefined || !same) throw refused("there is no such token");
    if (token.revokedAt !== null) throw refused("this token was revoked");
    if (token.expiresAt !== null && token.expiresAt <= this.#options.clock.wall())
      throw refused("this token has expired");
    this.#good.set(id, hash);
    if (this.#good.size > maxRemembered) this.#good.delete(this.#good.keys().next().value!);
    this.#touch(token);
    return { tenant: token.tenant, role: roleOf(token), name: token.name, token: id };
  }

  #token(id: string, address: string | undefined): Promise<ApiToken | undefined> {
    const now = this.#options.clock.mono();
    const remembered = this.#remembered.get(id);
    if (remembered !== undefined && now - remembered.at < rememberedMs) return remembered.token;
    if (address !== undefined) this.#failures.look(address);
    const token = this.#options.store.read.token(id);
    this.#remembered.delete(id);
    this.#remembered.set(id, { at: now, token });
    token.catch(() => this.#remembered.delete(id)); // the store was away: the next one asks again
    if (this.#remembered.size > maxRemembered) this.#remembered.delete(this.#remembered.keys().next().value!);
    return token;
  }

  /** Notes the use of a token whose secret was right; of the bootstrap token nothing is kept. */
  #touch({ id, usedAt }: ApiToken): void {
    const { store, clock, log } = this.#options;
    const now = clock.wall();
    if (id === this.#bootstrap?.id || Math.max(usedAt ?? 0, this.#touched.get(id) ?? 0) >= now - touchMs) return;
    this.#touched.set(id, now);
    if (this.#touched.size > maxRemembered) this.#touched.delete(this.#touched.keys().next().value!);
    store.intake
      .touchToken(id)
      .catch((error) => log("warn", "server.token_touch_failed", { token: id, ...errorFields(error) }));
  }
}

/** Looks for ids that nobody has seen, a second, for all the addresses together from which too many bad ones came. */
const sparedLooks = 200;

/**
 * Bad credentials by the address they came from: so many in a minute, then it must wait. A good one among them is still
 * found, because a proxy's address is that of many: its id is looked for as long as all such looks together are few.
 */
class FailedSignIns {
  readonly #most: number;
  readonly #clock: Clock;
  readonly #left = new Buckets(maxRemembered);
  readonly #spared: Bucket;

  constructor(most: number, clock: Clock) {
    this.#most = most;
    this.#clock = clock;
    this.#spared = new Bucket(sparedLooks, sparedLooks, clock);
  }

  /** Before the store is asked for an id that is not known here. */
  look(address: string): void {
    const { waitMs } = this.#of(address);
    if (waitMs > 0 && !this.#spared.tryTake()) throw tooMany(waitMs);
  }

  /** A bad one came. */
  count(address: string): void {
    const left = this.#of(address);
    const { waitMs } = left;
    if (waitMs > 0) throw tooMany(waitMs);
    left.take();
  }

  #of(address: string): Bucket {
    return this.#left.of(address, () => new Bucket(this.#most / 60, this.#most, this.#clock));
  }
}

function tooMany(retryAfterMs: number): TapeError {
  const message = `too many bad credentials came from here; try again in ${retryAfterMs} ms`;
  return new TapeError("TAPE_RATE_LIMITED", message, { retryAfterMs });
}

function bootstrapToken(text: string, tenant: string): ApiToken {
  const [, id, secret] = tokenText.exec(text) ?? [];
  if (id === undefined || secret === undefined) {
    const message = "tape.server.bootstrap_token must be id.secret, with at least 32 characters of secret";
    throw new TapeError("TAPE_BAD_CONFIG", message);
  }
  const ever = { createdAt: 0, expiresAt: null, revokedAt: null, usedAt: null };
  return { id, tenant, name: bootstrapName, role: "admin", hash: hashOf(secret), ...ever };
}

function sameHash(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

function roleOf({ role, id }: ApiToken): Role {
  const known = roles.find((one) => one === role);
  if (known === undefined) throw refused(`token ${id} has a role that this version does not know`);
  return known;
}

function refused(why: string): TapeError {
  return new TapeError("TAPE_UNAUTHENTICATED", why);
}
