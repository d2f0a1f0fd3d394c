import type { Duration } from "../base/duration.ts";
import type { Fence } from "../model/fence.ts";
import type {
  BudgetContext,
  Child,
  DecisionContext,
  DetachedOptions,
  DetachedRun,
  EffectResult,
  GateOptions,
  JournalFigures,
  MapOptions,
  MapOutcome,
  SpawnOptions,
  StepContext,
  StepOptions,
  ValuesContext,
} from "./context-options.ts";
import type { EffectCall, RetryPolicy } from "./effect-types.ts";
import type { GateDefinition, ReplyGate } from "./gate.ts";
import type { QueueDefinition } from "./queue.ts";
import type { Schema } from "./schema.ts";
import type { ScopeHandle, ScopeOptions } from "./scope.ts";
import type { Callback, CallbackOptions, GateAnswer, GateRequest, RawCallback } from "./talk.ts";
import type { ClientOf, PostgresPool, SqliteConnection } from "./transaction.ts";

export type {
  BudgetContext,
  Child,
  DecisionContext,
  DecisionDetails,
  DetachedOptions,
  DetachedRun,
  EffectResult,
  GateOptions,
  JournalFigures,
  MapOptions,
  MapOutcome,
  SpawnOptions,
  StepContext,
  StepOptions,
  StepRetryPolicy,
  ValuesContext,
} from "./context-options.ts";
export type { GateAnswer } from "./talk.ts";

/** Branches of a race: promises of started operations, or functions, each of which starts in a lane of its own. */
export type Branches<T extends readonly unknown[]> = {
  readonly [K in keyof T]: Promise<T[K]> | ((tape: TapeContext) => Promise<T[K]>);
};

/** One key of an object, for a run that calls it. */
export type ObjectInRun<S, H extends ObjectHandlers<S>> = ObjectCalls<H> & {
  /** The state of this key, as the last handler left it. */
  state(): Promise<S>;
};

