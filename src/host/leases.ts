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
import type { LeaseFilter, OperatorReason, Page, Store } from "../store/contract/store.ts";
import { type Reshard, type ReshardRequest, reshard } from "./singleton/reshard.ts";

/** Timings of a named lease, and how to stop waiting for it. */
export interface LeaseOptions {
  /** How long the lease lasts without a renewal. Default: the app's `leaseTtl`. */
  readonly ttl?: Duration;
  /** How often it is renewed. Default: a third of the TTL. */
  readonly heartbeat?: Duration;
  /** A holder that renews without `lease.progress` for longer than this loses the lease. Default: no limit. */
  readonly maxStall?: Duration;
  /** Aborts a waiting `acquire`, which then throws the signal's reason. Default: waits without end. */
  readonly signal?: AbortSignal;
}

/** A lease as the store sees it, with the same facts in a sentence. */
export interface LeaseExplanation extends LeaseView {
  /** The explanation in one sentence. */
  readonly text: string;
}

/**
 * Named leases, for work that is not a run: who holds the right to try, since when and why.
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

  /** Stands by until this process holds the lease. Sleeps exactly the remaining TTL; a release wakes it. */
  async acquire(name: string, options: LeaseOptions = {}): Promise<Lease> {
    options.signal?.throwIfAborted();
    const lease = await this.#keeper.acquire(name, keeperOptions(name, options));
    if (lease !== undefined) return lease;
    options.signal?.throwIfAborted();
    throw new TapeError("TAPE_STORE_CLOSED", `the app was closed while it waited for ${name}`, { name });
  }

  /** One try for a lease without a holder. undefined: it has a holder. */
  tryAcquire(name: string, options: LeaseOptions = {}): Promise<Lease | undefined> {
    return this.#keeper.tryAcquire(name, keeperOptions(name, options));
  }

  /** One try for an expired lease. undefined: it has not expired, or it has no holder. */
  stealExpired(name: string, options: LeaseOptions = {}): Promise<Lease | undefined> {
    return this.#keeper.stealExpired(name, keeperOptions(name, options));
  }

  /** One try for a lease that is free or expired. */
  acquireOrSteal(name: string, options: LeaseOptions = {}): Promise<Lease | undefined> {
    return this.#keeper.acquireOrSteal(name, keeperOptions(name, options));
  }

  /** Preempts a live holder, which is fenced at that instant, and holds the lease. The term history keeps the reason. */
  takeover(name: string, action: OperatorReason & LeaseOptions): Promise<Lease> {
    return this.#keeper.takeover(name, this.#by(action), action.reason, keeperOptions(name, action));
  }

  /** Renews now instead of at the next heartbeat; returns the belief after the renewal. */
  renew(lease: Lease): Promise<Belief> {
    return lease.renew();
  }

  /** Releases the lease; stop the work first. false: the store did not acknowledge it, and the lease expires. */
  release(lease: Lease): Promise<boolean> {
    return lease.release();
  }

  /** Fences the holder at once; no process may hold the lease until it is resumed. */
  async pause(name: string, action: OperatorReason): Promise<void> {
    await this.#store.claim.pause(this.#tenant, name, true, this.#by(action), action.reason);
  }

  /** Changes the number of shards of a singleton: fences the shards of other numbers and pauses them. */
  reshard(singleton: string, request: ReshardRequest): Promise<Reshard> {
    assertKnownKeys("reshard", request, ["to", "reason", "by"]);
    return reshard(this, singleton, request);
  }

  /** Lets processes hold a paused lease again. */
  async resume(name: string, action: OperatorReason): Promise<void> {
    await this.#store.claim.pause(this.#tenant, name, false, this.#by(action), action.reason);
  }

  /** With `kind: "name"` only named leases, by name. */
  list(filter: LeaseFilter = {}): Promise<Page<LeaseView>> {
    return this.#store.read.leases(this.#tenant, filter);
  }

  /** The holder, since when, why, and what may happen next. undefined: no lease has this name. */
  async explain(lease: string | PreemptTarget): Promise<LeaseExplanation | undefined> {
    const target = targetOf(lease);
    const view = await this.#store.read.lease(this.#tenant, target);
    if (view === undefined) return undefined;
    return { ...view, text: describe("run" in target ? target.run : target.name, view) };
  }

  /** The term history: every term, oldest first, with the reasons of its start and end. */
  history(lease: string | PreemptTarget): Promise<TermView[]> {
    return this.#store.read.terms(this.#tenant, targetOf(lease));
  }

  /**
   * Takes a run's or a named lease from its holder and frees it: a standby or the recovery reactor holds it next.
   * The former holder is fenced at that instant.
   */
  preempt(lease: string | PreemptTarget, action: OperatorReason & { readonly onlyStale?: boolean }): Promise<void> {
    return this.#operator.preempt(targetOf(lease), { ...action, by: this.#by(action) });
  }

  #by(action: OperatorReason): string {
    return action.by ?? this.#keeper.identity.label;
  }
}

const targetOf = (lease: string | PreemptTarget): PreemptTarget =>
  typeof lease === "string" ? { name: lease } : lease;

function keeperOptions(name: string, options: LeaseOptions & Partial<OperatorReason>): StandbyOptions {
  const subject = `lease ${name}`;
  assertKnownKeys(subject, options, ["ttl", "heartbeat", "maxStall", "signal", "reason", "by"]);
  const millis = (field: string, duration: Duration): number => durationOrThrow(subject, field, duration);
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

/** A checkpoint has up to 4 KiB; `LeaseView.checkpoint` has all of it. */
const maxShown = 120;
const brief = (text: string): string => (text.length <= maxShown ? text : `${text.slice(0, maxShown)}…`);

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

function describe(name: string, view: LeaseView): string {
  const { state, label, token, reason, progressNote, checkpoint } = view;
  const kept = checkpoint === undefined ? "" : `; checkpoint ${brief(checkpoint)}`;
  const paused = `${kept}${view.paused ? "; paused by an operator, so no process may hold it" : ""}`;
  if (state === "FREE") return `${name} is free after token ${token}${paused}`;
  const held = `${name}: held by ${label} under token ${token} for ${seconds(view.heldMs)}, started by ${reason}`;
  const note = progressNote === null ? "" : ` (${progressNote})`;
  const moved = `; last progress ${seconds(view.progressAgoMs)} ago${note}`;
  const next = {
    HELD: `; expires in ${seconds(view.remainingMs)} unless renewed`,
    EXPIRED: "; expired: any process may take it over, and its writes count until one does",
    DOOMED: "; a takeover is in progress: its writes are rejected",
  }[state];
  return `${held}${moved}${next}${paused}`;
}
