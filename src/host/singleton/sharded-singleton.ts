import { backoffMs } from "../../base/backoff.ts";
import { Lifecycle } from "../../base/lifecycle.ts";
import { errorFields } from "../../base/reason.ts";
import { staleJitterMs } from "../../lease/keeper.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import type { LeaseView } from "../../model/lease.ts";
import { assertKnownKeys, numberOf } from "../../sdk/validate.ts";
import { DeadOwners } from "./dead-owners.ts";
import { type Distribution, distributionOf, type SeenShard, shardsIn, wantedNow } from "./distribution.ts";
import { maxShards, shardName, shardPrefix } from "./shard-of.ts";
import { Singleton, type SingletonOptions, type SingletonView, singletonKeys } from "./singleton.ts";
import type { Shard, SingletonDeps, SingletonWork } from "./term.ts";

/** Timings and limits of a singleton whose work is divided into shards. */
export interface ShardedOptions extends SingletonOptions {
  /** How many shards there are, in all processes; at most 1,024. */
  readonly shards: number;
  /** How many of them this process holds at once. Default: all. */
  readonly max?: number;
}

export interface ShardsDeps extends SingletonDeps {
  /** Called when the number of held shards changes, so that others learn of this process soon. */
  readonly onHeld?: () => void;
}

/** Polls at least this often, in case a wake hint was lost. */
const defaultPollMs = 5_000;
/** Shorter than the time for which others leave a free shard to it. */
const hungryPollMs = 1_000;
/** A replica that has its share leaves a free shard to hungry ones for this long, and up to half of it more. */
const courtesyMs = 2_000;
/** One shard is shed in this time, so that it finds a holder before the next is shed. */
const shedEveryMs = 1_000;
/** A shed shard that no other replica took is kept for this long, or until a replica comes or goes. */
const keepMs = 60_000;
/** Reports are read this often while no hint comes: only a replica that holds nothing is known by its report alone. */
const reportsMs = 2 * defaultPollMs - 500;
/** Hints come in bursts. */
const burstMs = 20;
/** After another replica was faster: what it left is free, and no hint says so. */
const lostRaceMs = 50;
const restBackoff = { baseMs: 1_000, capMs: 60_000 };

/**
 * A background job in shards, which all replicas share. Each shard is a named lease with everything that a singleton
 * has. Nothing new decides who holds it; only who tries is decided here, in one poll for all shards:
 *
 * fewer than its share    takes free and expired shards at once; the share is rounded down while others have less
 *   its share               takes a shard that stays free for 2–3 s, because no hungry replica came
 *   more than its share     sheds its newest shard, one a second: the body drains, and the lease is released
 *
 * A live holder's shard is never taken.
 *
 * @example
 * const job = await app.singleton("sweeper", async ({ shard }) => sweep(shard), { shards: 16 });
 * await job.stop();
 */
