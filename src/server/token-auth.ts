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
import { FailedSignIns } from "./failed-sign-ins.ts";
import type { Caller, TokenLifetimes } from "./handler-types.ts";

/** 32 bytes cannot be guessed. Failed tries are counted all the same, because each may cost a read of the store. */
const secretBytes = 32;
/** A revoked token ends within five seconds everywhere: three for the cache, the rest for the read itself. */
const cacheMs = 3_000;
const maxCached = 10_000;
const touchMs = 60_000;

/** `id.secret` as a caller sends it. */
const tokenText = /^([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_-]{32,256})$/;

export interface Credentials {
  /**
   * The caller with this header; throws TAPE_UNAUTHENTICATED, or TAPE_RATE_LIMITED for a bad credential from an address
   * that sent too many of them. A good credential is accepted from every address.
   */
  caller(authorization: string | undefined, from?: string): Promise<Caller>;
  /** Whether a credential that opened a stream is still valid. */
  isStillValid(authorization: string | undefined): Promise<boolean>;
}

export const hashOf = (secret: string): string => createHash("sha256").update(secret).digest("hex");

/** A new token. Its id may be shown; its secret is returned once. */
export function mintToken(random: Random): { readonly id: string; readonly secret: string; readonly hash: string } {
  const id = plainId(random);
  const secret = Buffer.from(random.bytes(secretBytes)).toString("base64url");
  return { id, secret, hash: hashOf(secret) };
}

/** One in 64 would start with a hyphen, and a command line would read it as an option. */
function plainId(random: Random): string {
  for (;;) {
    const id = Buffer.from(random.bytes(9)).toString("base64url");
    if (!id.startsWith("-")) return id;
  }
}

/** The lifetime of a new token: the requested one, within this server's bounds. */
export function lifetimeOf(requestedMs: number | undefined, { defaultMs, maxMs }: TokenLifetimes): number | undefined {
  if (requestedMs !== undefined && maxMs !== undefined && requestedMs > maxMs) {
    throw new TapeError("TAPE_BAD_INPUT", `a token may live at most ${maxMs} ms (tape.server.tokens.max_days)`, {
      ...{ field: "expiresInMs", maxMs },
    });
  }
  const defaulted = requestedMs ?? defaultMs ?? maxMs;
  return defaulted === undefined || maxMs === undefined ? defaulted : Math.min(defaulted, maxMs);
}

/** Without credentials every caller is admin, so only a loopback address may be bound. */
export function noAuth(caller: Caller): Credentials {
  return { caller: async () => caller, isStillValid: async () => true };
}

export interface TokenAuthOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** `id.secret` of an admin of `tenant`, for creating the first tokens. */
  readonly bootstrap: string | undefined;
  readonly tenant: string;
  readonly failedSignIns: number;
}

interface CachedToken {
  readonly at: number;
  readonly token: Promise<ApiToken | undefined>;
}

/** Authenticates by the store's tokens; reads each at most every few seconds. */
export class TokenAuth implements Credentials {
  readonly #options: TokenAuthOptions;
  readonly #bootstrap: ApiToken | undefined;
  readonly #cached = new Map<string, CachedToken>();
  /** Hashes of secrets that were accepted, by the token's id. */
  readonly #good = new Map<string, string>();
  /** When a use was last recorded, so that at most one per minute is. */
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
      // A call without a credential has cost nothing: the dashboard makes one before the user signs in.
      if (authorization !== undefined && isTapeError(error, "TAPE_UNAUTHENTICATED")) this.#failures.count(address);
      throw error;
    }
  }

  async isStillValid(authorization: string | undefined): Promise<boolean> {
    try {
      await this.#caller(authorization, undefined);
      return true;
    } catch (error) {
      return !isTapeError(error, "TAPE_UNAUTHENTICATED"); // an unreachable store does not invalidate a token
    }
  }

  async #caller(authorization: string | undefined, address: string | undefined): Promise<Caller> {
    const [, id, secret] = tokenText.exec(/^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1] ?? "") ?? [];
    if (id === undefined || secret === undefined) {
      throw unauthenticated(
        authorization === undefined ? "no credential was sent" : "the credential is not of the form id.secret",
      );
    }
    const hash = hashOf(secret);
    const isKnown = address === undefined || this.#good.get(id) === hash;
    const token = this.#bootstrap?.id === id ? this.#bootstrap : await this.#token(id, isKnown ? undefined : address);
    // Compares also if there is no such token, so that an unknown id takes as long as a wrong secret.
    const same = sameHash(hash, token?.hash ?? hashOf("no token"));
    if (token === undefined || !same) throw unauthenticated("no such token");
    if (token.revokedAt !== null) throw unauthenticated("the token was revoked");
    if (token.expiresAt !== null && token.expiresAt <= this.#options.clock.wall())
      throw unauthenticated("the token has expired");
    this.#good.set(id, hash);
    if (this.#good.size > maxCached) this.#good.delete(this.#good.keys().next().value!);
    this.#touch(token);
    return { tenant: token.tenant, role: roleOf(token), name: token.name, token: id };
  }

  #token(id: string, address: string | undefined): Promise<ApiToken | undefined> {
    const now = this.#options.clock.mono();
    const cached = this.#cached.get(id);
    if (cached !== undefined && now - cached.at < cacheMs) return cached.token;
    if (address !== undefined) this.#failures.assertMayRead(address);
    const token = this.#options.store.read.token(id);
    this.#cached.delete(id);
    this.#cached.set(id, { at: now, token });
    token.catch(() => this.#cached.delete(id)); // the store was unreachable: the next call reads again
    if (this.#cached.size > maxCached) this.#cached.delete(this.#cached.keys().next().value!);
    return token;
  }

  /** Records the use of a token whose secret was right; nothing is recorded for the bootstrap token. */
  #touch({ id, usedAt }: ApiToken): void {
    const { store, clock, log } = this.#options;
    const now = clock.wall();
    if (id === this.#bootstrap?.id || Math.max(usedAt ?? 0, this.#touched.get(id) ?? 0) >= now - touchMs) return;
    this.#touched.set(id, now);
    if (this.#touched.size > maxCached) this.#touched.delete(this.#touched.keys().next().value!);
    store.intake
      .touchToken(id)
      .catch((error) => log("warn", "server.token_touch_failed", { token: id, ...errorFields(error) }));
  }
}

function bootstrapToken(text: string, tenant: string): ApiToken {
  const [, id, secret] = tokenText.exec(text) ?? [];
  if (id === undefined || secret === undefined) {
    const message = "tape.server.bootstrap_token must be id.secret, with at least 32 characters of secret";
    throw new TapeError("TAPE_BAD_CONFIG", message);
  }
  const lifetime = { createdAt: 0, expiresAt: null, revokedAt: null, usedAt: null };
  return { id, tenant, name: bootstrapName, role: "admin", hash: hashOf(secret), ...lifetime };
}

function sameHash(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

function roleOf({ role, id }: ApiToken): Role {
  const known = roles.find((name) => name === role);
  if (known === undefined) throw unauthenticated(`token ${id} has a role that this version does not know`);
  return known;
}

function unauthenticated(why: string): TapeError {
  return new TapeError("TAPE_UNAUTHENTICATED", why);
}