/** The durable operations of a workflow. Each is recorded once, and replay returns the recorded result. */
export interface TapeContext<I = never> {
  /** The id of this run: the same on every attempt and on replay. */
  readonly runId: string;
  /**
   * Local work that may be repeated: runs at least once.
   *
   * @throws TAPE_TIMEOUT if the last attempt took longer than `timeout`.
   * @throws the error of the last attempt, with its class, if no attempt is left.
   * @example
   * const rate = await tape.step("rate", ({ abortSignal }) => fetchRate(abortSignal), { retry: { attempts: 5 }, timeout: "10s" });
   */
  step<T>(name: string, body: (context: StepContext) => T | Promise<T>, options?: StepOptions): Promise<T>;
  /**
   * A step whose rows commit together with its result, exactly once, in the store's own PostgreSQL database. The body
   * gets a client of your pool inside a transaction. It may run again if that is rolled back.
   *
   * @throws TAPE_OTHER_DATABASE if the connection does not lead to the store's own database.
   * @example
   * await tape.transaction("book", pool, async (client) => {
   *   await client.query("insert into bookings values ($1)", [tape.runId]);
   * });
   */
  transaction<T, P extends PostgresPool>(
    name: string,
    pool: P,
    body: (client: ClientOf<P>, context: StepContext) => T | Promise<T>,
    options?: StepOptions,
  ): Promise<T>;
  /**
   * The same in the store's own SQLite file. The body is synchronous, because every other writer waits for it.
   *
   * @throws TAPE_OTHER_DATABASE if the connection does not lead to the store's own database.
   */
  transaction<T, D extends SqliteConnection>(
    name: string,
    database: D,
    body: (database: D, context: StepContext) => T,
    options?: StepOptions,
  ): Promise<T>;
  /**
   * A model call or any other judgement, recorded with its rationale and never repeated once recorded.
   *
   * @throws TAPE_TIMEOUT if the last attempt took longer than `timeout`.
   * @example
   * const plan = await tape.decide("plan", async (d) => {
   *   const answer = await ask(`What next? ${d.attempt}`);
   *   d.record({ model: "m-1", rationale: "it is cheaper" });
   *   return answer;
   * });
   */
  decide<T>(name: string, body: (decision: DecisionContext) => T | Promise<T>, options?: StepOptions): Promise<T>;
  /**
   * Resolves when confirmed, throws EffectFailed when failed. While the outcome is unknown, the run is parked.
   *
   * @throws EffectFailed if the effect surely did not happen.
   * @throws TAPE_CANCELLED if the run is cancelled before the effect was sent.
   * @example
   * const receipt = await tape.effect(pay.with({ invoice: "7", amount: 120 }));
   */
  effect<R>(call: EffectCall<R>): Promise<R>;
  /**
   * Like `effect`, but a failure is a value: `{ status: "failed", reason, error }`.
   *
   * @example
   * const sent = await tape.attempt(pay.with({ invoice: "7", amount: 120 }));
   * if (sent.status === "failed") tape.log(`not paid: ${sent.reason}`);
   */
  attempt<R>(call: EffectCall<R>): Promise<EffectResult<R>>;
  /**
   * Waits for a signal to this gate; days are fine, because the run is parked meanwhile.
   *
   * @throws TAPE_CANCELLED if the run is cancelled while it waits.
   * @example
   * const answer = await tape.gate(cfo, { payload: { amount: 120 }, timeout: "2d" });
   * if (answer.status === "timeout" || !answer.value.approved) throw new Error("not approved");
   */
  gate<T, R>(gate: ReplyGate<T, R>, options?: GateOptions): Promise<GateRequest<T, R>>;
  /**
   * Waits for a signal to this gate; days are fine, because the run is parked meanwhile.
   *
   * @throws TAPE_CANCELLED if the run is cancelled while it waits.
   * @example
   * const answer = await tape.gate(cfo, { payload: { amount: 120 }, timeout: "2d" });
   * if (answer.status === "timeout" || !answer.value.approved) throw new Error("not approved");
   */
  gate<T>(gate: GateDefinition<T>, options?: GateOptions): Promise<GateAnswer<T>>;
  /**
   * A gate for another system that calls back: it gets an address or a token, which opens this gate, once.
   *
   * @throws TAPE_NO_PUBLIC_URL when its `url` is read and no public address is set.
   * @example
   * const paid = await tape.callback<{ receipt: string }>("paid", { timeout: "2d" });
   * await tape.step("invoice", () => sendInvoice({ webhook: paid.url }));
   * const answer = await paid.result();
   */
  callback(name: string, options: CallbackOptions & { readonly raw: true }): Promise<Callback<RawCallback>>;
  /**
   *
   * @throws TAPE_NO_PUBLIC_URL when its `url` is read and no public address is set.
   */
  callback<T = unknown>(name: string, options?: CallbackOptions): Promise<Callback<T>>;
  /**
   * Shows a value under a name, for readers outside the run: the latest one, also after the end. Recorded with the next
   * write, not awaited.
   *
   * @throws TAPE_TOO_LARGE if the run has published the most names that a store allows.
   * @example
   * tape.publish("stage", { done: 3, of: 10 });
   */
  publish(name: string, value: unknown): void;
  /**
   * Changes labels of this run, by which lists find it; undefined removes one. Recorded with the next write, not
   * awaited.
   *
   * @throws TAPE_TOO_LARGE if the run would have more labels than the store allows.
   * @example
   * tape.label({ customer: "acme", stage: "paid", draft: undefined });
   */
  label(labels: Readonly<Record<string, string | undefined>>): void;
  /** How long the journal of this run has become: the same on replay. */
  readonly journal: JournalFigures;
  /**
   * Ends this generation of the run and starts its function again with this input, in the same run: an endless loop
   * whose journal stays short. Signals that no gate has taken yet are kept. It waits for effects without a result; with
   * a child that lives it fails as TAPE_OPEN_CHILDREN.
   *
   * @throws TAPE_OPEN_CHILDREN if a child run lives.
   * @example
   * if (tape.journal.long) return tape.continueAsNew(state);
   */
  continueAsNew(input: I): Promise<never>;
  /**
   * Parks the run for this time; no process needs to stay up for it.
   *
   * @example
   * await tape.sleep("30d");
   */
  sleep(duration: Duration): Promise<void>;
  /**
   * Sleeps until a Date or a time in milliseconds since 1970; a past time ends the sleep at once.
   *
   * @example
   * await tape.sleepUntil(new Date("2030-01-01T09:00:00Z"));
   */
  sleepUntil(moment: Date | number): Promise<void>;
  /**
   * Starts a child run. This run ends only after it, and an ending run cancels it. Detached, it is a run of its own:
   * neither waited for nor cancelled, with a budget of its own, and `startedBy` names this run.
   *
   * @throws TAPE_RUN_CONFLICT if a detached run with this `id` has another workflow or input.
   * @example
   * const child = await tape.spawn(hello, { name: "Ada" });
   * const greeting = await child.result();
   */
  spawn<I, O>(workflow: Workflow<I, O>, input: I, options: DetachedOptions): Promise<DetachedRun>;
  /**
   *
   * @throws TAPE_RUN_CONFLICT if a detached run with this `id` has another workflow or input.
   * @example
   * const child = await tape.spawn(hello, { name: "Ada" });
   * const greeting = await child.result();
   */
  spawn<I, O>(workflow: Workflow<I, O>, input: I, options?: SpawnOptions): Promise<Child<O>>;
  /**
   * Starts a child run and waits for its result.
   *
   * @throws TAPE_RUN_FAILED if the child has failed; its `cause` is the child's error.
   * @example
   * const greeting = await tape.call(hello, { name: "Ada" });
   */
  call<I, O>(workflow: Workflow<I, O>, input: I, options?: SpawnOptions): Promise<O>;
  /**
   * Calls a function for each item, a bounded number at once, and returns the results in the order of the items. The
   * first failure stops further starts, and is thrown when the items under way are through.
   *
   * @throws TAPE_TOO_LARGE if there are more items than the store's limits allow.
   * @example
   * const pages = await tape.map(files, (file) => tape.call(parse, file), { concurrency: 20 });
   */
  map<T, R>(
    items: readonly T[],
    fn: (item: T, index: number) => R | Promise<R>,
    options: MapOptions & { readonly settle: true },
  ): Promise<MapOutcome<Awaited<R>>[]>;
  /**
   *
   * @throws TAPE_TOO_LARGE if there are more items than the store's limits allow.
   */
  map<T, R>(
    items: readonly T[],
    fn: (item: T, index: number) => R | Promise<R>,
    options?: MapOptions,
  ): Promise<Awaited<R>[]>;
  /**
   * A branch with positions of its own, so that replay finds its operations whatever other branches do. For concurrent
   * branches that await something else between operations. Names must be unique among concurrent branches.
   *
   * @throws TAPE_BAD_INPUT if a concurrent branch has the same name.
   * @example
   * await Promise.all(shops.map((shop) => tape.lane(shop.id, async () => { const page = await load(shop); return tape.decide("pick", () => ask(page)); })));
   */
  lane<T>(name: string, branch: (tape: TapeContext<I>) => T | Promise<T>): Promise<T>;
  /**
   * Runs a function whose operations end together. When it returns or throws, its handle is cancelled or its time is
   * over, what is still pending inside is refused: gates and timers are withdrawn, children are asked to stop, and
   * effects that were not sent never will be. An effect that was sent stays sent; the error says which.
   *
   * @throws TAPE_CANCELLED for what is pending inside when it is cancelled.
   * @example
   * await tape.scope(async (scope) => { if (await enough()) scope.cancel("enough"); });
   */
  scope<T>(work: (scope: ScopeHandle) => T | Promise<T>, options?: ScopeOptions): Promise<T>;
  /**
   * A scope with a time limit: when it is over, what is pending inside is refused with TAPE_TIMEOUT.
   *
   * @throws TAPE_TIMEOUT when the time is over.
   * @example
   * const rate = await tape.timeout("5s", () => tape.step("rate", () => fetchRate()));
   */
  timeout<T>(duration: Duration, work: (scope: ScopeHandle) => T | Promise<T>): Promise<T>;
  /**
   * A scope whose failure is compensated: every effect that was confirmed inside, newest first, also those of completed
   * children. Then the error is thrown, and the run continues. Effects outside are left alone.
   *
   * @example
   * await tape.saga(async () => {
   *   await pay({ invoice: "7", amount: 120 });
   *   await tape.step("book", () => book());
   * });
   */
  saga<T>(work: (scope: ScopeHandle) => T | Promise<T>): Promise<T>;
  /**
   * Promise.race whose winner is recorded.
   *
   * @example
   * const first = await tape.race([tape.sleep("1h"), tape.gate(cfo)]);
   */
  race<T extends readonly unknown[]>(branches: Branches<T>): Promise<T[number]>;
  /**
   * Promise.any whose winner is recorded.
   *
   * @example
   * const rate = await tape.any([tape.step("bank", () => fetchRate()), tape.step("other", () => fetchRate())]);
   */
  any<T extends readonly unknown[]>(branches: Branches<T>): Promise<T[number]>;
  /**
   * Records the result of any non-deterministic function.
   *
   * @example
   * const coin = await tape.sample("coin", () => (Math.random() < 0.5 ? "heads" : "tails"));
   */
  sample<T>(name: string, body: () => T | Promise<T>): Promise<T>;
  /**
   * Milliseconds since 1970, recorded: the same on replay.
   *
   * @example
   * const startedAt = tape.now();
   */
  now(): number;
  /**
   * A random UUID, recorded: the same on replay.
   *
   * @example
   * const reference = tape.uuid();
   */
  uuid(): string;
  /**
   * A random number from 0 to 1, recorded: the same on replay.
   *
   * @example
   * const jitterMs = tape.random() * 1_000;
   */
  random(): number;
  readonly values: ValuesContext;
  /**
   * Calls handlers of an object as child runs, and reads its state.
   *
   * @example
   * const total = await tape.object(counter, "visits").add(1);
   */
  object<S, H extends ObjectHandlers<S>>(definition: ObjectDefinition<S, H>, key: string): ObjectInRun<S, H>;
  readonly budget: BudgetContext;
  /**
   * Reports progress (a heartbeat only shows that the process lives). The note travels with the next heartbeat; a body
   * that is repeated after a crash finds it in `last`.
   *
   * @example
   * tape.progress("page 3 of 10");
   */
  progress(note?: string): void;
  /**
   * Writes a log line with the run's id, live and never on replay.
   *
   * @example
   * tape.log("invoice sent", { invoice: "7" });
   */
  log(message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** Aborts when the run is cancelled or its lease is lost. */
  readonly abortSignal: AbortSignal;
  /** The run's fence, for resources that can compare it. */
  readonly fence: Fence;
  /**
   * true in runs that reached this point after the change was deployed; false in older ones.
   *
   * @example
   * if (tape.patched("insured")) await tape.step("insure", () => insure());
   */
  patched(name: string): boolean;
}

/** An async function that a run executes, and executes again against its journal. */
export interface Workflow<I, O> {
  /** The name by which every process knows it. */
  readonly name: string;
  /** The function that its runs execute. */
  readonly run: (tape: TapeContext<I>, input: I) => Promise<O> | O;
  readonly schema: Schema<I> | undefined;
  /** The version that the author states; informational. */
  readonly version: string | undefined;
  readonly retry: RetryPolicy;
  /** Absent: a holder that renews its lease keeps the run. */
  readonly maxStallMs?: number;
  /** Absent: the run may take any time. */
  readonly deadlineMs?: number;
  /** How long an ended run is kept; absent: as the store's policy says. */
  readonly retainMs?: number;
  /** The queue in which its runs wait, unless their start names another. */
  readonly queue: QueueDefinition | undefined;
  /** The key of a run in the workflow's queue. */
  readonly key: ((input: I) => string) | undefined;
  /** Its runs are driven only by the build that drove them first. */
  readonly pinned?: true;
  /** It handles calls of an object, one run each: these do not continue as new. */
  readonly handlesCalls?: true;
}

/** The state of one key, inside a handler. */
export interface ObjectSelf<S> {
  /** The key of the object. */
  readonly key: string;
  /** As the handler found it, or as it was last set. */
  readonly state: S;
  /** Durable when it resolves. TAPE_VERSION_CONFLICT if anything but a handler has changed the state meanwhile. */
  set(state: S): Promise<void>;
}

/** The handlers of an object, by name. At most one of them runs per key. */
export type ObjectHandlers<S> = Readonly<
  Record<string, (tape: TapeContext, self: ObjectSelf<S>, input: never) => unknown>
>;

/** An object, as `object` defines it: a workflow for each handler, and the queue that runs them one by one per key. */
export interface ObjectDefinition<S, H extends ObjectHandlers<S>> {
  readonly name: string;
  /** The state of a key that does not exist yet. */
  readonly initial: () => S;
  /** The handlers by name. */
  readonly handlers: H;
  readonly queue: QueueDefinition;
  /** The workflow of each handler. */
  readonly workflows: ReadonlyMap<string, HandlerWorkflow>;
}

/** The input of a handler's run. */
export interface HandlerInput {
  /** The key of the object. */
  readonly key: string;
  /** What the caller passed to the handler. */
  readonly input?: unknown;
}
/** The workflow that executes one handler of an object. */
export type HandlerWorkflow = Workflow<HandlerInput, unknown>;

/** A function for each handler, without the context and the state. */
export type ObjectCalls<H, Result extends "value" | "handle" = "value", Handle = never> = {
  readonly [K in keyof H]: H[K] extends (tape: TapeContext, self: never, ...rest: infer Rest) => infer Output
    ? (...input: Rest) => Promise<Result extends "value" ? Awaited<Output> : HandleOf<Handle, Awaited<Output>>>
    : never;
};
/** A handle to a run of a handler. */
type HandleOf<Handle, Output> = Omit<Handle, "result"> & { result(): Promise<Output> };
