import { defined } from "../base/defined.ts";
import type { Duration } from "../base/duration.ts";
import type { Belief } from "../lease/belief.ts";
import type { LeaseKeeper, StandbyOptions } from "../lease/keeper.ts";
import type { Lease } from "../lease/lease.ts";
import { TapeError } from "../model/errors.ts";
import type { LeaseView, TermView } from "../model/lease.ts";
import type { OperatorDeps } from "../operator/manual-lease.ts";
import type { Operator } from "../operator/operator.ts";
import type { PreemptTarget } from "../operator/preempt.ts";
import { assertKnownKeys, durationOrThrow } from "../sdk/validate.ts";
import type { OperatorReason, Store } from "../store/contract/store.ts";

/** Timings of a named lease, and how to stop waiting for it. */
export interface LeaseOptions {
  readonly ttl?: Duration;
  readonly heartbeat?: Duration;
  /** Renewals without `lease.progress` for longer than this lose the lease. */
  readonly maxStall?: Duration;
  /** Ends the waiting of `acquire`, which then throws the signal's reason. */
  readonly signal?: AbortSignal;
}

/** A lease as the store sees it, and the same in a sentence for people. */
export interface LeaseExplanation extends LeaseView {
  readonly text: string;
}

/**
 * Named leases, for work that is not a run: who may try, and since when and why.
 *
 * @example
 * const lease = await app.leases.acquire("report", { ttl: "30s" });
 * lease.assert();
 * await app.leases.release(lease);
 */
export class Leases {
  readonly #store: Store;
  readonly #keeper: LeaseKeeper;
  readonly #tenant: string;

  readonly #operator: Pick<Operator, "preempt">;

  constructor(deps: Pick<OperatorDeps, "store" | "keeper" | "tenant">, operator: Pick<Operator, "preempt">) {
    this.#operator = operator;
    this.#store = deps.store;
    this.#keeper = deps.keeper;
    this.#tenant = deps.tenant;
  }

  /** Stands by until the lease is ours: sleeps exactly the remaining time, is woken by a release. */
  async acquire(name: string, options: LeaseOptions = {}): Promise<Lease> {
    options.signal?.throwIfAborted();
    const lease = await this.#keeper.acquire(name, keeperOptions(name, options));
    if (lease !== undefined) return lease;
    options.signal?.throwIfAborted();
    throw new TapeError("TAPE_STORE_CLOSED", `the app was closed while it stood by for ${name}`, { name });
  }

  /** One try for a lease that nobody holds. undefined: somebody does. */
  tryAcquire(name: string, options: LeaseOptions = {}): Promise<Lease | undefined> {
    return this.#keeper.tryAcquire(name, keeperOptions(name, options));
  }

  /** One try for a lease whose holder's time has run out. undefined: it has not, or nobody holds it. */
  stealExpired(name: string, options: LeaseOptions = {}): Promise<Lease | undefined> {
    return this.#keeper.stealExpired(name, keeperOptions(name, options));
  }

  /** One try for a lease that is free or expired. */
  acquireOrSteal(name: string, options: LeaseOptions = {}): Promise<Lease | undefined> {
    return this.#keeper.acquireOrSteal(name, keeperOptions(name, options));
  }

  /** Pre-empts a live holder, who is fenced at that instant; the lease is then ours. The ledger keeps who and why. */
  takeover(name: string, act: OperatorReason & LeaseOptions): Promise<Lease> {
    return this.#keeper.takeover(name, this.#by(act), act.reason, keeperOptions(name, act));
  }

  /** Renews now instead of at the next heartbeat; the answer is what may be believed then. */
  renew(lease: Lease): Promise<Belief> {
    return lease.renew();
  }

  /** Gives it back; stop the work first. false: the store could not be told, and the lease runs out. */
  release(lease: Lease): Promise<boolean> {
    return lease.release();
  }

  /** Nobody may hold it until it is resumed; its holder is fenced at once. */
  async pause(name: string, act: OperatorReason): Promise<void> {
    await this.#store.claim.pause(this.#tenant, name, true, this.#by(act), act.reason);
  }

  async resume(name: string, act: OperatorReason): Promise<void> {
    await this.#store.claim.pause(this.#tenant, name, false, this.#by(act), act.reason);
  }

  list(filter: { readonly held?: boolean; readonly limit?: number } = {}): Promise<LeaseView[]> {
    return this.#store.read.leases(this.#tenant, filter);
  }

  /** Who holds it, since when, why, and what may happen next. undefined: no lease has this name. */
  async explain(lease: string | PreemptTarget): Promise<LeaseExplanation | undefined> {
    const target = targetOf(lease);
    const view = await this.#store.read.lease(this.#tenant, target);
    if (view === undefined) return undefined;
    return { ...view, text: describe("run" in target ? target.run : target.name, view) };
  }

  /** The ledger: every term, oldest first, with why it began and ended. */
  history(lease: string | PreemptTarget): Promise<TermView[]> {
    return this.#store.read.terms(this.#tenant, targetOf(lease));
  }

  /**
   * Takes a run's or a named lease away from whoever holds it and sets it free: a standby or a recovery has it next.
   * The former holder is fenced at that instant.
   */
  preempt(lease: string | PreemptTarget, act: OperatorReason & { readonly onlyStale?: boolean }): Promise<void> {
    return this.#operator.preempt(targetOf(lease), { ...act, by: this.#by(act) });
  }

  #by(act: OperatorReason): string {
    return act.by ?? this.#keeper.identity.label;
  }
}

const targetOf = (lease: string | PreemptTarget): PreemptTarget =>
  typeof lease === "string" ? { name: lease } : lease;

function keeperOptions(name: string, options: LeaseOptions & Partial<OperatorReason>): StandbyOptions {
  const whose = `lease ${name}`;
  assertKnownKeys(whose, options, ["ttl", "heartbeat", "maxStall", "signal", "reason", "by"]);
  const millis = (field: string, duration: Duration): number => durationOrThrow(whose, field, duration);
  const { ttl, heartbeat, maxStall, signal } = options;
  return {
    timings: {
      ...(ttl === undefined ? {} : { ttlMs: millis("ttl", ttl) }),
      ...(heartbeat === undefined ? {} : { heartbeatMs: millis("heartbeat", heartbeat) }),
    },
    ...(maxStall === undefined ? {} : { maxStallMs: millis("maxStall", maxStall) }),
    ...defined({ signal }),
  };
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

function describe(name: string, view: LeaseView): string {
  const { state, label, token, reason, progressNote } = view;
  const paused = view.paused ? "; an operator paused it, so nobody may hold it" : "";
  if (state === "FREE") return `${name} is free after token ${token}${paused}`;
  const held = `${name}: held by ${label} under token ${token} for ${seconds(view.heldMs)}, begun by ${reason}`;
  const note = progressNote === null ? "" : ` (${progressNote})`;
  const moved = `; last progress ${seconds(view.progressAgoMs)} ago${note}`;
  const next = {
    HELD: `; runs out in ${seconds(view.remainingMs)} unless it is renewed`,
    EXPIRED: "; its time has run out: anybody may take it over, its writes count until somebody does",
    DOOMED: "; it is being taken over: its writes are refused",
  }[state];
  return `${held}${moved}${next}${paused}`;
}
