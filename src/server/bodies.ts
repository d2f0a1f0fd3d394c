import { TapeError } from "../model/errors.ts";
import type { Route } from "../protocol/route.ts";
import { callbackBytes } from "../protocol/routes/talk.ts";
import type { ServerLimits } from "./limits.ts";

/** Size of a call without lists and values: only names and numbers. */
const smallBytes = 64 * 1024;
/** Size of a call with the longest allowed lists of names, with characters of several bytes. */
const namesBytes = 3 * 1024 * 1024;

/** The maximum body size of a call: the server's limit for a batch, otherwise what the call can need. */
export function maxBytes({ size }: Route, { bodyBytes }: ServerLimits, payloadBytes: number): number {
  if (size === "batch") return bodyBytes;
  // A value as a string inside JSON is up to twice as long, because its quotes are escaped.
  const payload = 2 * payloadBytes + smallBytes;
  const needed = { small: smallBytes, names: namesBytes, payload, callback: callbackBytes };
  return Math.min(bodyBytes, needed[size ?? "small"]);
}

/** Space for one call's body. It is counted until the call ends, because the parsed body lives that long. */
export interface BodyRoom {
  readonly maxBytes: number;
  /** Called before the bytes are read or unpacked; throws if there is no space for them. */
  take(bytes: number): void;
  leave(): void;
}

/**
 * Bytes of all bodies together. A tenant gets half and a token a quarter, so that a caller that slowly sends many large
 * bodies leaves space for others. A single body always fits.
 */
export class Bodies {
  readonly #limits: ServerLimits;
  readonly #held = new Map<string, number>();
  #all = 0;

  constructor(limits: ServerLimits) {
    this.#limits = limits;
  }

  get bytes(): number {
    return this.#all;
  }

  room(tenant: string, token: string | undefined, maxBytes: number): BodyRoom {
    const { bodiesBytes, bodyBytes } = this.#limits;
    const of: readonly (readonly [key: string, share: number])[] = [
      [`tenant ${tenant}`, Math.max(bodyBytes, bodiesBytes / 2)],
      ...(token === undefined ? [] : [[`token ${token}`, Math.max(bodyBytes, bodiesBytes / 4)] as const]),
    ];
    let taken = 0;
    return {
      maxBytes,
      take: (bytes) => {
        const full = of.some(([key, share]) => (this.#held.get(key) ?? 0) + bytes > share);
        if (full || this.#all + bytes > Math.max(bodyBytes, bodiesBytes)) {
          throw new TapeError("TAPE_OVERLOADED", "too many large bodies at once", { limit: "bodiesBytes" });
        }
        taken += bytes;
        this.#count(of, bytes);
      },
      leave: () => {
        this.#count(of, -taken);
        taken = 0;
      },
    };
  }

  #count(of: readonly (readonly [key: string, share: number])[], bytes: number): void {
    if (bytes === 0) return;
    this.#all += bytes;
    for (const [key] of of) {
      const now = (this.#held.get(key) ?? 0) + bytes;
      if (now === 0) this.#held.delete(key);
      else this.#held.set(key, now);
    }
  }
}
