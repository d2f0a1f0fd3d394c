import type { Clock } from "../base/clock.ts";
import { TapeError } from "../model/errors.ts";
import { Bucket, Buckets } from "./bucket.ts";
import type { ServerLimits } from "./limits.ts";

/**
 * Rooms of their own: renewals and appends, whose lateness costs leases; calls that wait for a run's end; streams; what
 * anybody may ask without a credential; all others. None can take another's.
 */
export type RoomKind = "requests" | "renewals" | "waiters" | "streams" | "open";

/** Who is counted: a tenant and within it one token; without a credential the call, and within it one address. */
export interface Counted {
  readonly tenant: string;
  readonly one: string | undefined;
}

/** A place in one of the rooms. */
export interface Place {
  /** Into another room, if there is a place in it; otherwise it refuses and the place stays. */
  move(kind: RoomKind): void;
  /** As many more as the call turned out to be worth, or a refusal. Whoever is alone in the room always gets them. */
  widen(more: number): void;
  leave(): void;
}

/** Callers that are remembered: those that came last. */
const maxBuckets = 20_000;
/** Of what its tenant may have: the tenant's other tokens are left a quarter. */
const tokenShare = 0.75;

/** How many at once and how fast: a place for each call under way, a bucket of calls for each tenant and token. */
export class Admission {
  readonly #limits: ServerLimits;
  readonly #clock: Clock;
  readonly #buckets = new Buckets(maxBuckets);
  readonly #active = new Map<string, number>();

  constructor(limits: ServerLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Takes one call out of the buckets, or refuses and says when there is one again. */
  pace(kind: RoomKind, { tenant, one }: Counted): void {
    const of = kind === "renewals" || kind === "open" ? kind : "calls";
    // What strangers ask is counted by their address alone: none of them makes another wait.
    const tenants = kind === "open" ? [] : [this.#bucket(`${of} of ${tenant}`, 1)];
    const tokens = one === undefined ? [] : [this.#bucket(`${of} of ${tenant} by ${one}`, tokenShare)];
    const buckets = [...tenants, ...tokens];
    const retryAfterMs = Math.max(0, ...buckets.map(({ waitMs }) => waitMs));
    if (retryAfterMs > 0) {
      const message = `more than ${this.#limits.ratePerSecond} calls a second; there is room again in ${retryAfterMs} ms`;
      throw new TapeError("TAPE_RATE_LIMITED", message, { retryAfterMs });
    }
    for (const bucket of buckets) bucket.take();
  }

  /** A call that turned out to be worth several: what it takes is missing to the next ones. */
  charge({ tenant, one }: Counted, calls: number): void {
    if (calls <= 0) return;
    this.#bucket(`calls of ${tenant}`, 1).take(calls);
    if (one !== undefined) this.#bucket(`calls of ${tenant} by ${one}`, tokenShare).take(calls);
  }

  /** Counts the call among those under way. */
  enter(kind: RoomKind, of: Counted): Place {
    let place: RoomKind | undefined = kind;
    let wide = 1;
    this.#take(kind, of, wide);
    return {
      move: (to) => {
        if (place === undefined || place === to) return;
        this.#take(to, of, wide);
        this.#give(place, of, wide);
        place = to;
      },
      widen: (more) => {
        if (place === undefined) return;
        const taken = Math.min(more, Math.min(...this.#shares(place)) - wide);
        if (taken <= 0) return;
        this.#take(place, of, taken);
        wide += taken;
      },
      leave: () => {
        if (place !== undefined) this.#give(place, of, wide);
        place = undefined;
      },
    };
  }

  /** How many of this tenant's are under way, in one of the rooms. */
  count(kind: RoomKind, tenant: string): number {
    return this.#active.get(`${kind} of ${tenant}`) ?? 0;
  }

  #bucket(key: string, share: number): Bucket {
    const { ratePerSecond, rateBurst } = this.#limits;
    const make = () => new Bucket(ratePerSecond * share, Math.max(1, rateBurst * share), this.#clock);
    return this.#buckets.of(key, make);
  }

  /** Of the whole room, of a tenant, of a token. */
  #shares(kind: RoomKind): readonly number[] {
    const most = kind === "open" ? Math.ceil(this.#limits.requests / 4) : this.#limits[kind];
    const half = Math.ceil(most / 2);
    return [most, half, Math.ceil(half * tokenShare)];
  }

  #take(kind: RoomKind, of: Counted, places: number): void {
    const shares = this.#shares(kind);
    const counts = keysOf(kind, of);
    if (counts.some((key, k) => (this.#active.get(key) ?? 0) + places > shares[k]!)) {
      throw new TapeError("TAPE_OVERLOADED", `too many ${kind} at once`, { limit: kind });
    }
    for (const key of counts) this.#active.set(key, (this.#active.get(key) ?? 0) + places);
  }

  #give(kind: RoomKind, of: Counted, places: number): void {
    for (const key of keysOf(kind, of)) {
      const now = (this.#active.get(key) ?? places) - places;
      if (now <= 0) this.#active.delete(key);
      else this.#active.set(key, now);
    }
  }
}

const keysOf = (kind: RoomKind, { tenant, one }: Counted): readonly string[] => [
  kind,
  `${kind} of ${tenant}`,
  ...(one === undefined ? [] : [`${kind} of ${tenant} by ${one}`]),
];
