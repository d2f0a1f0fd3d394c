import { createHash, timingSafeEqual } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { TapeError } from "../model/errors.ts";
import { type Role, roles } from "../protocol/route.ts";
import type { ApiToken, Store } from "../store/contract.ts";
import type { Caller } from "./handler.ts";

/** 32 bytes: nobody finds one by trying, so tries need not be counted. */
const secretBytes = 32;
/** A revoked token ends within five seconds everywhere: three of the cache, the rest for the read itself. */
const rememberedMs = 3_000;
const mostRemembered = 10_000;
const touchMs = 60_000;

/** `id.secret` as a caller brings it. */
const tokenText = /^([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_-]{32,256})$/;

export interface Credentials {
  /** Who brings this header; refuses with TAPE_UNAUTHENTICATED. */
  caller(authorization: string | undefined): Promise<Caller>;
}

export const hashOf = (secret: string): string => createHash("sha256").update(secret).digest("hex");

/** A fresh token: its id may be shown, its secret is told once. */
export function mintToken(random: Random): { readonly id: string; readonly secret: string; readonly hash: string } {
  const id = Buffer.from(random.bytes(9)).toString("base64url");
  const secret = Buffer.from(random.bytes(secretBytes)).toString("base64url");
  return { id, secret, hash: hashOf(secret) };
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

  constructor(options: CheckedOptions) {
    this.#options = options;
    this.#bootstrap = options.bootstrap === undefined ? undefined : bootstrapToken(options.bootstrap, options.tenant);
  }

  async caller(authorization: string | undefined): Promise<Caller> {
    const [, id, secret] = tokenText.exec(/^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1] ?? "") ?? [];
    if (id === undefined || secret === undefined) {
      throw refused(authorization === undefined ? "no credential was sent" : "this is no token of the form id.secret");
    }
    const token = this.#bootstrap?.id === id ? this.#bootstrap : await this.#token(id);
    // Compared also where there is no such token: an unknown id takes as long as a wrong secret.
    const same = sameHash(hashOf(secret), token?.hash ?? hashOf("nobody's"));
    if (token === undefined || !same) throw refused("there is no such token");
    if (token.revokedAt !== null) throw refused("this token was revoked");
    if (token.expiresAt !== null && token.expiresAt <= this.#options.clock.wall())
      throw refused("this token has expired");
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
        .catch((error) => log("warn", "server.token_untouched", { token: id, error: String(error) }));
    }
    return token;
  }
}

function bootstrapToken(text: string, tenant: string): ApiToken {
  const [, id, secret] = tokenText.exec(text) ?? [];
  if (id === undefined || secret === undefined) {
    const message = "tape.server.bootstrap_token must be id.secret, with at least 32 characters of secret";
    throw new TapeError("TAPE_BAD_CONFIG", message);
  }
  const ever = { createdAt: 0, expiresAt: null, revokedAt: null, usedAt: null };
  return { id, tenant, name: "bootstrap", role: "admin", hash: hashOf(secret), ...ever };
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