export class ShardedSingleton {
  readonly name: string;
  readonly #of: number;
  readonly #max: number;
  readonly #work: SingletonWork;
  readonly #options: SingletonOptions;
  readonly #pollMs: number;
  readonly #deps: ShardsDeps;
  readonly #held = new Map<number, Singleton>();
  readonly #dead = new DeadOwners();
  readonly #freeSince = new Map<number, number>();
  readonly #failures = new Map<number, number>();
  readonly #restUntil = new Map<number, number>();
  readonly #stopping = new AbortController();
  readonly #life = new Lifecycle(
    () => this.#start(),
    () => this.#stop(),
  );
  #live: ReadonlySet<string> = new Set();
  #keepUntil = Number.NEGATIVE_INFINITY;
  #shedAt = Number.NEGATIVE_INFINITY;
  #shed: number | undefined;
  #reports: { readonly times: ReadonlyMap<string, number>; readonly readAt: number } | undefined;
  #isWoken = false;
  /** A hint came during a poll, which may have read before it. */
  #isHinted = false;
  /** The journals of all shards that a poll has seen: hints about others are of runs. */
  #journals: ReadonlySet<number> = new Set();
  #unheld = 0;
  #isChanged = false;
  #loop: Promise<void> | undefined;
  #before: Promise<Shard["before"]> | undefined;
  #wakeUp = (): void => {};

  constructor(name: string, work: SingletonWork, options: ShardedOptions, deps: ShardsDeps) {
    const subject = `singleton ${name}`;
    assertKnownKeys(subject, options, [...singletonKeys, "shards", "max"]);
    const { shards, max, ...rest } = options;
    this.name = name;
    this.#of = numberOf(subject, "shards", shards, 1, { min: 1, max: maxShards });
    this.#max = numberOf(subject, "max", max, this.#of, { min: 1, max: maxShards });
    this.#work = work;
    this.#options = rest;
    this.#deps = deps;
    this.#pollMs = new Singleton(name, work, rest, deps).pollMs; // checks the other options, too
  }

  /** The shards that this process holds, lowest first. */
  get shards(): readonly number[] {
    return [...this.#held.keys()].sort((a, b) => a - b);
  }

  /** Shards that stayed free at the last poll, because no replica takes them. */
  get unheld(): number {
    return this.#unheld;
  }

  /** Its state now, for lists. */
  view(): SingletonView {
    const { name } = this;
    const failures = Math.max(0, ...this.#failures.values());
    const state = this.#stopping.signal.aborted ? "stopped" : this.#held.size > 0 ? "holder" : "standby";
    return { name, state, belief: undefined, token: undefined, failures };
  }

  /** Starts to take shards; rejects if shards of another number are held. */
  start(): Promise<void> {
    return this.#life.start();
  }

  /** Drains the bodies while their leases are renewed, then releases them: other replicas take over at once. */
  stop(): Promise<void> {
    return this.#life.stop();
  }

  async #start(): Promise<void> {
    const others = (await this.#read()).filter(({ of, lease }) => of !== this.#of && lease.state === "HELD");
    if (others[0] !== undefined) throw this.#changed(others[0]);
    const { store, tenant } = this.#deps;
    const unsubscribe = store.onWake((wake) => {
      const isOwn = wake.of === "journal" && wake.tenant === tenant && this.#journals.has(wake.journal);
      if (isOwn || wake.of === "any") this.#hint();
    });
    this.#deps.onHeld?.();
    this.#loop = this.#run().finally(unsubscribe);
  }

  async #stop(): Promise<void> {
    this.#stopping.abort();
    this.#wakeUp();
    await this.#loop;
    await Promise.all([...this.#held.values()].map((shard) => shard.stop()));
    this.#deps.onHeld?.(); // its process may live on: others must not wait for it
  }

  #hint(): void {
    this.#isHinted = true;
    this.#wakeUp();
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#deps;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      let pauseMs = this.#pollMs;
      this.#isHinted = false;
      try {
        pauseMs = Math.min(pauseMs, await this.#poll());
      } catch (error) {
        if (isTapeError(error, "TAPE_STORE_CLOSED")) return;
        log("warn", "singleton.poll_failed", { name: this.name, ...errorFields(error) });
      }
      if (this.#isHinted) pauseMs = Math.min(pauseMs, burstMs);
      const woken = new AbortController();
      this.#wakeUp = () => void clock.after(burstMs, () => woken.abort());
      await clock.sleep(pauseMs, AbortSignal.any([signal, woken.signal]));
      this.#isWoken = this.#isHinted;
      this.#wakeUp = () => {};
    }
  }

  /** One poll for all shards. Returns the milliseconds until the next one has a reason. */
  async #poll(): Promise<number> {
    const { keeper, clock } = this.#deps;
    const { owner } = keeper.identity;
    const seen = await this.#read();
    this.#journals = new Set(seen.map(({ lease }) => lease.journal));
    const shards = seen.filter(({ of }) => of === this.#of);
    const reportedAt = await this.#reportedAt();
    this.#dead.note(shards, reportedAt);
    const spread = distributionOf(this.#of, owner, shards, [...reportedAt.keys()], this.#dead);
    this.#noteLive(spread.live);
    // What another replica took was wanted, whatever becomes of it later.
    if (shards.some(({ index, lease }) => index === this.#shed && lease.state === "HELD" && lease.owner !== owner))
      this.#shed = undefined;
    const free = spread.free.filter((index) => !this.#held.has(index));
    this.#noteFree(free);
    const strangers = seen.filter(({ of, lease }) => of !== this.#of && lease.state === "HELD");
    this.#reportChanged(strangers[0]);
    const before = seen.filter(({ of }) => of !== this.#of);
    const wanted = Math.min(wantedNow(spread, this.#held.size, free.length), this.#max - this.#held.size);
    const isLost = strangers.length === 0 && (await this.#take(free, wanted, before));
    this.#reportUnheld(free);
    await this.#shedOne(spread, free);
    await this.#removeReports([...reportedAt.keys()].filter((one) => this.#dead.has(one)));
    const due = Math.min(spread.isOverfull ? spread.fair : spread.low, this.#max);
    return Math.min(isLost ? lostRaceMs : defaultPollMs, this.#nextMs(shards, due, clock.mono()));
  }

  async #read(): Promise<SeenShard[]> {
    const { store, tenant } = this.#deps;
    const prefix = shardPrefix(this.name);
    const all: LeaseView[] = [];
    for (let above: string | undefined; ; ) {
      const page = await store.read.leases(tenant, {
        ...{ kind: "name", prefix, limit: 1_000 },
        ...(above !== undefined && { above }),
      });
      all.push(...page);
      const last = page.at(-1)?.name;
      if (page.length < 1_000 || last === null || last === undefined) return shardsIn(this.name, all);
      above = last;
    }
  }

  /** Owners that report this singleton, and when: those that hold no shard are known by nothing else. */
  async #reportedAt(): Promise<ReadonlyMap<string, number>> {
    const { store, tenant, clock } = this.#deps;
    const known = this.#reports;
    if (known !== undefined && !this.#isWoken && clock.mono() - known.readAt < reportsMs) return known.times;
    const processes = await store.read.processes(tenant);
    const reported = processes.filter(({ body }) => {
      const { singletons } = body as { readonly singletons?: readonly { readonly name?: unknown }[] };
      return Array.isArray(singletons) && singletons.some(({ name }) => name === this.name);
    });
    const times = new Map(reported.map(({ owner, at }) => [owner, at]));
    this.#reports = { times, readAt: clock.mono() };
    return times;
  }

  /**
   * A replica that joins has not seen them die, and would count them. Every survivor does it: one of them may die
   * meanwhile. If the process only stood still, it reports again.
   */
  async #removeReports(owners: readonly string[]): Promise<void> {
    const { store, tenant } = this.#deps;
    for (const owner of owners) {
      await store.intake.removeProcess(tenant, owner);
      this.#reports = undefined;
    }
  }

  /** With other replicas come other shares: one may want now what none wanted before. */
  #noteLive(live: ReadonlySet<string>): void {
    const isSame = live.size === this.#live.size && [...live].every((owner) => this.#live.has(owner));
    if (!isSame) this.#keepUntil = Number.NEGATIVE_INFINITY;
    this.#live = live;
  }

  #noteFree(free: readonly number[]): void {
    const now = this.#deps.clock.mono();
    for (const index of this.#freeSince.keys()) if (!free.includes(index)) this.#freeSince.delete(index);
    for (const index of free) if (!this.#freeSince.has(index)) this.#freeSince.set(index, now);
  }

  /** Up to its share at once; beyond it, one that stayed free. true: another replica was faster at one of them. */
  async #take(free: readonly number[], wanted: number, before: readonly SeenShard[]): Promise<boolean> {
    const { clock, random } = this.#deps;
    const now = clock.mono();
    if (this.#stopping.signal.aborted) return false;
    const rested = free.filter((index) => (this.#restUntil.get(index) ?? 0) <= now);
    if (wanted > 0) {
      const taken = rested.slice(0, wanted);
      this.#noteUnwanted(taken, now);
      return (await Promise.all(taken.map((index) => this.#takeOne(index, before)))).includes(false);
    }
    if (this.#held.size >= this.#max) return false;
    const waitMs = courtesyMs * (1 + random.float() / 2);
    const left = rested.find((index) => now - this.#freeSince.get(index)! >= waitMs);
    if (left === undefined) return false;
    this.#noteUnwanted([left], now);
    return !(await this.#takeOne(left, before));
  }

  /** No other replica wants the shard that was shed last: shedding it again would only restart its body. */
  #noteUnwanted(taken: readonly number[], now: number): void {
    if (this.#shed !== undefined && taken.includes(this.#shed)) this.#keepUntil = now + keepMs;
  }

  /** false: another replica was faster. */
  async #takeOne(index: number, before: readonly SeenShard[]): Promise<boolean> {
    const { keeper, store } = this.#deps;
    const name = shardName(this.name, { index, of: this.#of });
    const singleton = new Singleton(name, this.#work, this.#options, this.#deps);
    const lease = await (store.exclusive
      ? singleton.tryExclusive()
      : keeper.acquireOrSteal(name, singleton.acquireOptions));
    if (lease === undefined) return false;
    const shard: Shard = { index, of: this.#of, before: await this.#checkpointsOf(before) };
    this.#held.set(index, singleton);
    this.#freeSince.delete(index);
    this.#deps.onHeld?.();
    void singleton.holdOnce(lease, shard).then((failed) => this.#ended(index, singleton, failed));
    return true;
  }

  /** What the shards of other numbers have left. They are paused, or their processes are gone, so it does not change. */
  async #checkpointsOf(old: readonly SeenShard[]): Promise<Shard["before"]> {
    const { store, tenant } = this.#deps;
    if (old.length === 0) return [];
    this.#before ??= Promise.all(
      old.map(async ({ index, of, lease }) => {
        const checkpoint = (await store.read.lease(tenant, { journal: lease.journal }))?.checkpoint;
        return checkpoint === undefined ? [] : [{ index, of, checkpoint }];
      }),
    ).then((all) => all.flat());
    return this.#before.catch(() => {
      this.#before = undefined;
      return [];
    });
  }

  #ended(index: number, singleton: Singleton, failed: boolean): void {
    const { clock, random } = this.#deps;
    if (this.#held.get(index) !== singleton) return;
    this.#held.delete(index);
    const failures = failed ? (this.#failures.get(index) ?? 0) + 1 : 0;
    if (failed) this.#failures.set(index, failures);
    else this.#failures.delete(index);
    // A body that threw leaves the shard to others for a while. So does a shard that was shed for a hungry one.
    if (failed) this.#restUntil.set(index, clock.mono() + backoffMs(failures, restBackoff, random));
    else if (index === this.#shed) this.#restUntil.set(index, clock.mono() + courtesyMs);
    this.#deps.onHeld?.();
    this.#hint();
  }

  /** Sheds its newest shard if it has more than its share, or one more than a hungry replica. */
  async #shedOne({ fair, low, hunger }: Distribution, free: readonly number[]): Promise<void> {
    const { clock, log } = this.#deps;
    const now = clock.mono();
    const isMore = this.#held.size > fair || (this.#held.size > low && hunger > 0);
    // A free shard feeds the hungry first.
    if (!isMore || free.length > 0 || now < this.#keepUntil || now - this.#shedAt < shedEveryMs) return;
    const [index, singleton] = [...this.#held].at(-1)!;
    this.#shedAt = now;
    this.#shed = index;
    log("info", "singleton.shard_shed", { name: this.name, shard: index, held: this.#held.size, fair });
    void singleton.stop();
  }

  /** Shards stay free: no replica has room for them. */
  #reportUnheld(free: readonly number[]): void {
    const { clock, log } = this.#deps;
    const since = clock.mono() - 3 * courtesyMs;
    const unheld = free.filter((index) => (this.#freeSince.get(index) ?? Number.POSITIVE_INFINITY) < since);
    if (unheld.length > 0 && this.#unheld === 0) {
      log("warn", "singleton.shards_unheld", { name: this.name, shards: unheld.slice(0, 20), held: this.#held.size });
    }
    this.#unheld = unheld.length;
  }

  #reportChanged(stranger: SeenShard | undefined): void {
    if (stranger !== undefined && !this.#isChanged) {
      this.#deps.log("error", "singleton.shards_changed", { name: this.name, ...errorFields(this.#changed(stranger)) });
    }
    this.#isChanged = stranger !== undefined;
  }

  #changed({ of, lease }: SeenShard): TapeError {
    const message = `singleton ${this.name} has ${this.#of} shards here, and ${lease.label} holds one of ${of}`;
    return new TapeError("TAPE_SHARDS_CHANGED", message, { name: this.name, shards: this.#of, held: of });
  }

  /**
   * At the earliest end of another's term, or when a wait of its own ends. A replica with fewer than `due` shards polls
   * every second: otherwise those that shed one for it would take it back before it comes, if the hint is lost.
   */
  #nextMs(shards: readonly SeenShard[], due: number, now: number): number {
    const { random, keeper } = this.#deps;
    const others = shards.filter(({ lease }) => lease.state === "HELD" && lease.owner !== keeper.identity.owner);
    const terms = others.map(({ lease }) => lease.remainingMs + random.float() * staleJitterMs);
    const waits = [...this.#freeSince.values()].map((since) => Math.max(100, since + 1.5 * courtesyMs - now));
    const sheds = this.#shedAt + shedEveryMs - now;
    const pollMs = this.#held.size < due ? hungryPollMs : defaultPollMs;
    return Math.min(pollMs, ...terms, ...waits, ...(sheds > 0 ? [sheds] : []));
  }
}
