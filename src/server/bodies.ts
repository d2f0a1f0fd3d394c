import { TapeError } from "../model/errors.ts";
import type { Route } from "../protocol/route.ts";
import type { ServerLimits } from "./limits.ts";

/** A call without lists and without a value: names and numbers. */
const smallBytes = 64 * 1024;
/** A list of names as long as may be, with letters that take several bytes. */
const namesBytes = 2 * 1024 * 1024;

/** How large a body this call may have: a batch as large as any, others what they can possibly need. */
export function maxBytes({ size }: Route, { bodyBytes }: ServerLimits, payloadBytes: number): number {
  if (size === "batch") return bodyBytes;
  // A value as text inside JSON is up to twice as long: each of its quotes is escaped.
  const needed = { small: smallBytes, names: namesBytes, payload: 2 * payloadBytes + smallBytes };
  return Math.min(bodyBytes, needed[size ?? "small"]);
}

/** Room for one call's body. What is taken is counted until the call is over: the parsed body lives as long. */
export interface BodyRoom {
  readonly most: number;
  /** Before the bytes are read or unpacked: refuses where there is no room for them. */
  take(bytes: number): void;
  leave(): void;
}

/**
 * Bytes of all bodies together. A tenant gets half and a token a quarter, so that one that sends many large ones slowly
 * leaves room for others; a single body always fits.
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

  room(tenant: string, token: string | undefined, most: number): BodyRoom {
    const { bodiesBytes, bodyBytes } = this.#limits;
    const of: readonly (readonly [key: string, share: number])[] = [
      [`tenant ${tenant}`, Math.max(bodyBytes, bodiesBytes / 2)],
      ...(token === undefined ? [] : [[`token ${token}`, Math.max(bodyBytes, bodiesBytes / 4)] as const]),
    ];
    let taken = 0;
    return {
      most,
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
