import { aborted } from "../../base/abort.ts";
import { type BackoffOptions, backoffMs } from "../../base/backoff.ts";
import { defined } from "../../base/defined.ts";
import type { Duration } from "../../base/duration.ts";
import { Lifecycle } from "../../base/lifecycle.ts";
import { OrderedListeners } from "../../base/listeners.ts";
import { errorFields } from "../../base/reason.ts";
import type { Belief } from "../../lease/belief.ts";
import { type AcquireOptions, takeoverBackoff } from "../../lease/keeper.ts";
import type { Lease } from "../../lease/lease.ts";
import { checkStall, type Timings, timingsFor } from "../../lease/timings.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import { assertKnownKeys, durationOf, durationOrThrow, shown } from "../../sdk/validate.ts";
import type { OperatorReason } from "../../store/contract/store.ts";
import { acquireExclusively, holdExclusively } from "./exclusive.ts";
import { type Shard, type SingletonDeps, type SingletonWork, TermWork } from "./term.ts";

/** Timings and limits of a singleton. */
export interface SingletonOptions {
  /** How long the standbys wait for a dead holder. Default: the app's. */
  readonly ttl?: Duration;
  /** How often the lease is renewed. Default TTL / 3. */
  readonly heartbeat?: Duration;
  /** A holder without `progress` for longer than this loses its lease, even if it renews. Default: no limit. */
  readonly maxStall?: Duration;
  /** How long a stopping body may take while its lease is still renewed. Default 10 s. */
  readonly drain?: Duration;
  /**
   * Calls each body again this long after it returned, until the term ends. Default: a body that returns ends the term.
   */
  readonly every?: Duration;
  /** Pause after a body threw: jittered, doubled each time. Default 1 s to 60 s. */
  readonly backoff?: { readonly base?: Duration; readonly cap?: Duration };
  /** Polling interval of a standby, in case a wake hint was lost. Default 5 s. */
  readonly poll?: Duration;
  /** Pauses of a standby that came too late to take over, jittered and doubled each time. Default 1 s to 10 s. */
  readonly takeover?: { readonly base?: Duration; readonly cap?: Duration };
}

/** The names of the options. */
export const singletonKeys = ["ttl", "heartbeat", "maxStall", "drain", "every", "backoff", "poll", "takeover"];

/** The state of a singleton in this process. */
export type SingletonState = "standby" | "holder" | "draining" | "resting" | "stopped";

/** A singleton as lists and health show it. */
export interface SingletonView {
  readonly name: string;
  readonly state: SingletonState;
  readonly belief: Belief | undefined;
  readonly token: bigint | undefined;
  /** Consecutive terms that ended because a body threw. */
  readonly failures: number;
}

/** What the holder does with its lease once its body has stopped. */
type HolderCommand =
  | { readonly to: "stop" }
  | { readonly to: "pause"; readonly by: string; readonly reason: string; readonly done: () => void };

/**
 * A background job that runs on one replica at a time; the others stand by.
 *
 * standby ──acquired──▶ holder ──lost, stop, pause, body threw──▶ draining ──▶ standby | stopped
 *      ▲                                                               └──body threw──▶ resting ──▶ standby
 *
 * draining: the body must stop, and its lease is still renewed. The lease is released only when the body has stopped.
 * If the body does not stop within the bound, the lease is not released and this replica does not stand by again: two
 * bodies never execute in one process. `#transition` is the only setter.
 *
 * @example
 * const job = await app.singleton("sweeper", async ({ abortSignal }) => sweep(abortSignal));
 * await job.pause({ by: "ada", reason: "maintenance" });
 */
