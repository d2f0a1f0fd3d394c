import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { errorFields } from "../base/reason.ts";
import type { Tracer } from "../base/trace.ts";
import { type ClockReading, readClocks } from "../lease/belief.ts";
import type { LeaseKeeper } from "../lease/keeper.ts";
import { releaseJournal } from "../lease/release-journal.ts";
import { checkStall } from "../lease/timings.ts";
import type { BuildClaim } from "../model/build.ts";
import type { Term } from "../model/lease.ts";
import type { Runner } from "../sdk/workflow.ts";
import type { FindRequest, RunSpec, Store } from "../store/contract/store.ts";
import { specAsRecorded } from "./core/as-recorded.ts";
import type { DriveEnd, ModelFigures, RunResult, Suspicion } from "./core/handle.ts";
import { ImmediateSteps } from "./core/immediate.ts";
import type { Drive } from "./drive/drive.ts";
import { driveGenerations } from "./drive/generations.ts";
import { HungWatch } from "./drive/hung.ts";
import { DrivenQueues } from "./driven-queues.ts";
import { ChunkFlusher } from "./journal/chunk-flusher.ts";
import { buildClaimOf, OwnBuild, type StartResults } from "./own-build.ts";
import { maxGraceMs, Suspects } from "./suspects.ts";
import { UnservedRuns } from "./unserved-runs.ts";

export interface RunDriverOptions {
  readonly store: Store;
  readonly runner: Runner;
  readonly keeper: LeaseKeeper;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly tracing?: Tracer;
  /** Called after each call of a model. */
  readonly onModelCall?: (call: ModelFigures) => void;
  readonly onReplayed?: (seconds: number) => void;
  /** Runs driven at once. */
  readonly concurrency: number;
  /** The address under which other systems reach the server, for callbacks. */
  readonly publicUrl?: string;
  /** How long a replay waits for the code to request what the journal holds next. */
  readonly patienceMs?: number;
  /** After this time the first body of each name is logged as slow. */
  readonly slowMs?: number;
  /** Whether runs are loaded shortly before their timers fire. false: a caller waits until each run has parked. */
  readonly preload?: boolean;
  /** A process in which a run has stalled takes over no other for this long: the cause may be in the process. */
  readonly yieldMs?: number;
  /** Called when a run that was driven here has ended. */
  readonly onSettled?: (journal: number, settled: RunResult) => void;
}

export interface DriveCounts {
  readonly found: number;
  readonly ended: number;
  readonly parked: number;
  readonly stuck: number;
  readonly lost: number;
  /** How long the oldest run found had been due, or abandoned. */
  readonly lagMs: number;
}

/** One poll. The found runs are in progress. */
export interface DrivePoll {
  readonly found: number;
  /** Resolves when every found run has ended, parked, stuck or been lost. */
  readonly done: Promise<DriveCounts>;
  /**
   * Waits at most `boundMs` for the found runs, and releases the others unfinished: another process continues them at
   * once. Returns the ids of those.
   */
  surrender(boundMs: number): Promise<readonly string[]>;
}

/**
 * Runs are loaded and replayed this long before their timer fires, so that a thousand simultaneous timers only have to
 * resume.
 */
export const preloadMs = 1_000;

/** Long enough for two polls of another process. */
const defaultYieldMs = 10_000;

interface ActiveDrive {
  /** undefined until the run is loaded. */
  drive?: Drive;
  /** Its caller has no time left: it is released once it is loaded. */
  surrendered?: true;
  /** A wake hint arrived before there was a drive to notify. */
  notified: boolean;
  done: Promise<DriveEnd>;
}

/** For the counts of terms: this is the work of the recovery reactor, also in the process that starts a run. */
const byRecovery = { reactor: "recovery" } as const;

/** Drives the runs that it starts, and those that it finds due, notified or abandoned. */
export class RunDriver {
  readonly #options: RunDriverOptions;
  readonly #drives = new Map<number, ActiveDrive>();
  readonly #queues: DrivenQueues;
  /** undefined: it pins no workflow. */
  readonly #build: OwnBuild | undefined;
  readonly #suspects: Suspects;
  readonly #hung: HungWatch;
  readonly #immediate = new ImmediateSteps();
  readonly #flusher: ChunkFlusher;
  readonly #stopListening: () => void;
  readonly #workflows: readonly string[];
  readonly #unserved: UnservedRuns;
  #draining = false;
  /** Drives of preloaded runs that have not finished. */
  #preloaded = 0;
  #freed: (slot: boolean) => void = () => {};
  /** Polls in flight, and the hints that arrive meanwhile for runs that they may find. */
  #polls = 0;
  readonly #hints = new Set<number | "any">();
  #cancelCheck: (() => void) | undefined;
  /** Until then runs whose holder is gone are left to other processes. */
  #yieldUntil = Number.NEGATIVE_INFINITY;

