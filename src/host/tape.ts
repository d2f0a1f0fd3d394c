import { type Clock, systemClock } from "../base/clock.ts";
import { type Duration, durationMs } from "../base/duration.ts";
import { type Log, silentLog } from "../base/log.ts";
import { type Random, systemRandom } from "../base/random.ts";
import { Worker } from "../engine/worker.ts";
import { identify } from "../lease/identity.ts";
import { LeaseKeeper } from "../lease/keeper.ts";
import { TapeError } from "../model/errors.ts";
import type { EffectRow } from "../model/rows.ts";
import { compensation } from "../reactor/compensation.ts";
import { ReactorLoop } from "../reactor/loop.ts";
import { outbox } from "../reactor/outbox.ts";
import { reconciler } from "../reactor/reconciler.ts";
import { recovery } from "../reactor/recovery.ts";
import { timers } from "../reactor/timers.ts";
import type { GateDefinition } from "../sdk/gate.ts";
import { check } from "../sdk/schema.ts";
import type { Runner, Workflow } from "../sdk/workflow.ts";
import type { FeedRecord, RunFilter, RunView, Store } from "../store/contract.ts";
import { type FollowOptions, followFeed } from "../store/follow.ts";
import { type OpenGate, openGates } from "./gates.ts";
import { openStore } from "./open-store.ts";

export interface TapeOptions {
  /** A store URL, or an open store (which then stays open). */
  readonly store: string | Store;
  readonly runner: Runner;
  readonly tenant?: string;
  /** Runs driven at once by this process. */
  readonly concurrency?: number;
  readonly leaseTtl?: Duration;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Log;
  /** false: this process starts and reads runs but drives nothing. Default true. */
  readonly work?: boolean;
}

export interface StartOptions {
  /** The caller's id: starting it again with the same input returns the same run. */
  readonly id?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly budget?: Readonly<Record<string, number>>;
}

/** A run, as its starter sees it. */
export interface RunHandle<O> {
  readonly id: string;
  /** The outcome, once there is one; throws TAPE_RUN_FAILED for a run that did not end well. */
  result(options?: { readonly signal?: AbortSignal }): Promise<O>;
  status(): Promise<RunView["status"]>;
}

/** How long `result` waits for somebody who serves the workflow before it says that nobody does. */
const nobodyMs = 10_000;
const defaultTtl = 30_000;

/**
 * A program's handle: starts runs, drives them, and runs the reactors beside.
 *
 * @example
 * await using app = await Tape.open({ store: "sqlite:./tape.db", runner: createRunner({ workflows: [hello] }) });
 * const run = await app.start(hello, { name: "Ada" });
 * console.log(await run.result());
 */
export class Tape implements AsyncDisposable {
  readonly store: Store;
  readonly tenant: string;
  readonly #options: TapeOptions;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #keeper: LeaseKeeper;
  readonly #worker: Worker | undefined;
  readonly #loop: ReactorLoop | undefined;
  #closing: Promise<void> | undefined;

  private constructor(store: Store, options: TapeOptions) {
    const { runner, tenant = "default", concurrency = 200, work = true, log = silentLog } = options;
    this.store = store;
    this.tenant = tenant;
    this.#options = options;
    const clock = options.clock ?? systemClock;
    const random = options.random ?? systemRandom;
    this.#clock = clock;
    this.#random = random;
    const ttlMs = durationMs(options.leaseTtl ?? defaultTtl);
    if (ttlMs === undefined) throw new TapeError("TAPE_BAD_INPUT", "leaseTtl is not a duration", { field: "leaseTtl" });
    const keeper = new LeaseKeeper({
      store,
      identity: identify(process.env, random),
      tenant,
      timings: { ttlMs },
      clock,
      random,
      log,
    });
    this.#keeper = keeper;
    if (!work) return;
    const ground = { store, runner, keeper, tenant, clock, random, log };
    const worker = new Worker({ ...ground, concurrency });
    this.#worker = worker;
    const reactors = [recovery(worker), reconciler(ground), outbox(ground), timers(ground), compensation(ground)];
    this.#loop = new ReactorLoop({ reactors, store, clock, log });
  }

  static async open(options: TapeOptions): Promise<Tape> {
    const { log, clock, random } = options;
    const more = { ...(log && { log }), ...(clock && { clock }), ...(random && { random }) };
    const store = typeof options.store === "string" ? await openStore(options.store, more) : options.store;
    const tape = new Tape(store, options);
    await tape.#loop?.start();
    return tape;
  }

