import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { errorFields } from "../base/reason.ts";
import type { Tracer } from "../base/trace.ts";
import { type ClockReading, readClocks } from "../lease/belief.ts";
import type { LeaseKeeper } from "../lease/keeper.ts";
import { releaseJournal } from "../lease/release-journal.ts";
import { errorTable } from "../model/errors.ts";
import type { Term } from "../model/lease.ts";
import type { Runner } from "../sdk/workflow.ts";
import type { RunSpec, Store } from "../store/contract/store.ts";
import type { DriveEnd, RunResult, Suspicion } from "./core/handle.ts";
import { ImmediateSteps } from "./core/immediate.ts";
import { Drive } from "./drive/drive.ts";
import { HungWatch } from "./drive/hung.ts";
import { maxGraceMs, Suspects } from "./suspects.ts";

export interface RunDriverOptions {
  readonly store: Store;
  readonly runner: Runner;
  readonly keeper: LeaseKeeper;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly tracing?: Tracer;
  /** Runs driven at once. */
  readonly concurrency: number;
  /** How long a replay waits for the code to ask for what the journal holds next. */
  readonly patienceMs?: number;
  /** After how long the first body of each name is said to be slow. */
  readonly slowMs?: number;
  /** A run has ended that was driven here. */
  readonly onSettled?: (journal: number, settled: RunResult) => void;
}

export interface DriveCounts {
  readonly found: number;
  readonly ended: number;
  readonly parked: number;
  readonly stuck: number;
  readonly lost: number;
  /** How long the oldest of them had been due, or abandoned, when it was found. */
  readonly lagMs: number;
}

/** Somebody else may be about to take them: only what lies for longer than that is told. */
const unservedAfterMs = 10_000;
/** How often what nobody takes is told. */
const reportEveryMs = 60_000;
/** So long before its timer falls due a run is read and played up to its wait: a thousand at once are then no crowd. */
export const preloadMs = 1_000;

interface ActiveDrive {
  /** undefined while it waits for its turn. */
  drive?: Drive;
  /** A note may have come before there was a drive to hear of it. */
  poked: boolean;
  done: Promise<DriveEnd>;
}

/** Drives runs: those it starts itself, and those it finds due, noted or abandoned. */
export class RunDriver {
  readonly #options: RunDriverOptions;
  readonly #drives = new Map<number, ActiveDrive>();
  readonly #suspects: Suspects;
  readonly #hung: HungWatch;
  readonly #immediate = new ImmediateSteps();
  readonly #stopListening: () => void;
  readonly #workflows: readonly string[];
  #tellAgainAt = Number.NEGATIVE_INFINITY;
  #draining = false;
  /** Drives that were taken ahead of their timers and are not over. */
  #early = 0;
  #freed: () => void = () => {};
  /** Looks under way, and the hints that came meanwhile for runs that may be among what they find. */
  #looks = 0;
  readonly #hints = new Set<number | "any">();
  #cancelLook: (() => void) | undefined;

