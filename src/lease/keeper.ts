import { backoffMs } from "../base/backoff.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import { type Log, silentLog } from "../base/log.ts";
import { type Random, systemRandom } from "../base/random.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import type { Fence } from "../model/fence.ts";
import type { Acquired, AcquireRequest, Expectation, LeaseView, Renewal, Renewed, Term } from "../model/lease.ts";
import type { NewRecord, TermEnd } from "../model/records.ts";
import { type Moment, momentOf } from "./belief.ts";
import { Heartbeat } from "./heartbeat.ts";
import type { Identity } from "./identity.ts";
import { Lease } from "./lease.ts";
import { type Timings, timingsOf } from "./timings.ts";

/** What the keeper needs of a store. */
export interface LeaseStore {
  readonly transactionBoundMs: number;
  readonly claim: {
    acquire(tenant: string, request: AcquireRequest): Promise<Acquired>;
    renew(renewals: readonly Renewal[]): Promise<Renewed[]>;
  };
  readonly fenced: {
    append(fence: Fence, entry: { after: number; records: readonly NewRecord[] }): Promise<{ readonly head: number }>;
  };
  onWake(listener: (wake: { readonly of: string; readonly journal?: number }) => void): () => void;
}

export interface KeeperOptions {
  readonly store: LeaseStore;
  readonly identity: Identity;
  readonly tenant?: string;
  readonly timings?: Partial<Timings>;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Log;
}

export interface AcquireOptions {
  readonly reactor?: string;
  readonly timings?: Partial<Timings>;
  /** Renewals without {@link Lease.progress} for longer than this lose the lease, with the reason "stalled". */
  readonly maxStallMs?: number;
}

export interface StandbyOptions extends AcquireOptions {
  readonly signal?: AbortSignal;
  /** Look at least so often, in case a notification was lost. Default 5 s. */
  readonly pollMs?: number;
}

/** L11: losers of a takeover race come back after 1–10 s, jittered, so that there is no herd. */
const takeoverBackoff = { baseMs: 1_000, capMs: 10_000 };
const defaultPollMs = 5_000;

/**
 * Acquires, renews and gives back the leases of one process. All of them renew in one call, each with its own verdict.
 *
 * @example
 * const lease = await keeper.acquire("sweeper");        // stands by until it leads
 * lease.assert();                                       // before each act
 * await lease.release();
 */
export class LeaseKeeper {
  readonly identity: Identity;
  readonly timings: Timings;
  readonly #store: LeaseStore;
  readonly #tenant: string;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #log: Log;
  readonly #heartbeat: Heartbeat;
  #closed = false;