  constructor(options: RunDriverOptions) {
    this.#options = options;
    this.#hung = new HungWatch(options.slowMs);
    this.#flusher = new ChunkFlusher(options.store, options.clock);
    this.#workflows = [...options.runner.workflows.keys()];
    for (const { name, maxStallMs } of options.runner.workflows.values())
      checkStall(`workflow ${name}`, maxStallMs, options.keeper.timings);
    this.#queues = new DrivenQueues(options.runner.queues);
    const build = buildClaimOf(options.runner);
    this.#build = build && new OwnBuild(options, build);
    this.#unserved = new UnservedRuns(options);
    this.#suspects = new Suspects({
      clock: options.clock,
      graceMs: Math.min(maxGraceMs, options.keeper.timings.ttlMs / 2),
      others: () => this.#others(),
      onCapacity: () => this.#freed(false),
    });
    this.#stopListening = options.store.onWake((wake) => {
      if (wake.of === "journal") this.#notify(wake.journal);
      else if (wake.of === "any") for (const journal of [...this.#drives.keys(), "any" as const]) this.#notify(journal);
    });
  }

  get driving(): number {
    return this.#drives.size;
  }

  /** The queues whose runs are driven here. */
  get queues(): readonly string[] {
    return this.#queues.names;
  }

  /** The build of this process, if it pins workflows. */
  get build(): BuildClaim | undefined {
    return this.#build?.last;
  }

  /**
   * Creates runs and drives the new ones at once: creation and lease are one transaction. Those that wait in a queue are
   * found a hint later.
   */
  async start(specs: readonly RunSpec[]): Promise<StartResults> {
    const start = (some: readonly RunSpec[], here: boolean) => this.#start(some, here && some.length <= this.capacity);
    return this.#build === undefined ? start(specs, true) : this.#build.start(specs, start);
  }

  async #start(specs: readonly RunSpec[], here: boolean): Promise<StartResults> {
    const { store, keeper, tenant, random, clock } = this.#options;
    const sent = readClocks(clock);
    const first = { ...keeper.claimant("agent"), nonce: random.bits63() };
    const verdicts = await store.intake.createRuns(tenant, specs, here ? first : undefined);
    for (const [k, verdict] of verdicts.entries()) {
      if (verdict.ok && verdict.term !== undefined) void this.#take(verdict.term, sent, specs[k]);
    }
    return verdicts;
  }

  /** Whether the run is driven here and has not finished. */
  drives(journal: number): boolean {
    const driving = this.#drives.get(journal);
    return driving !== undefined && driving.drive?.finished !== true;
  }

  /** Ends the sleep of a run that is driven here, and fires its timer. False: the caller must fire the timer. */
  async endSleep({ run, pos, purpose }: { run: number; pos: number; purpose: string }): Promise<boolean> {
    const driving = purpose === "sleep" ? this.#drives.get(run) : undefined;
    if (driving?.drive === undefined) return false;
    return Promise.race([driving.drive.endSleep(pos), driving.done.then(() => false)]);
  }

  /** How many more runs this driver accepts now. */
  get capacity(): number {
    if (this.#draining || this.#suspects.solo) return 0;
    return Math.max(0, this.#options.concurrency - this.#drives.size);
  }

  /** One poll for work; resolves when every run that it found has ended, parked, stuck or been lost. */
  async runOnce(limit: number): Promise<DriveCounts> {
    return (await this.poll(limit)).done;
  }

  /**
   * One poll for work that does not wait until the work is done. Otherwise a run with a long body would delay the next
   * poll. `freed` is called whenever there is capacity again; `slot`: a queue may have a free slot. `onlySlots`: nothing
   * else has happened since the last poll.
   */
  async poll(limit: number, freed: (slot: boolean) => void = () => {}, onlySlots = false): Promise<DrivePoll> {
    this.#freed = freed;
    const { drives, lagMs } = await this.#find(limit, onlySlots);
    const done = Promise.all(drives.map((driving) => driving.done)).then((ends) => {
      const counts = { found: ends.length, ended: 0, parked: 0, stuck: 0, lost: 0, lagMs };
      for (const end of ends) counts[end]++;
      return counts;
    });
    return { found: drives.length, done, surrender: (boundMs) => this.#surrender(drives, boundMs) };
  }

  async #surrender(drives: readonly ActiveDrive[], boundMs: number): Promise<readonly string[]> {
    for (const { drive } of drives) drive?.parkNow();
    if (await this.#allDone(boundMs, drives)) return [];
    for (const driving of drives) driving.surrendered = true;
    return this.#releaseAll(() => true, drives);
  }

  /** Logs runs that no process claims and that this process does not serve. Returns how many it has logged. */
  unserved(): Promise<number> {
    return this.#unserved.report(this.#workflows, this.#build?.last);
  }

  /**
   * Claims no more work and waits until every drive has finished. Those that have not after `boundMs` are released
   * unfinished; a successor starts from the journal at once.
   */
  async drain(boundMs = 30_000, bodiesMs = boundMs): Promise<void> {
    this.#draining = true;
    for (const { drive } of this.#drives.values()) drive?.parkNow();
    // An effect has a time-out, so waiting for it is worthwhile; any other body may never end.
    const first = Math.min(boundMs, bodiesMs);
    if (!(await this.#allDone(first))) await this.#releaseAll(({ callsEffects }) => first === boundMs || !callsEffects);
    if (first < boundMs && !(await this.#allDone(boundMs - first))) await this.#releaseAll(() => true);
    this.#cancelCheck?.();
    this.#stopListening();
  }

  async #allDone(boundMs: number, drives: Iterable<ActiveDrive> = this.#drives.values()): Promise<boolean> {
    const enough = new AbortController();
    const all = Promise.all([...drives].map(({ done }) => done)).then(() => true);
    const late = this.#options.clock.sleep(boundMs, enough.signal).then(() => false);
    const finished = await Promise.race([all, late]);
    enough.abort(); // otherwise the remaining time would keep the process alive
    return finished;
  }

  async #releaseAll(
    which: (drive: Drive) => boolean,
    among: Iterable<ActiveDrive> = this.#drives.values(),
  ): Promise<string[]> {
    const drives = [...among].flatMap(({ drive }) => (drive && !drive.finished && which(drive) ? [drive] : []));
    for (const { options, context } of drives) {
      const next = "The run is released unfinished and continues elsewhere. Give whatever hangs a time-out.";
      this.#options.log("warn", "run.not_drained", {
        run: options.runId,
        open: [...(context?.bodies ?? new Map()).values()],
        next,
      });
    }
    await Promise.all(drives.map((drive) => drive.handOver("drained", 0)));
    return drives.map(({ options }) => options.runId);
  }

  async #find(limit: number, onlySlots: boolean): Promise<{ readonly drives: ActiveDrive[]; readonly lagMs: number }> {
    const { store, keeper, tenant, random, clock, preload = true } = this.#options;
    const room = Math.min(limit, this.capacity);
    if (room <= 0 || this.#workflows.length === 0) return { drives: [], lagMs: 0 };
    const build = this.#build === undefined ? undefined : await this.#build.claim();
    const sent = readClocks(clock);
    this.#polls++;
    try {
      const terms = await store.claim.find({
        claimant: keeper.claimant("recovery"),
        nextReactor: "recovery",
        staleOf: ["agent", "recovery"],
        staleLimit: clock.mono() < this.#yieldUntil ? 0 : this.#suspects.capacity,
        limit: room,
        nonce: random.bits63(),
        tenant,
        workflows: this.#workflows,
        ...this.#queues.rooms(room),
        ...(build !== undefined && { build }),
        ...(onlySlots && { only: "queues" as const }),
        ...(preload && { preload: this.#preloadRoom() }),
      });
      const lagMs = terms.reduce((max, term) => Math.max(max, term.lagMs ?? 0), 0);
      return { drives: terms.map((term) => this.#take(term, sent)), lagMs };
    } finally {
      if (--this.#polls === 0) this.#hints.clear();
    }
  }

  /** Preloaded runs only wait, so half of the capacity stays free for runs with work to do. */
  #preloadRoom(): NonNullable<FindRequest["preload"]> {
    const half = Math.floor(this.#options.concurrency / 2);
    return { withinMs: preloadMs, limit: Math.max(0, half - this.#preloaded) };
  }

  /** A note may have arrived for this journal. A claim that is still in flight may already have granted its run. */
  #notify(journal: number | "any"): void {
    const driving = journal === "any" ? undefined : this.#drives.get(journal);
    if (driving?.drive !== undefined) driving.drive.notify();
    else if (driving !== undefined) driving.notified = true;
    else if (this.#polls > 0) this.#hints.add(journal);
  }

  #take(term: Term, sent: ClockReading, fresh?: RunSpec): ActiveDrive {
    const { journal } = term;
    const notified = this.#hints.has(journal) || this.#hints.has("any");
    const driving: ActiveDrive = { notified, done: Promise.resolve("lost") };
    this.#drives.set(journal, driving);
    this.#queues.enter(term.queue);
    driving.done = this.#drive(driving, term, sent, fresh)
      .catch((error: unknown): DriveEnd => {
        this.#options.log("error", "run.drive_failed", { journal, ...errorFields(error) });
        return "lost";
      })
      .finally(() => {
        if (this.#drives.get(journal) === driving) this.#drives.delete(journal);
        this.#freed(this.#queues.leave(term.queue));
      });
    this.#scheduleCheck();
    return driving;
  }

  async #drive(driving: ActiveDrive, term: Term, sent: ClockReading, fresh?: RunSpec): Promise<DriveEnd> {
    const { keeper, store, runner, tenant, clock, random, log, tracing, onModelCall, onReplayed } = this.#options;
    const { journal } = term;
    const lease = keeper.adopt(fresh?.id ?? term.name ?? `run ${journal}`, term, sent, byRecovery);
    // An own lease that expired under load is not a crash. Counted before the first await, because `staleLimit` of the
    // next poll depends on it.
    const vanished = term.reason === "recovery" && term.takenFrom !== keeper.identity.owner;
    const suspicion: Suspicion | undefined = vanished ? this.#suspects.next() : undefined;
    if (term.preloaded) this.#preloaded++;
    try {
      const known = fresh?.id ?? term.name;
      const runId = known ?? (await store.read.lease(tenant, { journal }))?.name ?? String(journal);
      if (this.#draining || driving.surrendered) {
        await releaseJournal(store, tenant, lease, term.head, { endReason: "drained", nextReactor: "recovery" });
        return "lost";
      }
      const shared = { immediate: this.#immediate, flusher: this.#flusher };
      const deps = { store, runner, lease, tenant, runId, clock, random, log, ...shared };
      // The starter's async context reaches this point.
      const startedAt = fresh === undefined ? undefined : tracing?.activeSpan();
      const counting = { ...(onModelCall && { onModelCall }), ...(onReplayed && { onReplayed }) };
      const traced = { ...(tracing && { tracing }), ...(startedAt && { startedAt }), ...counting };
      const more = {
        ...(fresh && { fresh: specAsRecorded(store, tenant, fresh) }),
        ...(term.created !== undefined && { created: term.created }),
        ...(suspicion && { suspicion }),
        ...(term.preloaded && { preloadMs }),
        ...(this.#options.patienceMs !== undefined && { patienceMs: this.#options.patienceMs }),
        ...(this.#options.publicUrl !== undefined && { publicUrl: this.#options.publicUrl }),
      };
      const stopped = (): boolean => this.#draining || driving.surrendered === true;
      const all = { ...deps, ...traced, ...more };
      const { end, settled } = await driveGenerations(all, stopped, driving);
      if (settled !== undefined) this.#options.onSettled?.(journal, settled);
      return end;
    } finally {
      if (term.preloaded) this.#preloaded--;
      suspicion?.clear();
      if (lease.stalled) this.#yieldUntil = clock.mono() + (this.#options.yieldMs ?? defaultYieldMs);
      lease.end("the drive is over");
    }
  }

  /** Drives that have started; queued suspects have not. */
  #others(): Promise<DriveEnd>[] {
    return [...this.#drives.values()].flatMap(({ drive, done }) =>
      drive === undefined || drive.options.suspicion?.solo ? [] : [done],
    );
  }

  /** Wake hints are lossy: once per heartbeat each drive compares its notes with the count of the last renewal. */
  #scheduleCheck(): void {
    if (this.#cancelCheck !== undefined || this.#drives.size === 0) return;
    const { clock, keeper } = this.#options;
    this.#cancelCheck = clock.after(keeper.timings.heartbeatMs, () => {
      this.#cancelCheck = undefined;
      for (const { drive } of this.#drives.values()) {
        drive?.checkNotes();
        if (drive !== undefined) this.#hung.check(drive);
      }
      this.#scheduleCheck();
    });
  }
}
