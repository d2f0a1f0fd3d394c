import { systemClock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import { systemRandom } from "../base/random.ts";
import { openRemote } from "../client/open.ts";
import { isRemote } from "../client/remote.ts";
import { environmentToken } from "../client/token.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import { identify } from "../lease/identity.ts";
import { LeaseKeeper } from "../lease/keeper.ts";
import { notFound } from "../model/not-found.ts";
import type { JournalRecord } from "../model/records.ts";
import type { ForkPlan, ForkRequest, Operator, RedriveRequest, ResolveRequest } from "../operator/operator.ts";
import type { ObjectDefinition, ObjectHandlers } from "../sdk/context.ts";
import type { GateDefinition, ReplyGate } from "../sdk/gate.ts";
import { assertKnownKeys, durationOf } from "../sdk/validate.ts";
import { createRunner, type Runner, type Workflow } from "../sdk/workflow.ts";
import { withBlobs } from "../store/blob-store.ts";
import type { FeedRecord, OperatorReason, Store } from "../store/contract/store.ts";
import { type FollowOptions, followFeed } from "../store/follow-feed.ts";
import { journalPages } from "../store/read-all.ts";
import { Builds } from "./builds.ts";
import { Fanouts } from "./fanouts.ts";
import { Leases } from "./leases.ts";
import { type Lists, listsOf } from "./lists.ts";
import { type MetricsHandler, metricsHandler } from "./metrics-handler.ts";
import { type ObjectCallOptions, type ObjectClient, objectClient } from "./objects.ts";
import { OnDemand, type ReactCounts, type ReactOptions } from "./on-demand.ts";
import { closedUnless, openStore } from "./open-store.ts";
import { createOperator } from "./operator.ts";
import {
  type AppOptions,
  appLog,
  assertRunner,
  assertTenant,
  type CallOptions,
  callOptions,
  checkConcurrency,
  checkConnectOptions,
  checkOpenOptions,
  drivingOptions,
  type RemoteAppOptions,
  type SignalOptions,
  type StartOptions,
  warnOfOldNode,
} from "./options.ts";
import { countedBy, ProcessMetrics } from "./process-metrics.ts";
import { activityOf, type ProcessActivity, ProcessReporter } from "./process-reporter.ts";
import { defineQueues, defineQueuesLater, Queues } from "./queues.ts";
import { reactorSpecs } from "./reactor-options.ts";
import type { ReactorSpec } from "./reactors.ts";
import { ResultWaiter } from "./result-waiter.ts";
import { retentionSpecs } from "./retention.ts";
import { type RunHandle, runHandle, type StartItem, type StartResult } from "./run-handle.ts";
import { Schedules } from "./schedules.ts";
import { quietFor, sealedFor, tracingFor, unsealed } from "./sealing.ts";
import { armedFor, type Serverless, type SweepCounts, type SweepOptions, sweepOf } from "./serverless.ts";
import type { ShardedOptions, ShardedSingleton } from "./singleton/sharded-singleton.ts";
import type { Singleton, SingletonOptions, SingletonView } from "./singleton/singleton.ts";
import { Singletons } from "./singleton/singletons.ts";
import type { SingletonWork } from "./singleton/term.ts";
import { Sinks } from "./sinks.ts";
import { Starts } from "./starts.ts";
import { Streams } from "./streams.ts";
import { type AskOptions, Talk } from "./talk.ts";
import { UnservedWarning } from "./unserved-warning.ts";
import { Worker, type WorkerDriving, type WorkerOptions } from "./worker.ts";

/** What `Tape.open` needs: a store, a runner, and settings. */
export type TapeOptions = AppOptions<Tape>;
/** How to reach a server, and what this process does there. */
export type ConnectOptions = RemoteAppOptions<Tape>;

const defaultTtl = 30_000;

/**
 * A program's handle: starts runs, drives them and runs the reactors.
 *
 * @example
 * await using app = await Tape.open({ store: "sqlite:./tape.db", runner: createRunner({ workflows: [hello] }) });
 * const run = await app.start(hello, { name: "Ada" });
 * console.log(await run.result());
 */
export class Tape implements AsyncDisposable {
  /** The open store. */
  readonly store: Store;
  /** The tenant of all its runs. */
  readonly tenant: string;
  readonly schedules: Schedules;
  readonly queues: Queues;
  readonly builds: Builds;
  readonly streams: Streams;
  readonly runs: Lists["runs"];
  readonly effects: Lists["effects"];
  readonly obligations: Lists["obligations"];
  readonly gates: Lists["gates"];
  readonly timers: Lists["timers"];
  /** Named leases, for work that is not a run. */
  readonly leases: Leases;
  /** The figures of this process, in the format of Prometheus; `metrics: { listen }` serves them on a port. */
  readonly metrics: ProcessMetrics;
  /** Answers `/livez`, `/readyz`, `/healthz` and `/metrics` in a server of your own. */
  readonly metricsHandler: MetricsHandler;
  readonly fanouts: Fanouts;
  readonly sinks: Sinks;
  readonly #singletons: Singletons;
  readonly #operator: Operator;
  readonly #ownsStore: boolean;
  readonly #keeper: LeaseKeeper;
  readonly #deps: ReactorDeps;
  readonly #workers: Worker[] = [];
  readonly #results: ResultWaiter;
  readonly #talk: Talk;
  readonly #unserved: UnservedWarning;
  readonly #starts: Starts;
  readonly #reporter: ProcessReporter | undefined;
  readonly #driving: WorkerDriving;
  readonly #onDemand: OnDemand;
  readonly #serverless: Serverless | undefined;
  #closing: Promise<void> | undefined;

  private constructor(inner: Store, options: TapeOptions, ownsStore: boolean) {
    const { runner, concurrency = 200, serverless, work = !serverless, report = !serverless } = options;
    const { tenant = isRemote(inner) ? inner.remote.tenant : "default" } = options;
    const log = quietFor(options, appLog(options.log));
    const { clock = systemClock, random = systemRandom } = options;
    const keptAhead = serverless && armedFor(inner, serverless, { tenant, clock, log });
    const store = sealedFor(withBlobs(keptAhead?.store ?? inner), options);
    if (isRemote(store)) assertTenant(store.remote.tenant, tenant);
    this.store = store;
    this.tenant = tenant;
    this.#ownsStore = ownsStore;
    const shared = { store, tenant, clock, random, log };
    this.#talk = new Talk(shared);
    this.schedules = new Schedules(store, tenant, random);
    this.queues = new Queues(store, tenant);
    this.builds = new Builds({ store, tenant, clock }, () => this.#operator);
    this.streams = new Streams(shared);
    const lists = listsOf(store, tenant);
    ({ runs: this.runs, effects: this.effects, obligations: this.obligations } = lists);
    ({ gates: this.gates, timers: this.timers } = lists);
    this.#starts = new Starts({ ...shared, talk: this.#talk, workers: this.#workers });
    const ttlMs = durationOf("the app", "leaseTtl", options.leaseTtl, defaultTtl);
    this.#driving = drivingOptions(tracingFor(options), countedBy(this));
    const keeper = new LeaseKeeper({ ...shared, identity: identify(process.env, random), timings: { ttlMs } });
    this.#keeper = keeper;
    const deps = { ...shared, runner, keeper };
    this.#singletons = new Singletons({ ...deps, onHeld: () => this.#reporter?.soon() });
    this.fanouts = new Fanouts({ ...deps, store: unsealed(store) });
    this.#deps = deps;
    this.#operator = createOperator(deps);
    this.leases = new Leases(deps, this.#operator);
    this.sinks = new Sinks(store, tenant, this.#operator, keeper.identity.label);
    this.#results = new ResultWaiter({
      ...shared,
      drives: (journal) => this.#workers.some(({ driver }) => driver?.drives(journal)),
      serves: (workflow) => this.#serves(workflow),
    });
    const activity = (): ProcessActivity => activityOf(this.#workers, this.singletons, this.#onDemand);
    this.#unserved = new UnservedWarning(shared, () => activity().workflows ?? []);
    const parts = { fanouts: this.fanouts, singletons: this.#singletons, alarms: keptAhead?.counts };
    this.metrics = new ProcessMetrics({ ...shared, ...parts, keeper, isDraining: () => this.#closing !== undefined });
    this.metricsHandler = metricsHandler(this.metrics);
    if (report) this.#reporter = new ProcessReporter({ ...shared, identity: keeper.identity }, activity);
    const own = (): ReactorSpec[] =>
      reactorSpecs<Tape>("the app", options.reactors, () => this, { ttlMs, concurrency });
    if (work) this.#work(runner, { concurrency }, [...own(), ...retentionSpecs(options.retention, deps, this.metrics)]);
    this.#onDemand = new OnDemand(this, deps, () => ({ specs: own(), driver: { concurrency, ...this.#driving } }));
    this.#serverless = keptAhead?.start({ ...deps, react: (name, bound) => this.react(name, bound) });
  }

  /**
   * Opens a store, defines the runner's queues, and starts the worker and the reactors.
   *
   * @throws TAPE_BAD_INPUT if an option is not valid, TAPE_BAD_STORE_URL if the URL of the store is not.
   * @example
   * await using app = await Tape.open({ store: "sqlite:./tape.db", runner: createRunner({ workflows: [hello] }) });
   */
  static async open(options: TapeOptions): Promise<Tape> {
    checkOpenOptions(options);
    const seams = { log: appLog(options.log), ...defined({ clock: options.clock, random: options.random }) };
    if (typeof options.store !== "string") return await new Tape(options.store, options, false).#defined(options);
    warnOfOldNode(seams.log);
    const store = await openStore(options.store, seams);
    return closedUnless(store, () => new Tape(store, options, true).#defined(options));
  }

  /**
   * The same handle on a store behind a server, or behind several replicas of it. The credential determines the tenant
   * and the permissions.
   *
   * @example
   * await using app = await Tape.connect("https://tape.example", { token, runner: createRunner({ workflows: [hello] }) });
   */
  static async connect(url: string | readonly string[], options: ConnectOptions = {}): Promise<Tape> {
    checkConnectOptions(url, options);
    const { runner, work = runner !== undefined, token = environmentToken(url, process.env), ...rest } = options;
    const log = appLog(options.log);
    const store = await openRemote(url, { ...rest, token, log });
    const app = { ...rest, store, runner: runner ?? createRunner({ workflows: [] }), work };
    return closedUnless(store, () => new Tape(store, app, true).#defined(app));
  }

  /** The queues of its runner exist from now on. A process that only starts runs of a server defines none. */
  async #defined({ runner, work = true, metrics }: Pick<TapeOptions, "runner" | "work" | "metrics">): Promise<this> {
    try {
      if (work || !isRemote(this.store)) await defineQueues(this.#deps, runner.queues?.values() ?? []);
      await this.metrics.start(metrics, this.#deps.log);
      return this;
    } catch (error) {
      await this.#stop();
      throw error;
    }
  }

  /**
   * Starts a run and returns its handle; it does not wait for the run.
   *
   * @throws TAPE_BAD_INPUT if the input does not match the schema, or an option is not valid.
   * @throws TAPE_RUN_CONFLICT if a run with this id has another workflow or input.
   * @example
   * const run = await app.start(hello, { name: "Ada" }, { id: "hello-ada" });
   */
  async start<I, O>(workflow: Workflow<I, O>, input: I, options: StartOptions = {}): Promise<RunHandle<O>> {
    const spec = await this.#starts.spec(workflow, input, options);
    const { id, journal, fresh } = await this.#starts.createOne(spec, options.transaction);
    if (fresh && !this.#serves(workflow.name)) this.#unserved.warn(workflow.name, id);
    return this.#handle<O>(id, journal);
  }

  /**
   * Starts many runs in one call, each with its own result. An item may have options of its own.
   *
   * @example
   * const results = await app.startAll(resize, images.map((input) => ({ input })));
   */
  async startAll<I, O>(
    workflow: Workflow<I, O>,
    items: readonly StartItem<I>[],
    options: StartOptions = {},
  ): Promise<StartResult<O>[]> {
    const results = await this.#starts.createAll(workflow, items, options);
    return results.map((one) => (one.ok ? { ok: true, run: this.#handle<O>(one.id, one.journal) } : one));
  }

  /**
   * Starts a run and waits for its result.
   *
   * @throws TAPE_RUN_FAILED if the run fails.
   * @example
   * const greeting = await app.call(hello, { name: "Ada" });
   */
  async call<I, O>(workflow: Workflow<I, O>, input: I, options: CallOptions = {}): Promise<O> {
    const [start, wait] = callOptions(options);
    return (await this.start(workflow, input, start)).result(wait);
  }

  /**
   * One key of an object: calls its handlers, and reads its state.
   *
   * @example
   * const total = await app.object(counter, "visits").add(1);
   */
  object<S, H extends ObjectHandlers<S>>(
    definition: ObjectDefinition<S, H>,
    key: string,
    options: ObjectCallOptions = {},
  ): ObjectClient<S, H> {
    return objectClient(this, definition, key, options);
  }

  /**
   * Sends a request to a gate with `reply: true` and waits for the reply of the run.
   *
   * @throws TAPE_ASK_REJECTED if the run rejects the request, TAPE_RUN_ENDED if it ends without a reply.
   * @example
   * const { total } = await app.ask("cart-7", add, { sku: "b-1" }, { key: "click-9", timeout: "10s" });
   */
  ask<T, R>(run: string, gate: ReplyGate<T, R>, value: T, options: AskOptions = {}): Promise<R> {
    return this.#talk.ask(run, gate, value, options);
  }

  /**
   * Opens the gate of a callback, for a program that has received the call itself. false: it was open already.
   *
   * @example
   * await app.deliver(token, { receipt: "r-1" });
   */
  async deliver(token: string, value: unknown): Promise<boolean> {
    return !(await this.store.intake.deliver(this.tenant, token, { value })).duplicate;
  }

  /**
   * A handle to an existing run.
   *
   * @throws TAPE_RUN_NOT_FOUND if there is none.
   * @example
   * const run = await app.run("hello-ada");
   */
  async run<O = unknown>(id: string): Promise<RunHandle<O>> {
    const run = await this.store.read.run(this.tenant, id);
    if (run === undefined) throw notFound("run", id);
    return this.#handle<O>(id, run.journal);
  }

  /**
   * Sends a value to a gate of a run. A gate that is not open yet finds it later.
   *
   * @throws TAPE_BAD_GATE_VALUE if the value does not match the gate's schema.
   * @example
   * await app.signal("pay-7", cfo, { approved: true }, { by: "ada" });
   */
  signal<T>(run: string, gate: GateDefinition<T>, value: T, options: SignalOptions = {}): Promise<void> {
    return this.#talk.signal(run, gate, value, options);
  }

  /**
   * Cancels a run: it compensates what it owes, then ends.
   *
   * @example
   * await app.cancel("pay-7", { by: "ada", reason: "wrong account" });
   */
  async cancel(run: string, options: OperatorReason): Promise<void> {
    assertKnownKeys("cancel", options, ["reason", "by"]);
    await this.#operator.cancel(run, options);
  }

  /**
   * Settles an effect or a compensation that is UNKNOWN or STUCK, in an operator's name; a run that is stuck on it
   * resumes. Other resolutions have the effect observed again, retried or compensated.
   *
   * @throws TAPE_ILLEGAL_TRANSITION unless the effect is UNKNOWN or STUCK.
   * @example
   * await app.resolve({ run: "pay-7", pos: 3, resolution: { as: "confirmed", value: receipt }, by: "ada", reason: "seen at the bank" });
   */
  resolve(request: ResolveRequest): Promise<void> {
    return this.#operator.resolve(request);
  }

  /**
   * Resumes a stuck run where it stopped, after an operator has removed the cause: at once, or after `in`.
   *
   * @throws TAPE_ILLEGAL_TRANSITION unless the run is stuck.
   * @example
   * await app.redrive("pay-7", { by: "ada", reason: "the bank is back" });
   */
  redrive(run: string, request: RedriveRequest): Promise<void> {
    return this.#operator.redrive(run, request);
  }

  /**
   * What a fork of the run at this position would keep, rerun and repeat upstream. Changes nothing.
   *
   * @example
   * const plan = await app.forkPlan("pay-7", 3);
   */
  forkPlan(run: string, at?: number): Promise<ForkPlan> {
    return this.#operator.forkPlan(run, at);
  }

  /**
   * Starts a new run from a point of an existing one: it keeps what was recorded before that point and reruns the rest.
   * Effects that have happened and would happen again must be named in `repeat`. Kept effects that were compensated, or
   * that the other run may still compensate, must be named in `keepCompensated`.
   *
   * @throws TAPE_FORK_REPEATS unless every effect that would happen again is named.
   * @example
   * const copy = await app.fork("pay-7", { at: 3, by: "ada", reason: "with the new prompt" });
   */
  async fork(run: string, request: ForkRequest): Promise<RunHandle<unknown>> {
    return this.run(await this.#operator.fork(run, request));
  }

  /** Erases the payloads of a run that has ended, for good; with `tree`, of its whole tree. The journal stays readable. */
  readonly erase: Operator["erase"] = (run, request) => this.#operator.erase(run, request);

  /**
   * A background job that runs on one replica at a time. This process stands by and runs it while it holds the lease.
   * With `shards`, the replicas share the work: each shard runs on one of them.
   *
   * @example
   * await app.singleton("sweeper", async ({ abortSignal, sleep, assert }) => {
   *   for (; !abortSignal.aborted; await sleep("1m")) { assert(); await sweep(); }
   * });
   */
  singleton(name: string, work: SingletonWork, options: ShardedOptions): Promise<ShardedSingleton>;
  singleton(name: string, work: SingletonWork, options?: SingletonOptions): Promise<Singleton>;
  singleton(name: string, work: SingletonWork, options: SingletonOptions | ShardedOptions = {}) {
    this.#reporter?.begin();
    if ("shards" in options) return this.#singletons.startShards(name, work, options);
    return this.#singletons.start(name, work, options);
  }

  /** This app's singletons and their states. */
  get singletons(): readonly SingletonView[] {
    return this.#singletons.list();
  }

  /**
   * The records of a run's journal, in order, up to now. {@link feed} follows new ones.
   *
   * @example
   * for await (const record of app.journal("pay-7")) console.log(record.seq, record.kind);
   */
  async *journal(run: string, page: { readonly from?: number } = {}): AsyncGenerator<JournalRecord> {
    const read = (from: number) => this.store.read.journal(this.tenant, { run }, { from });
    for await (const records of journalPages(read, page.from)) yield* records;
  }

  /**
   * Also drives the workflows of another runner in this process, until it is drained or the app is closed.
   *
   * @example
   * const worker = app.worker(createRunner({ workflows: [hello] }), { concurrency: 20 });
   */
  worker(runner: Runner, options: WorkerOptions = {}): Worker {
    assertRunner("app.worker", runner);
    assertKnownKeys("app.worker", options, ["concurrency"]);
    checkConcurrency("app.worker", options.concurrency);
    return this.#work(runner, options);
  }

  #work(runner: Runner, options: WorkerOptions, specs?: readonly ReactorSpec[]): Worker {
    const onSettled: WorkerDriving["onSettled"] = (journal, result) => this.#results.settled(journal, result);
    const worker = new Worker({ ...this.#deps, runner }, { ...options, ...this.#driving, onSettled }, specs);
    this.#workers.push(worker);
    this.metrics.watch(worker);
    this.#reporter?.begin();
    if (runner !== this.#deps.runner) defineQueuesLater(this.#deps, runner.queues?.values() ?? []);
    return worker;
  }

  /**
   * Polls once for a reactor and works on what it finds: for hosts that run only during a request.
   *
   * @example
   * const { found, done } = await app.react("outbox", { limit: 50 });
   */
  react(reactor: string, options: ReactOptions = {}): Promise<ReactCounts> {
    return this.#onDemand.react(reactor, options);
  }

  /**
   * Works on everything that is due, and sets the alarm for what is due next. For apps with `serverless`.
   *
   * @example
   * const { done } = await app.sweep();
   */
  sweep(options: SweepOptions = {}): Promise<SweepCounts> {
    return sweepOf(this.#serverless).sweep(options);
  }

  /**
   * Every record of the tenant in the order of the feed, now and later; resumable by cursor.
   *
   * @example
   * for await (const { cursor, kind } of app.feed({ signal })) console.log(cursor, kind);
   */
  feed(options: Omit<FollowOptions, "tenant"> = {}): AsyncGenerator<FeedRecord> {
    return followFeed(this.store, this.#deps.clock, { ...options, tenant: this.tenant });
  }

  /** Stops claiming, drains running work, releases leases, and closes the store if this app opened it. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await this.#stop();
    if (this.#ownsStore) await this.store.close();
  }

  async #stop(): Promise<void> {
    const parts = [this.#singletons, this.#onDemand, this.fanouts, this.#serverless];
    // In parallel, because each has its own bound.
    await Promise.all([...this.#workers.map((worker) => worker.drain()), ...parts.map((part) => part?.stop())]);
    await this.#reporter?.end();
    await this.metrics.stop();
    this.#keeper.close();
  }

  /** Whether this app drives the workflow's runs: in a loop, behind a push handler, or by alarms. */
  #serves(workflow: string): boolean {
    return this.#serverless !== undefined || [this.#onDemand, ...this.#workers].some((one) => one.serves(workflow));
  }

  #handle<O>(id: string, journal: number): RunHandle<O> {
    return runHandle({ runs: this.runs, streams: this.streams, results: this.#results, talk: this.#talk }, id, journal);
  }
}