  constructor(options: KeeperOptions) {
    const { store, identity, tenant = "default", timings = {} } = options;
    this.#store = store;
    this.identity = identity;
    this.#tenant = tenant;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? systemRandom;
    this.#log = options.log ?? silentLog;
    this.timings = timingsOf(timings, store.transactionBoundMs);
    this.#heartbeat = new Heartbeat({
      renew: (renewals) => store.claim.renew(renewals),
      clock: this.#clock,
      log: this.#log,
    });
  }

  /** Leases this process holds or may hold. */
  get leases(): readonly Lease[] {
    return this.#heartbeat.leases;
  }

  /** One try for a lease that nobody holds. undefined: somebody does. */
  tryAcquire(name: string, options: AcquireOptions = {}): Promise<Lease | undefined> {
    return this.#attempt(name, "free", options);
  }

  /** One try for a lease whose holder's time has run out. */
  stealExpired(name: string, options: AcquireOptions = {}): Promise<Lease | undefined> {
    return this.#attempt(name, "expired", options);
  }

  /** One try for a lease that is free or expired. */
  acquireOrSteal(name: string, options: AcquireOptions = {}): Promise<Lease | undefined> {
    return this.#attempt(name, "free_or_expired", options);
  }

  /** Pre-empts a live holder, who is fenced at that instant. `by` and `why` go into the ledger. */
  async takeover(name: string, by: string, why: string, options: AcquireOptions = {}): Promise<Lease> {
    const { lease, refused } = await this.#ask(name, "any", options, { by, why, reason: "manual" });
    if (lease === undefined) throw refused!.error;
    return lease;
  }

  /**
   * Stands by until the lease is ours, or the signal aborts (then undefined). Sleeps exactly as long as the store says the
   * holder's term lasts, is woken by a release, and looks every `pollMs` in case the notification was lost.
   */
  async acquire(name: string, options: StandbyOptions = {}): Promise<Lease | undefined> {
    const { signal, pollMs = defaultPollMs } = options;
    let lostRaces = 0;
    for (;;) {
      if (signal?.aborted) return undefined;
      // Listening begins before the question: a release between the two is not missed.
      const wake = this.#wakeOf();
      try {
        const { lease, refused } = await this.#ask(name, "free_or_expired", options);
        if (lease !== undefined) return await this.#unlessAborted(lease, signal);
        const { holder } = refused!;
        this.#log("debug", "lease.standby", { name, holder: holder?.label, remainingMs: holder?.remainingMs });
        await wake.within(this.#pauseMs(holder, pollMs, ++lostRaces), holder?.journal, signal, this.#clock);
        if (holder !== undefined && holder.remainingMs > 0) lostRaces = 0;
      } catch (error) {
        if (!isTapeError(error) || error.retry === "no") throw error;
        await this.#clock.sleep(backoffMs(++lostRaces, takeoverBackoff, this.#random), signal);
      } finally {
        wake.stop();
      }
    }
  }

  /** Takes care of a term that the store granted otherwise: with a new run, or by a reactor's find. */
  adopt(name: string, term: Term, sent: Moment, timings: Partial<Timings> = {}): Lease {
    const checked = timingsOf({ ...this.timings, ...timings, ttlMs: term.ttlMs }, this.#store.transactionBoundMs);
    return this.#keep(new Lease(name, term, checked, sent, this.#care()));
  }

  /** Stops renewing. Leases that were not released run out by themselves; release them first to hand over at once. */
  close(): void {
    this.#closed = true;
    for (const lease of this.leases) lease.lost("the keeper was closed");
    this.#heartbeat.stop();
  }

  async #attempt(name: string, expect: Expectation, options: AcquireOptions): Promise<Lease | undefined> {
    const { lease, refused } = await this.#ask(name, expect, options);
    if (lease !== undefined) return lease;
    if (refused!.error.code === "TAPE_LEASE_HELD") return undefined;
    throw refused!.error;
  }

  /** Repeats the same attempt, by its nonce, while answers get lost: it neither blocks itself nor bumps the token again. */
  async #ask(
    name: string,
    expect: Expectation,
    options: AcquireOptions,
    more: Partial<AcquireRequest> = {},
  ): Promise<{ lease?: Lease; refused?: Extract<Acquired, { ok: false }> }> {
    if (this.#closed) throw new TapeError("TAPE_STORE_CLOSED", "this keeper is closed");
    const timings = timingsOf({ ...this.timings, ...options.timings }, this.#store.transactionBoundMs);
    const { reactor = "agent", maxStallMs } = options;
    const claimant = {
      ...this.identity,
      reactor,
      ttlMs: Math.round(timings.ttlMs),
      ...(maxStallMs === undefined ? {} : { maxStallMs }),
    };
    const nonce = this.#random.bits63();
    // From the first sending on: an earlier try may be the one that was granted.
    const sent = momentOf(this.#clock);
    for (let tries = 1; ; tries++) {
      try {
        const answer = await this.#store.claim.acquire(this.#tenant, {
          target: { name },
          claimant,
          nonce,
          expect,
          ...more,
        });
        if (!answer.ok) return { refused: answer };
        return { lease: this.#keep(new Lease(name, answer.term, timings, sent, this.#care())) };
      } catch (error) {
        const unclear = isTapeError(error, "TAPE_OUTCOME_UNKNOWN") || isTapeError(error, "TAPE_STORE_UNREACHABLE");
        if (!unclear || tries >= 4) throw error;
        await this.#clock.sleep(backoffMs(tries, { baseMs: 50, capMs: 1_000 }, this.#random));
      }
    }
  }

  async #unlessAborted(lease: Lease, signal: AbortSignal | undefined): Promise<Lease | undefined> {
    if (!signal?.aborted) return lease;
    await lease.release(); // stopped while acquiring: nobody waits for it any more
    return undefined;
  }

  #keep(lease: Lease): Lease {
    this.#heartbeat.add(lease);
    this.#log("info", "lease.acquired", {
      ...this.identity,
      name: lease.name,
      token: lease.token,
      reason: lease.term.reason,
    });
    return lease;
  }

  #care() {
    return {
      clock: this.#clock,
      renew: (lease: Lease) => this.#heartbeat.renewNow([lease]),
      release: (lease: Lease, end: TermEnd) => this.#release(lease, end),
      forget: (lease: Lease) => this.#heartbeat.remove(lease),
      onFault: (error: unknown) => this.#log("error", "lease.listener_failed", { error: String(error) }),
    };
  }

  async #release(lease: Lease, end: TermEnd): Promise<boolean> {
    if (lease.belief === "lost") return false;
    const data = { end, taken: lease.notes, term: lease.figures() };
    const entry = { after: lease.head, records: [{ kind: "term.ended", data } as const] };
    this.#heartbeat.remove(lease);
    let told = false;
    for (let tries = 1; !told && lease.remainingMs() > 0; tries++) {
      try {
        await this.#store.fenced.append(lease.fence, entry);
        told = true;
      } catch (error) {
        // An unclear answer may have been a yes: then the next try is refused as stale, which is what we wanted.
        if (isTapeError(error, "TAPE_FENCED")) {
          told = tries > 1;
          break;
        }
        if (!isTapeError(error) || error.retry === "no") break;
        await this.#clock.sleep(backoffMs(tries, { baseMs: 50, capMs: 1_000 }, this.#random));
      }
    }
    lease.lost(told ? "released" : "the release could not be told to the store; the lease runs out");
    this.#log("info", told ? "lease.released" : "lease.left_to_expire", { name: lease.name, token: lease.token, end });
    return told;
  }

  #pauseMs(holder: LeaseView | undefined, pollMs: number, lostRaces: number): number {
    const jitter = this.#random.float() * 20;
    if (holder === undefined || holder.remainingMs <= 0)
      return Math.min(pollMs, backoffMs(lostRaces, takeoverBackoff, this.#random));
    return Math.min(pollMs, holder.remainingMs + jitter);
  }

  /** Listens from now on; once the journal is known, only what concerns it counts, also what came before. */
  #wakeOf() {
    const seen = new Set<number | "any">();
    let journal: number | undefined;
    let woken: (() => void) | undefined;
    const concerns = (): boolean => seen.has("any") || journal === undefined || seen.has(journal);
    const stop = this.#store.onWake((wake) => {
      if (wake.of === "any") seen.add("any");
      else if (wake.of === "journal" && wake.journal !== undefined) seen.add(wake.journal);
      else return;
      if (concerns()) woken?.();
    });
    return {
      stop,
      /** Until the journal's lease may be free, or `ms` have passed, or the signal aborts. */
      async within(ms: number, of: number | undefined, signal: AbortSignal | undefined, clock: Clock): Promise<void> {
        journal = of;
        if (seen.size > 0 && concerns()) return;
        const local = new AbortController();
        woken = () => local.abort();
        await clock.sleep(ms, signal === undefined ? local.signal : AbortSignal.any([signal, local.signal]));
      },
    };
  }
}