  constructor(options: RunDriverOptions) {
    this.#options = options;
    this.#hung = new HungWatch(options.slowMs);
    this.#workflows = [...options.runner.workflows.keys()];
    this.#suspects = new Suspects({
      clock: options.clock,
      besideMs: Math.min(maxGraceMs, options.keeper.timings.ttlMs / 2),
      others: () => this.#others(),
      onRoom: () => this.#freed(),
    });
    this.#stopListening = options.store.onWake((wake) => {
      if (wake.of === "journal") this.#poke(wake.journal);
      else if (wake.of === "any") for (const journal of [...this.#drives.keys(), "any" as const]) this.#poke(journal);
    });
  }

  get driving(): number {
    return this.#drives.size;
  }

  /** Creates runs and drives the fresh ones at once, from the same transaction on. */
  async start(specs: readonly RunSpec[]): Promise<Awaited<ReturnType<Store["intake"]["createRuns"]>>> {
    const { store, keeper, tenant, random, clock } = this.#options;
    const room = specs.length <= this.capacity;
    const sent = readClocks(clock);
    const first = { ...keeper.claimant("agent"), nonce: random.bits63() };
    const verdicts = await store.intake.createRuns(tenant, specs, room ? first : undefined);
    for (const [k, verdict] of verdicts.entries()) {
      if (verdict.ok && verdict.term !== undefined) void this.#take(verdict.term, sent, specs[k]);
    }
    return verdicts;
  }

  /** Whether it is driven here and has not come to its end yet. */
  drives(journal: number): boolean {
    const driving = this.#drives.get(journal);
    return driving !== undefined && driving.drive?.finished !== true;
  }

  /** A sleep of a run that is driven here is over: its driver fires the timer itself. False: somebody else has to. */
  async endSleep({ run, pos, purpose }: { run: number; pos: number; purpose: string }): Promise<boolean> {
    const driving = purpose === "sleep" ? this.#drives.get(run) : undefined;
    if (driving?.drive === undefined) return false;
    return Promise.race([driving.drive.endSleep(pos), driving.done.then(() => false)]);
  }

  /** How many more runs this worker would drive now. */
  get capacity(): number {
    if (this.#draining || this.#suspects.solo) return 0;
    return Math.max(0, this.#options.concurrency - this.#drives.size);
  }

  /** One look for work; resolves when what was found has been driven as far as it goes. */
  async runOnce(limit: number): Promise<DriveCounts> {
    return (await this.poll(limit)).done;
  }

  /**
   * One look for work that does not wait for it to be done: a run with a long body must not keep the others from being
   * found. `freed` is called whenever there is room again.
   */
  async poll(
    limit: number,
    freed: () => void = () => {},
  ): Promise<{ readonly found: number; readonly done: Promise<DriveCounts> }> {
    this.#freed = freed;
    const { drives, lagMs } = await this.#find(limit);
    const done = Promise.all(drives).then((ends) => {
      const counts = { found: ends.length, ended: 0, parked: 0, stuck: 0, lost: 0, lagMs };
      for (const end of ends) counts[end]++;
      return counts;
    });
    return { found: drives.length, done };
  }

  /**
   * Runs that this process does not serve and nobody else takes: they wait, visibly, for somebody who does. Told at most
   * once a minute; answers how many it has told of.
   */
  async unserved(): Promise<number> {
    const { store, tenant, clock, log } = this.#options;
    if (clock.mono() < this.#tellAgainAt) return 0;
    this.#tellAgainAt = clock.mono() + unservedAfterMs;
    const found = await store.read.unserved(this.#workflows, unservedAfterMs, tenant);
    if (found.length > 0) this.#tellAgainAt = clock.mono() + reportEveryMs;
    for (const { workflow, runs, lagMs } of found) {
      const missing = `workflow ${workflow}`;
      const { next } = errorTable.TAPE_NO_WORKER;
      const about = { nextReactor: "recovery", workflow, runs, lagMs: Math.round(lagMs), missing };
      log("warn", "reactor.no_handler", { ...about, code: "TAPE_NO_WORKER", next: `${next} Or cancel the runs.` });
    }
    return found.reduce((sum, { runs }) => sum + runs, 0);
  }

  /**
   * Takes no more work and waits for what is being driven to come to rest. What has not after `boundMs` is given back as
   * it stands: its successor begins from the journal, at once.
   */
  async drain(boundMs = 30_000, bodiesMs = boundMs): Promise<void> {
    this.#draining = true;
    for (const { drive } of this.#drives.values()) drive?.parkNow();
    // An effect ends by its time-out, and is better awaited; a body may never end.
    const first = Math.min(boundMs, bodiesMs);
    if (!(await this.#rested(first))) await this.#giveBackAll(({ acting }) => first === boundMs || !acting);
    if (first < boundMs && !(await this.#rested(boundMs - first))) await this.#giveBackAll(() => true);
    this.#cancelLook?.();
    this.#stopListening();
  }

  async #rested(boundMs: number): Promise<boolean> {
    const enough = new AbortController();
    const all = Promise.all([...this.#drives.values()].map(({ done }) => done)).then(() => true);
    const late = this.#options.clock.sleep(boundMs, enough.signal).then(() => false);
    const rested = await Promise.race([all, late]);
    enough.abort(); // or the rest of the bound would keep the process alive
    return rested;
  }

  async #giveBackAll(which: (drive: Drive) => boolean): Promise<void> {
    const drives = [...this.#drives.values()].flatMap(({ drive }) => (drive && which(drive) ? [drive] : []));
    for (const { options, context } of drives) {
      const next = "It is given back as it stands and goes on elsewhere; what hangs should have a time-out.";
      this.#options.log("warn", "run.not_drained", {
        run: options.runId,
        open: [...(context?.bodies ?? new Map()).values()],
        next,
      });
    }
    await Promise.all(drives.map((drive) => drive.handOver("drained", 0)));
  }

  async #find(limit: number): Promise<{ readonly drives: Promise<DriveEnd>[]; readonly lagMs: number }> {
    const { store, keeper, tenant, random, clock } = this.#options;
    const room = Math.min(limit, this.capacity);
    if (room <= 0 || this.#workflows.length === 0) return { drives: [], lagMs: 0 };
    const sent = readClocks(clock);
    this.#looks++;
    try {
      const terms = await store.claim.find({
        claimant: keeper.claimant("recovery"),
        nextReactor: "recovery",
        staleOf: ["agent", "recovery"],
        staleLimit: this.#suspects.capacity,
        limit: room,
        nonce: random.bits63(),
        tenant,
        workflows: this.#workflows,
        // Who waits for a timer does nothing: half of the room stays for those who do something.
        preload: { withinMs: preloadMs, limit: Math.max(0, Math.floor(this.#options.concurrency / 2) - this.#early) },
      });
      const lagMs = terms.reduce((most, term) => Math.max(most, term.lagMs ?? 0), 0);
      return { drives: terms.map((term) => this.#take(term, sent)), lagMs };
    } finally {
      if (--this.#looks === 0) this.#hints.clear();
    }
  }

  /** A note may have come for this journal. It may be of a run that is ours already though we have not heard so yet. */
  #poke(journal: number | "any"): void {
    const driving = journal === "any" ? undefined : this.#drives.get(journal);
    if (driving?.drive !== undefined) driving.drive.notify();
    else if (driving !== undefined) driving.poked = true;
    else if (this.#looks > 0) this.#hints.add(journal);
  }

  #take(term: Term, sent: ClockReading, fresh?: RunSpec): Promise<DriveEnd> {
    const { journal } = term;
    const poked = this.#hints.has(journal) || this.#hints.has("any");
    const driving: ActiveDrive = { poked, done: Promise.resolve("lost") };
    this.#drives.set(journal, driving);
    driving.done = this.#drive(driving, term, sent, fresh)
      .catch((error: unknown): DriveEnd => {
        this.#options.log("error", "run.drive_failed", { journal, ...errorFields(error) });
        return "lost";
      })
      .finally(() => {
        if (this.#drives.get(journal) === driving) this.#drives.delete(journal);
        this.#freed();
      });
    this.#look();
    return driving.done;
  }

  async #drive(driving: ActiveDrive, term: Term, sent: ClockReading, fresh?: RunSpec): Promise<DriveEnd> {
    const { keeper, store, runner, tenant, clock, random, log, tracing } = this.#options;
    const { journal } = term;
    const lease = keeper.adopt(fresh?.id ?? term.name ?? `run ${journal}`, term, sent);
    // Our own lease that ran out under load is no crash: we are here. Counted before the first rest: see staleLimit.
    const vanished = term.reason === "recovery" && term.takenFrom !== keeper.identity.owner;
    const suspicion: Suspicion | undefined = vanished ? this.#suspects.next() : undefined;
    if (term.preloaded) this.#early++;
    try {
      const known = fresh?.id ?? term.name;
      const runId = known ?? (await store.read.lease(tenant, { journal }))?.name ?? String(journal);
      if (this.#draining) {
        await releaseJournal(store, tenant, lease, term.head, { endReason: "drained", nextReactor: "recovery" });
        return "lost";
      }
      const deps = { store, runner, lease, tenant, runId, clock, random, log, immediate: this.#immediate };
      const startedAt = fresh === undefined ? undefined : tracing?.activeSpan(); // its starter's context reaches as far as here
      const traced = { ...(tracing && { tracing }), ...(startedAt && { startedAt }) };
      const more = {
        ...(fresh && { fresh }),
        ...(suspicion && { suspicion }),
        ...(term.preloaded && { earlyMs: preloadMs }),
        ...(this.#options.patienceMs !== undefined && { patienceMs: this.#options.patienceMs }),
      };
      const drive = new Drive({ ...deps, ...traced, ...more });
      driving.drive = drive;
      if (driving.poked) drive.notify();
      const end = await drive.run();
      if (drive.settled !== undefined) this.#options.onSettled?.(journal, drive.settled);
      return end;
    } finally {
      if (term.preloaded) this.#early--;
      suspicion?.clear();
      lease.end("the drive is over");
    }
  }

  /** Drives that have begun; suspects in the line have not. */
  #others(): Promise<DriveEnd>[] {
    return [...this.#drives.values()].flatMap(({ drive, done }) =>
      drive === undefined || drive.options.suspicion?.solo ? [] : [done],
    );
  }

  /** Hints are lossy: once per heartbeat each drive compares the notes that the renewal told of. */
  #look(): void {
    if (this.#cancelLook !== undefined || this.#drives.size === 0) return;
    const { clock, keeper } = this.#options;
    this.#cancelLook = clock.after(keeper.timings.heartbeatMs, () => {
      this.#cancelLook = undefined;
      for (const { drive } of this.#drives.values()) {
        drive?.checkNotes();
        if (drive !== undefined) this.#hung.look(drive);
      }
      this.#look();
    });
  }
}
