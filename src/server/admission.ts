import type { Clock } from "../base/clock.ts";
import { TapeError } from "../model/errors.ts";
import type { ServerLimits } from "./limits.ts";

interface Bucket {
  tokens: number;
  at: number;
}

/** How many at once and how fast: one bucket of calls for each tenant, one count for each kind of call. */
export class Admission {
  readonly #limits: ServerLimits;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();
  readonly #under: Record<"requests" | "streams", Map<string, number>> = { requests: new Map(), streams: new Map() };
  readonly #all = { requests: 0, streams: 0 };

  constructor(limits: ServerLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Takes one call out of the tenant's bucket, or refuses and says when there is one again. */
  pace(tenant: string): void {
    const { ratePerSecond, rateBurst } = this.#limits;
    const now = this.#clock.mono();
    const bucket = this.#buckets.get(tenant) ?? { tokens: rateBurst, at: now };
    this.#buckets.set(tenant, bucket);
    bucket.tokens = Math.min(rateBurst, bucket.tokens + ((now - bucket.at) / 1_000) * ratePerSecond);
    bucket.at = now;
    if (bucket.tokens < 1) {
      const retryAfterMs = Math.ceil(((1 - bucket.tokens) / ratePerSecond) * 1_000);
      const message = `more than ${ratePerSecond} calls a second; there is room again in ${retryAfterMs} ms`;
      throw new TapeError("TAPE_RATE_LIMITED", message, { retryAfterMs });
    }
    bucket.tokens--;
  }

  /** Counts the call among those under way; the returned function ends it. */
  enter(kind: "requests" | "streams", tenant: string): () => void {
    const most = this.#limits[kind];
    const of = this.#under[kind];
    const mine = of.get(tenant) ?? 0;
    if (this.#all[kind] >= most || mine >= Math.ceil(most / 2)) {
      throw new TapeError("TAPE_OVERLOADED", `too many ${kind} at once`, { limit: kind });
    }
    this.#all[kind]++;
    of.set(tenant, mine + 1);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#all[kind]--;
      const now = (of.get(tenant) ?? 1) - 1;
      if (now === 0) of.delete(tenant);
      else of.set(tenant, now);
    };
  }
}
