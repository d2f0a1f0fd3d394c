import { aborted } from "../../base/abort.ts";
import { backoffMs } from "../../base/backoff.ts";
import { defined } from "../../base/defined.ts";
import type { Duration } from "../../base/duration.ts";
import { Lifecycle } from "../../base/lifecycle.ts";
import { OrderedListeners } from "../../base/listeners.ts";
import { errorFields } from "../../base/reason.ts";
import type { Belief } from "../../lease/belief.ts";
import type { Lease } from "../../lease/lease.ts";
import { checkStall, type Timings, timingsFor } from "../../lease/timings.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import { assertKnownKeys, durationOf, durationOrThrow, shown } from "../../sdk/validate.ts";
import type { OperatorReason } from "../../store/contract/store.ts";
import { acquireExclusively } from "./exclusive.ts";
import { type SingletonDeps, type SingletonWork, TermWork } from "./term.ts";

/** Timings and limits of a singleton. */
export interface SingletonOptions {
  /** How long a dead holder keeps the others waiting. Default: the app's. */
  readonly ttl?: Duration;
  /** How often the lease is renewed. Default TTL / 3. */
  readonly heartbeat?: Duration;
  /** A holder that makes no `progress` for longer loses its lease, however well it heartbeats. */
  readonly maxStall?: Duration;
  /** How long a stopping body may take, while its lease is still renewed. Default 10 s. */
  readonly drain?: Duration;
  /** Call each body again this long after it returned, for as long as the term lasts. */
  readonly every?: Duration;
  /** Pause after a body that threw: jittered, doubled each time. Default 1 s to 60 s. */
  readonly backoff?: { readonly base?: Duration; readonly cap?: Duration };
  /** A standby looks at least so often, in case a notification was lost. Default 5 s. */
  readonly poll?: Duration;
}

/** What a singleton does in this process now. */
export type SingletonState = "standby" | "holder" | "draining" | "resting" | "stopped";

/** A singleton as lists and health show it. */
export interface SingletonView {
  readonly name: string;
  readonly state: SingletonState;
  readonly belief: Belief | undefined;
  readonly token: bigint | undefined;
  /** Terms that ended because a body threw, one after the other. */
  readonly failures: number;
}

/** What the holder is asked to do with its lease once its body has come to rest. */
type HolderCommand =
  | { readonly to: "stop" }
  | { readonly to: "pause"; readonly by: string; readonly reason: string; readonly done: () => void };

/**
 * One background job of which only one replica runs at a time; the others stand by.
 *
 *   standby ──acquired──▶ holder ──lost, stop, pause, body threw──▶ draining ──▶ standby | stopped
 *      ▲                                                               └──body threw──▶ resting ──▶ standby
 *
 * draining: the body was told to stop and its lease is still renewed; it is given back only when the body has come to
 * rest. Whoever does not come to rest within the bound keeps its lease from being released, and this replica from
 * standing by again: two bodies never execute in one process. `#become` is the only setter.
 */