export class Singleton {
  /** The name of the singleton and of its lease. */
  readonly name: string;
  readonly #deps: SingletonDeps;
  readonly #work: SingletonWork;
  readonly #timings: Partial<Timings>;
  readonly #maxStallMs: number | undefined;
  readonly #drainMs: number;
  readonly #everyMs: number | undefined;
  readonly #backoff: BackoffOptions;
  readonly #takeover: BackoffOptions;
  readonly #pollMs: number;
  readonly #changes: OrderedListeners<SingletonState>;
  readonly #stopping = new AbortController();
  readonly #life = new Lifecycle(
    () => this.#start(),
    () => this.#stop(),
  );
  #state: SingletonState = "standby";
  #lease: Lease | undefined;
  #command: ((command: HolderCommand) => void) | undefined;
  #failures = 0;
  #loop: Promise<void> | undefined;
  #shard: Shard | undefined;
  #granted: Lease | undefined;

  constructor(name: string, work: SingletonWork, options: SingletonOptions, deps: SingletonDeps) {
    const subject = `singleton ${name}`;
    assertKnownKeys(subject, options, singletonKeys);
    const { ttl, heartbeat, maxStall, drain = "10s", every, backoff, poll = "5s" } = options;
    assertWork(subject, work);
    const millis = (field: string, duration: Duration): number => durationOrThrow(subject, field, duration);
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
    this.#backoff = pausesOf(subject, "backoff", backoff, { baseMs: 1_000, capMs: 60_000 });
    this.#takeover = pausesOf(subject, "takeover", options.takeover, takeoverBackoff);
    this.#pollMs = millis("poll", poll);
    this.#changes = new OrderedListeners((error) =>
      deps.log("error", "singleton.listener_failed", { ...errorFields(error) }),
    );
    const timings = timingsFor(deps.keeper.timings, this.#timings, deps.store.transactionBoundMs);
    checkStall(name, this.#maxStallMs, timings);
  }

  /** The polling interval of a standby. */
  get pollMs(): number {
    return this.#pollMs;
  }

  /** For one attempt at its lease. */
  get acquireOptions(): AcquireOptions {
    return { reactor: "singleton", timings: this.#timings, ...defined({ maxStallMs: this.#maxStallMs }) };
  }

  get state(): SingletonState {
    return this.#state;
  }

  /** Its state now, for lists. */
  view(): SingletonView {
    const { name, state } = this;
    return { name, state, belief: this.#lease?.belief, token: this.#lease?.token, failures: this.#failures };
  }

  /** Calls the listener with every change of state, in order. Returns a function that unsubscribes. */
  onChange(listener: (state: SingletonState) => unknown): () => void {
    return this.#changes.on(listener);
  }

  /** Starts to stand by; resolves when the name and the timings are validated. */
  start(): Promise<void> {
    return this.#life.start();
  }

  /** Drains the body while its lease is renewed, then releases the lease: a standby takes over at once. */
  stop(): Promise<void> {
    return this.#life.stop();
  }

  /** No replica runs it until it is resumed. A body in this process drains first; one elsewhere is fenced at once. */
  async pause(action: OperatorReason): Promise<void> {
    const by = action.by ?? this.#deps.keeper.identity.label;
    const settled = this.#settled();
    const paused = new Promise<void>((resolve) => {
      this.#command?.({ to: "pause", by, reason: action.reason, done: resolve });
    });
    await Promise.race([paused, settled]);
    await this.#deps.store.claim.pause(this.#deps.tenant, this.name, true, by, action.reason);
  }

  /** Lets replicas hold it again; the fastest one does. */
  async resume(action: OperatorReason): Promise<void> {
    const { store, tenant, keeper } = this.#deps;
    await store.claim.pause(tenant, this.name, false, action.by ?? keeper.identity.label, action.reason);
  }

  /** One attempt in a store that only this process has open; undefined: another handle of this process holds it. */
  tryExclusive(): Promise<Lease | undefined> {
    return holdExclusively(this.name, this.acquireOptions, this.#deps);
  }

  /**
   * Runs one term under a lease that was acquired for it, for a coordinator that decides who tries. `stop` drains and
   * releases it. Resolves when the body has ended; true: it threw.
   */
  async holdOnce(lease: Lease, shard: Shard): Promise<boolean> {
    this.#granted = lease;
    this.#shard = shard;
    await this.start();
    await this.#loop;
    return this.#failures > 0;
  }

  async #start(): Promise<void> {
    if (this.#granted !== undefined) {
      this.#loop = this.#runGranted(this.#granted);
      return;
    }
    await this.#deps.store.read.lease(this.#deps.tenant, { name: this.name }); // rejects a bad name
    this.#loop = this.#run();
  }

  async #stop(): Promise<void> {
    this.#stopping.abort();
    this.#command?.({ to: "stop" });
    await this.#loop;
  }

  async #runGranted(lease: Lease): Promise<void> {
    try {
      if (await this.#hold(lease)) this.#failures++;
    } catch (error) {
      this.#failures++;
      this.#deps.log("error", "singleton.failed", { ...this.#logFields(), ...errorFields(error) });
    }
    this.#transition("stopped");
  }

  async #run(): Promise<void> {
    const { clock, random, log } = this.#deps;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#transition("standby");
      try {
        const lease = await this.#acquire(signal);
        if (lease === undefined) continue;
        const startedAt = clock.mono();
        const failed = await this.#hold(lease);
        // A term that lasted longer than the longest pause was healthy, so the count of failures restarts.
        if (clock.mono() - startedAt > this.#backoff.capMs) this.#failures = 0;
        if (!failed) continue;
      } catch (error) {
        if (isTapeError(error, "TAPE_STORE_CLOSED")) break;
        log("error", "singleton.failed", { ...this.#logFields(), ...errorFields(error) });
      }
      if (signal.aborted) break;
      this.#transition("resting");
      await clock.sleep(backoffMs(++this.#failures, this.#backoff, random), signal);
    }
    this.#transition("stopped");
  }

  #acquire(signal: AbortSignal): Promise<Lease | undefined> {
    const { store, keeper } = this.#deps;
    const options = { ...this.acquireOptions, pollMs: this.#pollMs, signal };
    // An exclusive store has no other process that could take over or wait: no heartbeat, and therefore no stall.
    if (store.exclusive) return acquireExclusively(this.name, options, this.#deps);
    return keeper.acquire(this.name, { ...options, takeover: this.#takeover });
  }

  /** Runs one term. true: the body threw. */
  async #hold(lease: Lease): Promise<boolean> {
    const { log } = this.#deps;
    const commanded = new Promise<HolderCommand>((resolve) => {
      this.#command = resolve;
    });
    const lost = new Promise<"lost">((resolve) => {
      if (lease.belief === "lost") resolve("lost");
      lease.onChange(({ to }) => {
        if (to === "lost") resolve("lost");
        if (to === "unknown") log("info", "singleton.lease_unknown", this.#logFields());
      });
    });
    // With shards there would be one line for each in every heartbeat.
    const level = this.#shard === undefined ? "info" : "debug";
    lease.onRenewed(() => log(level, "singleton.renewed", this.#logFields()));
    const unsubscribe = this.#watchLease(lease);
    this.#lease = lease;
    log("info", "singleton.acquired", { ...this.#logFields(), reason: lease.term.reason });
    const everyMs = this.#everyMs;
    const { clock } = this.#deps;
    const options = { work: this.#work, everyMs, maxStallMs: this.#stallOf(lease), clock, log };
    const work = new TermWork(lease, { ...options, shard: this.#shard });
    this.#transition("holder");
    if (this.#stopping.signal.aborted) this.#command?.({ to: "stop" });
    try {
      const failing = work.failed.then((error) => ({ to: "failed" as const, error }));
      const event = await Promise.race([lost, commanded, failing]);
      this.#transition("draining");
      if (event === "lost") await this.#lose(lease, work);
      else await this.#release(lease, work, event);
      await this.#awaitIdle(work);
      return event !== "lost" && event.to === "failed";
    } finally {
      unsubscribe();
      this.#command = undefined;
      this.#lease = undefined;
    }
  }

  /** On a wake hint, checks the lease at once instead of at the next heartbeat. */
  #watchLease(lease: Lease): () => void {
    const { store, tenant } = this.#deps;
    let checking = false;
    const check = async (): Promise<void> => {
      if (checking) return;
      checking = true;
      // Reads first: most hints concern other leases, and a renewal is itself a write.
      const view = await store.read.lease(tenant, { name: this.name }).catch(() => undefined);
      checking = false;
      if (view !== undefined && view.token !== lease.token) await lease.renew();
    };
    return store.onWake((wake) => {
      if (wake.of === "any" || (wake.of === "journal" && wake.journal === lease.fence.journal)) void check();
    });
  }

  /** The lease is lost: the body must stop, and there is nothing to release. */
  async #lose(lease: Lease, work: TermWork): Promise<void> {
    const reason: unknown = lease.abortSignal.reason;
    this.#deps.log("info", "singleton.lost", { ...this.#logFields(), reason: String(reason) });
    work.abort(reason);
    await this.#within(work.ended);
  }

  /** Stops the body, drains while renewing, then releases. Beyond the bound the lease is not released and expires. */
  async #release(lease: Lease, work: TermWork, why: HolderCommand | { to: "failed"; error: unknown }): Promise<void> {
    const { log, store, tenant } = this.#deps;
    if (why.to === "failed") log("error", "singleton.body_failed", { ...this.#logFields(), ...errorFields(why.error) });
    const message = `the lease ${this.name} is being released: stop, and let the error propagate`;
    work.abort(new TapeError("TAPE_LEASE_LOST", message, { name: this.name }));
    if (why.to === "pause") {
      await this.#within(work.ended);
      // Before the lease ends: otherwise a standby could acquire it in between.
      await store.claim.pause(tenant, this.name, true, why.by, why.reason);
      lease.end("paused");
      log("info", "singleton.paused", { ...this.#logFields(), by: why.by, reason: why.reason });
      return why.done();
    }
    const who = this.#logFields();
    const released = await lease.releaseAfter(work.ended, this.#drainMs);
    log("info", released ? "singleton.released" : "singleton.release_failed", who);
  }

  /** Waits until no body of the term executes. A stop does not wait for a body that ignores it. */
  async #awaitIdle(work: TermWork): Promise<void> {
    if (work.idle) return;
    this.#deps.log("error", "singleton.drain_timeout", { ...this.#logFields(), drainMs: this.#drainMs });
    await Promise.race([work.ended, aborted(this.#stopping.signal)]);
  }

  async #within(work: Promise<void>): Promise<void> {
    const done = new AbortController();
    await Promise.race([work, this.#deps.clock.sleep(this.#drainMs, done.signal)]);
    done.abort();
  }

  /** Waits until this replica is no longer a holder. */
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

  #logFields(): Record<string, unknown> {
    const { owner, label } = this.#deps.keeper.identity;
    return { name: this.name, replica: label, holder: owner, token: this.#lease?.token };
  }

  #transition(state: SingletonState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#changes.emit(state);
  }
}

/** The pauses of a backoff, from its option. */
function pausesOf(
  subject: string,
  field: "backoff" | "takeover",
  given: { readonly base?: Duration; readonly cap?: Duration } = {},
  { baseMs, capMs }: BackoffOptions,
): BackoffOptions {
  assertKnownKeys(`${field} of ${subject}`, given, ["base", "cap"]);
  return {
    baseMs: durationOf(subject, `${field}.base`, given.base, baseMs),
    capMs: durationOf(subject, `${field}.cap`, given.cap, capMs),
  };
}

/** The work is a function, or several by name. Anything else would hold the lease and do nothing. */
function assertWork(subject: string, work: unknown): void {
  if (typeof work === "function") return;
  const bodies = typeof work === "object" && work !== null ? Object.values(work) : [];
  if (bodies.length > 0 && bodies.every((body) => typeof body === "function")) return;
  const message = `${subject}: its work is a function, or an object of functions by name, not ${shown(work)}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "work" });
}
