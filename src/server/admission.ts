import type { Clock } from "../base/clock.ts";
import { TapeError } from "../model/errors.ts";
import { Bucket, Buckets } from "./bucket.ts";
import type { ServerLimits } from "./limits.ts";

/**
 * Calls are counted in separate rooms, and no room can use up another's places: renewals and appends, whose lateness
 * costs leases; calls that wait for a run's end; streams; calls without a credential; all others.
 */
export type RoomKind = "requests" | "renewals" | "waiters" | "streams" | "open";

/** Who is counted: a tenant and one of its tokens or, without a credential, a call and one address. */
export interface CountedCaller {
  readonly tenant: string;
  readonly member: string | undefined;
}

/** A place in one of the rooms. */
export interface Place {
  /** Moves to another room; throws if that room is full, and the place stays. */
  move(kind: RoomKind): void;
  /** Takes more places for a large call, or throws. A caller that is alone in the room always gets them. */
  widen(more: number): void;
  leave(): void;
}

/** Buckets kept: those used last. */
const maxBuckets = 20_000;
/** A token's share of its tenant's limit. A quarter is left for the tenant's other tokens. */
const tokenShare = 0.75;

/** Limits concurrency and rate: a place for each call in progress, a bucket of calls for each tenant and token. */
export class Admission {
  readonly #limits: ServerLimits;
  readonly #clock: Clock;
  readonly #buckets = new Buckets(maxBuckets);
  readonly #active = new Map<string, number>();

  constructor(limits: ServerLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Takes one call out of the buckets, or throws with the time until the next one. */
  pace(kind: RoomKind, { tenant, member }: CountedCaller): void {
    const of = kind === "renewals" || kind === "open" ? kind : "calls";
    // Calls without a credential are counted by address alone: one address does not delay another.
    const tenants = kind === "open" ? [] : [this.#bucket(`${of} of ${tenant}`, 1)];
    const tokens = member === undefined ? [] : [this.#bucket(`${of} of ${tenant} by ${member}`, tokenShare)];
    const buckets = [...tenants, ...tokens];
    const retryAfterMs = Math.max(0, ...buckets.map(({ waitMs }) => waitMs));
    if (retryAfterMs > 0) {
      const message = `more than ${this.#limits.ratePerSecond} calls a second; retry in ${retryAfterMs} ms`;
      throw new TapeError("TAPE_RATE_LIMITED", message, { retryAfterMs });
    }
    for (const bucket of buckets) bucket.take();
  }

  /** Charges a large call as several; later calls wait for it. */
  charge({ tenant, member }: CountedCaller, calls: number): void {
    if (calls <= 0) return;
    this.#bucket(`calls of ${tenant}`, 1).take(calls);
    if (member !== undefined) this.#bucket(`calls of ${tenant} by ${member}`, tokenShare).take(calls);
  }

  /** Counts the call as in progress. */
  enter(kind: RoomKind, of: CountedCaller): Place {
    let place: RoomKind | undefined = kind;
    let width = 1;
    this.#take(kind, of, width);
    return {
      move: (to) => {
        if (place === undefined || place === to) return;
        this.#take(to, of, width);
        this.#free(place, of, width);
        place = to;
      },
      widen: (more) => {
        if (place === undefined) return;
        const taken = Math.min(more, Math.min(...this.#shares(place)) - width);
        if (taken <= 0) return;
        this.#take(place, of, taken);
        width += taken;
      },
      leave: () => {
        if (place !== undefined) this.#free(place, of, width);
        place = undefined;
      },
    };
  }

  /** Number of this tenant's calls in one room. */
  count(kind: RoomKind, tenant: string): number {
    return this.#active.get(`${kind} of ${tenant}`) ?? 0;
  }

  #bucket(key: string, share: number): Bucket {
    const { ratePerSecond, rateBurst } = this.#limits;
    const make = () => new Bucket(ratePerSecond * share, Math.max(1, rateBurst * share), this.#clock);
    return this.#buckets.of(key, make);
  }

  /** Maximum places of the whole room, of a tenant and of a token. */
  #shares(kind: RoomKind): readonly number[] {
    const max = kind === "open" ? Math.ceil(this.#limits.requests / 4) : this.#limits[kind];
    const half = Math.ceil(max / 2);
    return [max, half, Math.ceil(half * tokenShare)];
  }

  #take(kind: RoomKind, of: CountedCaller, places: number): void {
    const shares = this.#shares(kind);
    const counts = keysOf(kind, of);
    if (counts.some((key, k) => (this.#active.get(key) ?? 0) + places > shares[k]!)) {
      throw new TapeError("TAPE_OVERLOADED", `too many ${kind} at once`, { limit: kind });
    }
    for (const key of counts) this.#active.set(key, (this.#active.get(key) ?? 0) + places);
  }

  #free(kind: RoomKind, of: CountedCaller, places: number): void {
    for (const key of keysOf(kind, of)) {
      const now = (this.#active.get(key) ?? places) - places;
      if (now <= 0) this.#active.delete(key);
      else this.#active.set(key, now);
    }
  }
}

const keysOf = (kind: RoomKind, { tenant, member }: CountedCaller): readonly string[] => [
  kind,
  `${kind} of ${tenant}`,
  ...(member === undefined ? [] : [`${kind} of ${tenant} by ${member}`]),
];
