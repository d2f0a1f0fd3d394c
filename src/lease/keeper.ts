import { type BackoffOptions, backoffMs } from "../base/backoff.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import { type Log, silentLog } from "../base/log.ts";
import { type Random, systemRandom } from "../base/random.ts";
import { errorFields } from "../base/reason.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import type { Fence } from "../model/fence.ts";
import type {
  AcquireCondition,
  AcquireRequest,
  AcquireResult,
  Claimant,
  LeaseView,
  RenewRequest,
  RenewResult,
  Term,
} from "../model/lease.ts";
import type { NewRecord, TermEnd } from "../model/records.ts";
import { AcquireAttempt } from "./acquire-attempt.ts";
import type { ClockReading } from "./belief.ts";
import { Heartbeat } from "./heartbeat.ts";
import type { Identity } from "./identity.ts";
import { Lease, type LeaseCallbacks } from "./lease.ts";
import { LeaseCounts } from "./lease-counts.ts";
import { releaseTerm } from "./release.ts";
import { ReleaseWatcher, type WakeSource } from "./release-watcher.ts";
import { checkStall, type Timings, timingsFor, timingsOf } from "./timings.ts";

/** The part of a store that the keeper needs. */
export interface LeaseStore extends WakeSource {
  readonly transactionBoundMs: number;
  readonly limits: { readonly nameLength: number };
  readonly claim: {
    acquire(tenant: string, request: AcquireRequest): Promise<AcquireResult>;
    renew(renewals: readonly RenewRequest[]): Promise<RenewResult[]>;
  };
  readonly fenced: {
    append(fence: Fence, entry: { after: number; records: readonly NewRecord[] }): Promise<{ readonly head: number }>;
    checkpoint(fence: Fence, text: string | null): Promise<void>;
  };
}

/** Options of a {@link LeaseKeeper}. */
export interface KeeperOptions {
  readonly store: LeaseStore;
  readonly identity: Identity;
  readonly tenant?: string;
  /** TTL, heartbeat and trust. Default: 30 s, a third and five sixths of it. */
  readonly timings?: Partial<Timings>;
  /** Pauses of a standby that came too late to take over an expired lease. Default 1–10 s. */
  readonly takeover?: BackoffOptions;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Log;
  /** Counts the terms, together with those of other keepers. */
  readonly counts?: LeaseCounts;
}

/** Options of one acquire. */
export interface AcquireOptions {
  /** For whom the lease is acquired. */
  readonly reactor?: string;
  /** TTL, heartbeat and trust of this lease. Default: the keeper's. */
  readonly timings?: Partial<Timings>;
  /**
   * A holder that renews without {@link Lease.progress} for longer than this loses the lease, with the reason
   * "stalled". Default: no limit.
   */
  readonly maxStallMs?: number;
}

/** Options of {@link LeaseKeeper.acquire}, which stands by. */
export interface StandbyOptions extends AcquireOptions {
  readonly signal?: AbortSignal;
  /** Poll at least this often, in case a wake hint was lost. Default 5 s. */
  readonly pollMs?: number;
  /** The pauses after lost races for this lease. Default: the keeper's. */
  readonly takeover?: BackoffOptions;
}

/** Losers of a takeover race retry after 1–10 s, jittered, so that they do not all return at once. */
export const takeoverBackoff: BackoffOptions = { baseMs: 1_000, capMs: 10_000 };
/** Standbys check an expired lease within this time, each at its own moment, so that they do not all try at once. */
export const staleJitterMs = 100;
const defaultPollMs = 5_000;

/**
 * Acquires, renews and releases the leases of one process. All of them renew in one call, each with its own result.
 *
 * @example
 * const lease = await keeper.acquire("sweeper"); // stands by until it leads; undefined: it was closed meanwhile
 * lease?.assert(); // before each side effect
 * await lease?.release();
 */
export class LeaseKeeper {
  readonly identity: Identity;
  readonly timings: Timings;
  readonly counts: LeaseCounts;
  readonly #store: LeaseStore;
  readonly #tenant: string;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #log: Log;
  readonly #heartbeat: Heartbeat;
  readonly #callbacks: LeaseCallbacks;
  readonly #takeover: BackoffOptions;
  readonly #closed = new AbortController();

