import { createHash, timingSafeEqual } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { errorFields } from "../base/reason.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import { type Role, roles } from "../protocol/route.ts";
import type { ApiToken, Store } from "../store/contract.ts";
import { bootstrapName } from "../store/entrance.ts";
import type { Caller, TokenLifetimes } from "./handler.ts";

/** 32 bytes: nobody finds one by trying. Tries are counted all the same, because each may cost a look into the store. */
const secretBytes = 32;
/** A revoked token ends within five seconds everywhere: three of the cache, the rest for the read itself. */
const rememberedMs = 3_000;
const mostRemembered = 10_000;
const touchMs = 60_000;
const minuteMs = 60_000;

/** `id.secret` as a caller brings it. */
const tokenText = /^([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_-]{32,256})$/;

export interface Credentials {
  /**
   * Who brings this header; refuses with TAPE_UNAUTHENTICATED, and with TAPE_RATE_LIMITED an address from which too many
   * bad ones came, unless it brings one that was good lately.
   */
  caller(authorization: string | undefined, from?: string): Promise<Caller>;
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
export function openDoor(caller: Caller): Credentials {
  return { caller: async () => caller };
}

export interface CheckedOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** `id.secret` of an admin of `tenant`, to make the first tokens with. */
  readonly bootstrap: string | undefined;
  readonly tenant: string;
  readonly failedSignIns: number;
}

interface Remembered {
  readonly at: number;
  readonly token: Promise<ApiToken | undefined>;
}

/** Tokens of the store, looked up at most every few seconds each. */
export class CheckedDoor implements Credentials {
  readonly #options: CheckedOptions;
  readonly #bootstrap: ApiToken | undefined;
  readonly #remembered = new Map<string, Remembered>();
  /** Hashes of secrets that were good, by the token's id. */
  readonly #good = new Map<string, string>();
  readonly #failures: Failures;

  constructor(options: CheckedOptions) {
    this.#options = options;
    this.#failures = new Failures(options.failedSignIns, options.clock);
    this.#bootstrap = options.bootstrap === undefined ? undefined : bootstrapToken(options.bootstrap, options.tenant);
  }

  async caller(authorization: string | undefined, from = ""): Promise<Caller> {
    try {
      return await this.#caller(authorization, from);
    } catch (error) {
      // Whoever brings none has cost nothing: a page asks so before anybody has signed in.
      if (authorization !== undefined && isTapeError(error, "TAPE_UNAUTHENTICATED")) this.#failures.count(from);
      throw error;
    }
  }

  async #caller(authorization: string | undefined, from: string): Promise<Caller> {
    const [, id, secret] = tokenText.exec(/^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1] ?? "") ?? [];
    if (id === undefined || secret === undefined) {
      throw refused(authorization === undefined ? "no credential was sent" : "this is no token of the form id.secret");
    }
    const hash = hashOf(secret);
    if (this.#good.get(id) !== hash) this.#failures.check(from);
    const token = this.#bootstrap?.id === id ? this.#bootstrap : await this.#token(id);
    // Compared also where there is no such token: an unknown id takes as long as a wrong secret.
    const same = sameHash(hash, token?.hash ?? hashOf("nobody's"));
    if (token === undefined || !same) throw refused("there is no such token");
    if (token.revokedAt !== null) throw refused("this token was revoked");
    if (token.expiresAt !== null && token.expiresAt <= this.#options.clock.wall())
      throw refused("this token has expired");
    this.#good.set(id, hash);
    if (this.#good.size > mostRemembered) this.#good.delete(this.#good.keys().next().value!);
    return { tenant: token.tenant, role: roleOf(token), name: token.name, token: id };
  }

  #token(id: string): Promise<ApiToken | undefined> {
    const now = this.#options.clock.mono();
    const remembered = this.#remembered.get(id);
    if (remembered !== undefined && now - remembered.at < rememberedMs) return remembered.token;
    const token = this.#read(id);
    this.#remembered.delete(id);
    this.#remembered.set(id, { at: now, token });
    token.catch(() => this.#remembered.delete(id)); // the store was away: the next one asks again
    if (this.#remembered.size > mostRemembered) this.#remembered.delete(this.#remembered.keys().next().value!);
    return token;
  }

  async #read(id: string): Promise<ApiToken | undefined> {
    const { store, clock, log } = this.#options;
    const token = await store.read.token(id);
    if (token !== undefined && (token.usedAt ?? 0) < clock.wall() - touchMs) {
      store.intake
        .touchToken(id)
        .catch((error) => log("warn", "server.token_untouched", { token: id, ...errorFields(error) }));
    }
    return token;
  }
}

/** Bad credentials by the address they came from: so many in a minute, then it must wait. */
class Failures {
  readonly #most: number;
  readonly #clock: Clock;
  readonly #left = new Map<string, { left: number; at: number }>();

  constructor(most: number, clock: Clock) {
    this.#most = most;
    this.#clock = clock;
  }

  check(from: string): void {
    const { left } = this.#of(from);
    if (left >= 1) return;
    const retryAfterMs = Math.ceil(((1 - left) / this.#most) * minuteMs);
    const message = `too many bad credentials came from here; try again in ${retryAfterMs} ms`;
    throw new TapeError("TAPE_RATE_LIMITED", message, { retryAfterMs });
  }

  count(from: string): void {
    const one = this.#of(from);
    this.#left.delete(from);
    this.#left.set(from, { ...one, left: Math.max(0, one.left - 1) });
    if (this.#left.size > mostRemembered) this.#left.delete(this.#left.keys().next().value!);
  }

  #of(from: string): { readonly left: number; readonly at: number } {
    const at = this.#clock.mono();
    const before = this.#left.get(from);
    if (before === undefined) return { left: this.#most, at };
    return { left: Math.min(this.#most, before.left + ((at - before.at) / minuteMs) * this.#most), at };
  }
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