  async start<I, O>(workflow: Workflow<I, O>, input: I, options: StartOptions = {}): Promise<RunHandle<O>> {
    const checked = await check(workflow.schema, input);
    if ("fault" in checked)
      throw new TapeError("TAPE_BAD_INPUT", `input of ${workflow.name}: ${checked.fault}`, { field: "input" });
    const { id = this.#random.uuid(this.#clock.wall()), labels, budget } = options;
    const { version } = workflow;
    const spec = {
      id,
      workflow: workflow.name,
      input: checked.value,
      ...(version === undefined ? {} : { version }),
      ...(labels === undefined ? {} : { labels }),
      ...(budget === undefined ? {} : { budget: millionths(budget) }),
    };
    const serves = this.#options.runner.workflows.has(workflow.name);
    const starting =
      serves && this.#worker !== undefined
        ? this.#worker.start([spec])
        : this.store.intake.createRuns(this.tenant, [spec]);
    const [verdict] = await starting;
    if (verdict === undefined) throw new TapeError("TAPE_INVARIANT", "a run was neither created nor refused");
    if (!verdict.ok) throw verdict.error;
    return this.#handle<O>(id, verdict.journal);
  }

  /** A handle to a run that exists. */
  async run<O = unknown>(id: string): Promise<RunHandle<O>> {
    const run = await this.store.read.run(this.tenant, id);
    if (run === undefined) throw new TapeError("TAPE_RUN_UNKNOWN", `there is no run ${id}`, { run: id });
    return this.#handle<O>(id, run.journal);
  }

  async signal<T>(
    run: string,
    gate: GateDefinition<T>,
    value: T,
    options: { key?: string; binds?: string | undefined; by?: string } = {},
  ): Promise<void> {
    const { binds, ...said } = options;
    const checked = await check(gate.schema, value);
    if ("fault" in checked)
      throw new TapeError("TAPE_GATE_VALUE", `${gate.name}: ${checked.fault}`, { gate: gate.name });
    const signal = { name: gate.name, value: checked.value, ...said, ...(binds === undefined ? {} : { binds }) };
    await this.store.intake.signal(this.tenant, run, signal);
  }

  async cancel(run: string, options: { reason: string; by?: string }): Promise<void> {
    await this.store.intake.cancel(this.tenant, run, options);
  }

  readonly runs = {
    get: (id: string): Promise<RunView | undefined> => this.store.read.run(this.tenant, id),
    list: (filter?: RunFilter): Promise<RunView[]> => this.store.read.runs(this.tenant, filter),
  };

  readonly effects = {
    list: (filter: { run?: string; status?: string; minAge?: Duration } = {}): Promise<EffectRow[]> =>
      this.#listEffects("act", filter),
  };

  readonly obligations = {
    list: (filter: { run?: string; status?: string; minAge?: Duration } = {}): Promise<EffectRow[]> =>
      this.#listEffects("inverse", filter),
  };

  readonly gates = {
    /** Gates that stand open. */
    list: (filter: { run?: string } = {}): Promise<OpenGate[]> => openGates(this.store, this.tenant, filter),
  };

  journal(
    run: string,
    page: { readonly from?: number; readonly limit?: number } = {},
  ): ReturnType<Store["read"]["journal"]> {
    return this.store.read.journal(this.tenant, { run }, page);
  }

  feed(options: Omit<FollowOptions, "tenant"> = {}): AsyncGenerator<FeedRecord> {
    return followFeed(this.store, this.#clock, { ...options, tenant: this.tenant });
  }

  /** Stops claiming, lets what runs come to rest, gives leases back, closes the store if it was opened here. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await Promise.all([this.#loop?.stop(), this.#worker?.drain()]); // together: each has its bound
    this.#keeper.close();
    if (typeof this.#options.store === "string") await this.store.close();
  }

  #listEffects(
    role: "act" | "inverse",
    filter: { run?: string; status?: string; minAge?: Duration },
  ): Promise<EffectRow[]> {
    const { run, status, minAge } = filter;
    return this.store.read.effects(this.tenant, {
      role,
      ...(run === undefined ? {} : { run }),
      ...(status === undefined ? {} : { status: [status] }),
      ...(minAge === undefined ? {} : { minAgeMs: durationMs(minAge) ?? 0 }),
    });
  }

  #handle<O>(id: string, journal: number): RunHandle<O> {
    return {
      id,
      status: async () => (await this.runs.get(id))?.status ?? "RUNNABLE",
      result: (options = {}) => this.#result<O>(id, journal, options.signal),
    };
  }

  async #result<O>(id: string, journal: number, signal: AbortSignal | undefined): Promise<O> {
    const begun = this.#clock.mono();
    for (;;) {
      let woken = false;
      let wake = (): void => {
        woken = true;
      };
      const deaf = this.store.onWake((hint) => {
        if (hint.of === "any" || (hint.of === "journal" && hint.journal === journal)) wake();
      });
      try {
        const run = await this.runs.get(id);
        if (run === undefined) throw new TapeError("TAPE_RUN_UNKNOWN", `there is no run ${id}`, { run: id });
        if (run.status === "COMPLETED") return run.outcome as O;
        if (run.endedAt !== null) {
          throw new TapeError(
            "TAPE_RUN_FAILED",
            `run ${id} ended as ${run.status}`,
            { run: id, status: run.status },
            run.outcome,
          );
        }
        if (run.status === "STUCK") throw new TapeError("TAPE_RUN_STUCK", `run ${id} needs a person`, { run: id });
        const waited = this.#clock.mono() - begun;
        if (run.status === "RUNNABLE" && waited > nobodyMs && !this.#options.runner.workflows.has(run.workflow)) {
          throw new TapeError(
            "TAPE_NO_WORKER",
            `nobody has taken run ${id} of ${run.workflow} for ${Math.round(waited)} ms`,
            { run: id },
          );
        }
        if (signal?.aborted) throw signal.reason;
        if (woken) continue;
        const rest = new AbortController();
        wake = () => rest.abort();
        await this.#clock.sleep(1_000, signal === undefined ? rest.signal : AbortSignal.any([rest.signal, signal]));
      } finally {
        deaf();
      }
    }
  }
}

function millionths(budget: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(budget).map(([unit, cap]) => [unit, Math.round(cap * 1_000_000)]));
}