export class Singleton {
  readonly name: string;
  readonly #deps: SingletonDeps;
  readonly #work: SingletonWork;
  readonly #timings: Partial<Timings>;
  readonly #maxStallMs: number | undefined;
  readonly #drainMs: number;
  readonly #everyMs: number | undefined;
  readonly #backoff: { baseMs: number; capMs: number };
  readonly #pollMs: number;
  readonly #changes: OrderedListeners<SingletonState>;
  readonly #stopping = new AbortController();
  readonly #life = new Lifecycle(
    () => this.#begin(),
    () => this.#end(),
  );
  #state: SingletonState = "standby";
  #lease: Lease | undefined;
  #asked: ((ask: HolderCommand) => void) | undefined;
  #failures = 0;
  #living: Promise<void> | undefined;

  constructor(name: string, work: SingletonWork, options: SingletonOptions, deps: SingletonDeps) {
    const whose = `singleton ${name}`;
    assertKnownKeys(whose, options, ["ttl", "heartbeat", "maxStall", "drain", "every", "backoff", "poll"]);
    const { ttl, heartbeat, maxStall, drain = "10s", every, backoff = {}, poll = "5s" } = options;
    assertKnownKeys(`backoff of ${whose}`, backoff, ["base", "cap"]);
    assertWork(whose, work);
    const millis = (field: string, duration: Duration): number => durationOrThrow(whose, field, duration);
    this.name = name;
    this.#deps = deps;
    this.#work = work;
    this.#timings = {
      ...(ttl === undefined ? {} : { ttlMs: millis("ttl", ttl) }),
      ...(heartbeat === undefined ? {} : { heartbeatMs: millis("heartbeat", heartbeat) }),
    };
    this.#maxStallMs = maxStall === undefined ? undefined : millis("maxStall", maxStall);
    this.#drainMs = millis("drain", drain);
    this.#everyMs = every === undefined ? undefined : millis("every", every);
    this.#backoff = {
      baseMs: durationOf(whose, "backoff.base", backoff.base, 1_000),
      capMs: durationOf(whose, "backoff.cap", backoff.cap, 60_000),
    };
    this.#pollMs = millis("poll", poll);
    this.#changes = new OrderedListeners((error) =>
      deps.log("error", "singleton.listener_failed", { ...errorFields(error) }),
    );
    const timings = timingsFor(deps.keeper.timings, this.#timings, deps.store.transactionBoundMs);
    checkStall(name, this.#maxStallMs, timings);
  }

  get state(): SingletonState {
    return this.#state;
  }

  view(): SingletonView {
    const { name, state } = this;
    return { name, state, belief: this.#lease?.belief, token: this.#lease?.token, failures: this.#failures };
  }

  /** Told of every change of state, in order. Returns the unsubscriber. */
  onChange(listener: (state: SingletonState) => unknown): () => void {
    return this.#changes.on(listener);
  }

  /** Begins to stand by; resolves when the name and the timings were found to be good. */
  start(): Promise<void> {
    return this.#life.start();
  }

  /** Stops the body, lets it drain while its lease is renewed, gives the lease back: a standby takes over at once. */
  stop(): Promise<void> {
    return this.#life.stop();
  }

  /** Nobody runs it until it is resumed. If this replica does, its body drains first; another one's is fenced at once. */
  async pause(act: OperatorReason): Promise<void> {
    const by = act.by ?? this.#deps.keeper.identity.label;
    const settled = this.#settled();
    const paused = new Promise<void>((resolve) => {
      this.#asked?.({ to: "pause", by, reason: act.reason, done: resolve });
    });
    await Promise.race([paused, settled]);
    await this.#deps.store.claim.pause(this.#deps.tenant, this.name, true, by, act.reason);
  }

  /** Lets it be held again, by whoever is faster. */
  async resume(act: OperatorReason): Promise<void> {
    const { store, tenant, keeper } = this.#deps;
    await store.claim.pause(tenant, this.name, false, act.by ?? keeper.identity.label, act.reason);
  }

  async #begin(): Promise<void> {
    await this.#deps.store.read.lease(this.#deps.tenant, { name: this.name }); // refuses a bad name
    this.#living = this.#live();
  }

  async #end(): Promise<void> {
    this.#stopping.abort();
    this.#asked?.({ to: "stop" });
    await this.#living;
  }

  async #live(): Promise<void> {
    const { clock, random, log } = this.#deps;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#transition("standby");
      try {
        const lease = await this.#acquire(signal);
        if (lease === undefined) continue;
        const begun = clock.mono();
        const failed = await this.#hold(lease);
        // A term that lasted longer than the longest pause was healthy: what fails after it fails anew.
        if (clock.mono() - begun > this.#backoff.capMs) this.#failures = 0;
        if (!failed) continue;
      } catch (error) {
        if (isTapeError(error, "TAPE_STORE_CLOSED")) break;
        log("error", "singleton.failed", { ...this.#who(), ...errorFields(error) });
      }
      if (signal.aborted) break;
      this.#transition("resting");
      await clock.sleep(backoffMs(++this.#failures, this.#backoff, random), signal);
    }
    this.#transition("stopped");
  }

  #acquire(signal: AbortSignal): Promise<Lease | undefined> {
    const { store, keeper } = this.#deps;
    const stall = defined({ maxStallMs: this.#maxStallMs });
    const options = { reactor: "singleton", timings: this.#timings, pollMs: this.#pollMs, signal };
    // Nobody else can renew, take over or wait: no heartbeat, and with it no stall, in a store of our own.
    if (store.exclusive) return acquireExclusively(this.name, options, this.#deps);
    return keeper.acquire(this.name, { ...options, ...stall });
  }

  /** One term. true: the body threw. */
  async #hold(lease: Lease): Promise<boolean> {
    const { log } = this.#deps;
    const asked = new Promise<HolderCommand>((resolve) => {
      this.#asked = resolve;
    });
    const lost = new Promise<"lost">((resolve) => {
      if (lease.belief === "lost") resolve("lost");
      lease.onChange(({ to }) => {
        if (to === "lost") resolve("lost");
        if (to === "unknown") log("info", "singleton.lease_unknown", this.#who());
      });
    });
    lease.onRenewed(() => log("info", "singleton.renewed", this.#who()));
    const unsubscribe = this.#watchLease(lease);
    this.#lease = lease;
    log("info", "singleton.acquired", { ...this.#who(), reason: lease.term.reason });
    const everyMs = this.#everyMs;
    const { clock } = this.#deps;
    const work = new TermWork(lease, { work: this.#work, everyMs, maxStallMs: this.#stallOf(lease), clock, log });
    this.#transition("holder");
    if (this.#stopping.signal.aborted) this.#asked?.({ to: "stop" });
    try {
      const failing = work.failed.then((error) => ({ to: "failed" as const, error }));
      const event = await Promise.race([lost, asked, failing]);
      this.#transition("draining");
      if (event === "lost") await this.#lose(lease, work);
      else await this.#giveBack(lease, work, event);
      await this.#rest(work);
      return event !== "lost" && event.to === "failed";
    } finally {
      unsubscribe();
      this.#asked = undefined;
      this.#lease = undefined;
    }
  }

  /** Told that the lease may have moved: asks at once instead of at the next heartbeat. */
  #watchLease(lease: Lease): () => void {
    const { store, tenant } = this.#deps;
    let looking = false;
    const look = async (): Promise<void> => {
      if (looking) return;
      looking = true;
      // A look first: somebody wrote something, which is most often not about us, and a renewal is a write itself.
      const view = await store.read.lease(tenant, { name: this.name }).catch(() => undefined);
      looking = false;
      if (view !== undefined && view.token !== lease.token) await lease.renew();
    };
    return store.onWake((wake) => {
      if (wake.of === "any" || (wake.of === "journal" && wake.journal === lease.fence.journal)) void look();
    });
  }

  /** The lease is gone: nothing may be done any more, and nothing has to be given back. */
  async #lose(lease: Lease, work: TermWork): Promise<void> {
    const reason: unknown = lease.abortSignal.reason;
    this.#deps.log("info", "singleton.lost", { ...this.#who(), why: String(reason) });
    work.abort(reason);
    await this.#within(work.ended);
  }

  /** Stop, drain while renewing, then release. Over the bound: not released, the lease runs out. */
  async #giveBack(lease: Lease, work: TermWork, why: HolderCommand | { to: "failed"; error: unknown }): Promise<void> {
    const { log, store, tenant } = this.#deps;
    if (why.to === "failed") log("error", "singleton.body_failed", { ...this.#who(), ...errorFields(why.error) });
    const message = `${this.name} is being given back: stop, and let the error pass`;
    work.abort(new TapeError("TAPE_LEASE_LOST", message, { name: this.name }));
    if (why.to === "pause") {
      await this.#within(work.ended);
      // Before the lease is given up: a standby must not slip in between.
      await store.claim.pause(tenant, this.name, true, why.by, why.reason);
      lease.end("paused");
      log("info", "singleton.paused", { ...this.#who(), by: why.by, why: why.reason });
      return why.done();
    }
    const who = this.#who();
    const released = await lease.releaseAfter(work.ended, this.#drainMs);
    log("info", released ? "singleton.released" : "singleton.release_failed", who);
  }

  /** Until nothing of the term executes any more. A stop does not wait for what ignores it. */
  async #rest(work: TermWork): Promise<void> {
    if (work.idle) return;
    this.#deps.log("error", "singleton.drain_timeout", { ...this.#who(), drainMs: this.#drainMs });
    await Promise.race([work.ended, aborted(this.#stopping.signal)]);
  }

  async #within(work: Promise<void>): Promise<void> {
    const done = new AbortController();
    await Promise.race([work, this.#deps.clock.sleep(this.#drainMs, done.signal)]);
    done.abort();
  }

  /** Until this replica is not, or no longer, a holder. */
  #settled(): Promise<void> {
    if (this.#state !== "holder" && this.#state !== "draining") return Promise.resolve();
    return new Promise((resolve) => {
      const unsubscribe = this.onChange((state) => {
        if (state === "holder" || state === "draining") return;
        unsubscribe();
        resolve();
      });
    });
  }

  #stallOf(lease: Lease): number | undefined {
    return lease.neverExpires ? undefined : this.#maxStallMs;
  }

  #who(): Record<string, unknown> {
    const { owner, label } = this.#deps.keeper.identity;
    return { name: this.name, replica: label, holder: owner, token: this.#lease?.token };
  }

  #transition(state: SingletonState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#changes.emit(state);
  }
}

/** A function, or several by name: anything else would lead and do nothing. */
function assertWork(whose: string, work: unknown): void {
  if (typeof work === "function") return;
  const bodies = typeof work === "object" && work !== null ? Object.values(work) : [];
  if (bodies.length > 0 && bodies.every((body) => typeof body === "function")) return;
  const message = `${whose}: its work is a function, or an object of functions by name, not ${shown(work)}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "work" });
}