  /** Starts no heartbeat until it holds a lease. */
  constructor(options: KeeperOptions) {
    const { store, identity, tenant = "default", timings = {} } = options;
    this.#store = store;
    this.identity = identity;
    this.counts = options.counts ?? new LeaseCounts();
    this.#tenant = tenant;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? systemRandom;
    this.#takeover = options.takeover ?? takeoverBackoff;
    this.#log = options.log ?? silentLog;
    this.timings = timingsOf(timings, store.transactionBoundMs);
    this.#heartbeat = new Heartbeat({
      renew: (renewals) => store.claim.renew(renewals),
      clock: this.#clock,
      log: this.#log,
    });
    this.#callbacks = {
      clock: this.#clock,
      noteLength: store.limits.nameLength,
      renew: (lease) => this.#heartbeat.renewNow(lease),
      release: (lease, end) => this.#release(lease, end),
      checkpoint: (fence, text) => store.fenced.checkpoint(fence, text),
      forget: (lease) => this.#heartbeat.remove(lease),
      lost: ({ reactor }, reason) => this.counts.lost(reactor, reason),
      onFault: (error) => this.#log("error", "lease.listener_failed", { ...errorFields(error) }),
    };
  }

  /** Leases that this process holds or may hold. */
  get leases(): readonly Lease[] {
    return this.#heartbeat.leases;
  }

  /** This process as a claimant, for terms that the store grants with a new run or to a reactor's find. */
  claimant(reactor: string, { ttlMs }: Pick<Timings, "ttlMs"> = this.timings): Claimant {
    // Never shorter than the TTL that the trust window was checked against.
    return { ...this.identity, reactor, ttlMs: Math.ceil(ttlMs) };
  }

  /** One attempt at a free lease. undefined: it has a holder. */
  tryAcquire(name: string, options: AcquireOptions = {}): Promise<Lease | undefined> {
    return this.#try(name, "free", options);
  }

  /** One attempt at an expired lease. undefined: it has not expired, or it is free. */
  stealExpired(name: string, options: AcquireOptions = {}): Promise<Lease | undefined> {
    return this.#try(name, "expired", options);
  }

  /** One attempt at a lease that is free or expired. */
  acquireOrSteal(name: string, options: AcquireOptions = {}): Promise<Lease | undefined> {
    return this.#try(name, "free_or_expired", options);
  }

  /** Preempts a live holder, which is fenced at that instant. The term history keeps `by` and `auditReason`. */
  async takeover(name: string, by: string, auditReason: string, options: AcquireOptions = {}): Promise<Lease> {
    const request = { expect: "any", by, auditReason, reason: "manual" } as const;
    const result = await this.#request(name, request, options, this.#attempt());
    if (result instanceof Lease) return result;
    throw result.error;
  }

  /**
   * Stands by until it holds the lease; returns undefined if the signal aborts or the keeper is closed. Sleeps for the
   * rest of the holder's term, wakes on a release, and polls every `pollMs` in case the wake hint was lost. If another
   * standby takes over first, it pauses at least by `takeover`.
   */
  async acquire(name: string, options: StandbyOptions = {}): Promise<Lease | undefined> {
    const { pollMs = defaultPollMs, takeover = this.#takeover } = options;
    this.#assertOpen();
    const stop =
      options.signal === undefined ? this.#closed.signal : AbortSignal.any([this.#closed.signal, options.signal]);
    let attempt = this.#attempt();
    let last: LeaseView | undefined;
    for (let lostRaces = 0; !stop.aborted; ) {
      const watcher = new ReleaseWatcher(this.#store);
      try {
        const result = await this.#request(name, { expect: "free_or_expired" }, options, attempt);
        if (result instanceof Lease) return await this.#releaseIfStopped(stop, result);
        const { holder } = result;
        const isLive = holder !== undefined && holder.remainingMs > 0;
        const isTooLate = isLive && last !== undefined && holder.token > last.token;
        last = holder;
        lostRaces = isLive && !isTooLate ? 0 : lostRaces + 1;
        this.#log("debug", "lease.standby", { name, holder: holder?.label, remainingMs: holder?.remainingMs });
        const backoff = lostRaces > 0 ? backoffMs(lostRaces, takeover, this.#random) : 0;
        const pauseMs = isLive ? Math.max(pollMs, backoff) : backoff;
        const termMs = isLive ? holder.remainingMs + this.#random.float() * staleJitterMs : Number.POSITIVE_INFINITY;
        await watcher.wait(Math.min(pauseMs, termMs), holder?.journal, this.#clock, stop);
      } catch (error) {
        if (this.#closed.signal.aborted) return undefined;
        if (!isTapeError(error) || error.retry === "no") throw error;
        await this.#clock.sleep(backoffMs(++lostRaces, takeover, this.#random), stop);
      } finally {
        watcher.stop();
      }
      // While it is unknown whether the store granted the lease, only the same attempt can find out.
      if (!attempt.uncertain) attempt = this.#attempt();
    }
    return undefined;
  }

  /**
   * Only for a store that no other process can have open. Any other holder of the lease is then dead, so a term starts at
   * once. It is not renewed and its trust does not expire, because no process could take it over.
   */
  async acquireExclusive(
    name: string,
    holder: LeaseView | undefined,
    options: AcquireOptions = {},
  ): Promise<Lease | undefined> {
    const auditReason = "only this process has the store open, so the previous holder is dead";
    const gone = { expect: "any", by: this.identity.label, auditReason, reason: "recovery" } as const;
    const request = (holder?.owner ?? null) === null ? ({ expect: "free" } as const) : gone;
    const result = await this.#request(name, request, options, this.#attempt(), true);
    if (result instanceof Lease) return result;
    if (result.error.code === "TAPE_LEASE_HELD") return undefined;
    throw result.error;
  }

  /** Manages a term that the store granted with a new run or to a reactor's find; `reactor` for the counts. */
  adopt(name: string, term: Term, sent: ClockReading, options: Partial<Timings> & { reactor?: string } = {}): Lease {
    this.#assertOpen();
    const { reactor = "agent", ...timings } = options;
    const { ttlMs } = term;
    const own = timingsFor(this.timings, { ...timings, ttlMs }, this.#store.transactionBoundMs);
    return this.#keep(name, term, { timings: own, reactor, sent });
  }

  /** Stops renewing. Leases that were not released expire; release them first to hand over at once. */
  close(): void {
    this.#closed.abort();
    for (const lease of this.leases) lease.end("the keeper was closed");
    this.#heartbeat.stop();
  }

  #assertOpen(): void {
    if (this.#closed.signal.aborted) throw new TapeError("TAPE_STORE_CLOSED", "this keeper is closed");
  }

  #attempt(): AcquireAttempt {
    return new AcquireAttempt(this.#clock, this.#random);
  }

  async #try(name: string, expect: AcquireCondition, options: AcquireOptions): Promise<Lease | undefined> {
    const result = await this.#request(name, { expect }, options, this.#attempt());
    if (result instanceof Lease) return result;
    if (result.error.code === "TAPE_LEASE_HELD") return undefined;
    throw result.error;
  }

  async #request(
    name: string,
    condition: Pick<AcquireRequest, "expect" | "by" | "auditReason" | "reason">,
    options: AcquireOptions,
    attempt: AcquireAttempt,
    endless = false,
  ): Promise<Lease | Extract<AcquireResult, { ok: false }>> {
    this.#assertOpen();
    const timings = timingsFor(this.timings, options.timings ?? {}, this.#store.transactionBoundMs);
    const { reactor = "agent", maxStallMs } = options;
    checkStall(name, maxStallMs, timings);
    const claimant = { ...this.claimant(reactor, timings), ...defined({ maxStallMs }) };
    const request = { target: { name }, claimant, nonce: attempt.nonce, ...condition };
    const result = await attempt.send(() => this.#store.claim.acquire(this.#tenant, request));
    if (!result.ok) return result;
    const lease = this.#keep(name, result.term, {
      ...{ timings: endless ? withoutExpiry(timings) : timings, reactor, sent: attempt.sent },
    });
    if (this.#closed.signal.aborted) {
      await this.#writeRelease(lease, "released", timings.heartbeatMs);
      throw new TapeError("TAPE_STORE_CLOSED", "this keeper was closed while it acquired; the lease was released");
    }
    if (lease.belief === "lost") {
      await this.#writeRelease(lease, "never_confirmed", timings.heartbeatMs);
      const message = "the grant arrived too late to be trusted; the lease was released";
      throw new TapeError("TAPE_STORE_BUSY", message, { name, trustMs: timings.trustMs });
    }
    return lease;
  }

  async #releaseIfStopped(stop: AbortSignal, lease: Lease): Promise<Lease | undefined> {
    if (!stop.aborted) return lease;
    await lease.release(); // the keeper stopped while acquiring, and no caller waits for the lease
    return undefined;
  }

  #keep(name: string, term: Term, kept: { timings: Timings; reactor: string; sent: ClockReading }): Lease {
    const lease = new Lease(name, term, kept, this.#callbacks);
    this.counts.granted(kept.reactor, term);
    this.#heartbeat.add(lease);
    this.#log("info", "lease.acquired", { ...this.identity, name, token: lease.token, reason: term.reason });
    return lease;
  }

  /** The holder stops trusting before it writes the release: the successor may act before our response arrives. */
  async #release(lease: Lease, end: TermEnd): Promise<boolean> {
    const withinMs = lease.remainingMs();
    if (withinMs === 0) return false;
    lease.end(end);
    return this.#writeRelease(lease, end, Math.min(withinMs, lease.timings.ttlMs));
  }

  async #writeRelease(lease: Lease, end: TermEnd, withinMs: number): Promise<boolean> {
    const append: LeaseStore["fenced"]["append"] = (fence, entry) => this.#store.fenced.append(fence, entry);
    const { acknowledged, error } = await releaseTerm(lease, end, withinMs, {
      append,
      clock: this.#clock,
      random: this.#random,
    });
    const { name, token } = lease;
    const why = error === undefined ? {} : { ...errorFields(error) };
    this.#log("info", acknowledged ? "lease.released" : "lease.release_failed", {
      name,
      token,
      endReason: end,
      ...why,
    });
    return acknowledged;
  }
}

function withoutExpiry({ ttlMs }: Timings): Timings {
  return { ttlMs, heartbeatMs: Number.POSITIVE_INFINITY, trustMs: Number.POSITIVE_INFINITY };
}
