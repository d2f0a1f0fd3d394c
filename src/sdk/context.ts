import type { Duration } from "../base/duration.ts";
import type { Fence } from "../model/fence.ts";
import type { EffectCall, RetryPolicy } from "./effect-types.ts";
import type { GateDefinition, ReplyGate } from "./gate.ts";
import type { QueueDefinition } from "./queue.ts";
import type { QueueChoice } from "./queue-choice.ts";
import type { Schema } from "./schema.ts";
import type { ScopeHandle, ScopeOptions } from "./scope.ts";
import type { OpenStream } from "./stream-types.ts";
import type { Callback, CallbackOptions, GateAnswer, GateRequest, RawCallback } from "./talk.ts";
import type { ClientOf, PostgresPool, SqliteConnection } from "./transaction.ts";

export type { GateAnswer } from "./talk.ts";

/** The outcome of an effect as a value, for code that prefers a check to a catch. */
export type EffectResult<R> =
  | { readonly status: "confirmed"; readonly value: R }
  | { readonly status: "failed"; readonly reason: string; readonly error: unknown };

/** What a gate shows, which call its approval is bound to, and how long it waits. */
export interface GateOptions {
  /** Shown to the approver. */
  readonly payload?: unknown;
  /** The approval is valid for this effect with these arguments only. */
  readonly binds?: EffectCall<unknown>;
  readonly timeout?: Duration;
}

/** What a decision may record about itself. */
export interface DecisionDetails {
  readonly model?: string;
  readonly request?: unknown;
  readonly response?: unknown;
  readonly rationale?: string;
  readonly policy?: string;
  readonly usage?: Readonly<Record<string, number>>;
}

/** What the function of `tape.step` receives. */
export interface StepContext {
  /** Aborts when the attempt times out, the run is cancelled or its lease is lost. */
  readonly abortSignal: AbortSignal;
  /** The number of this attempt, from 1 on. Failed attempts count, also those of earlier processes. */
  readonly attempt: number;
  /** The last `tape.progress` note of an interrupted or failed attempt, to resume from. */
  readonly last: string | undefined;
  /**
   * Writes values for readers outside the run while the body runs. The chunks are stored before the body's result. If
   * the body is attempted again, readers drop what this attempt has written. Not in a transaction.
   */
  readonly stream: OpenStream;
}

/** What the function of `tape.decide` receives. */
export interface DecisionContext extends StepContext {
  record(notes: DecisionDetails): void;
  /** Writes to the stream `parts`, which `followRun` shows: the text of a model, its tool calls. */
  emit(part: unknown): Promise<void>;
}

/** How often and when a step or decision is attempted again. */
export interface StepRetryPolicy extends RetryPolicy {
  /** false: this error is final. A {@link DefiniteFailure} always is. */
  readonly when?: (error: unknown) => boolean;
  /**
   * How long an outage of the upstream may last; "24h" suits a model. Without it, the last attempt's error is the
   * result. With it, the run parks when no attempt is left, and tries again after 30 s, then at doubling intervals of at
   * most 15 min. After this time the run is STUCK, not failed: nothing is compensated, and a redrive tries again.
   */
  readonly giveUpAfter?: Duration;
}

/** Options of a step or a decision. Without them it is attempted once, without a time-out. */
export interface StepOptions {
  readonly retry?: StepRetryPolicy;
  /** Of one attempt. When it is over, the attempt has failed with TAPE_TIMEOUT, and a later result is dropped. */
  readonly timeout?: Duration;
}

/** Branches of a race: promises of started operations, or functions, each of which starts in a lane of its own. */
export type Branches<T extends readonly unknown[]> = {
  readonly [K in keyof T]: Promise<T[K]> | ((tape: TapeContext) => Promise<T[K]>);
};

/** Options of a child run. */
export interface SpawnOptions extends QueueChoice {
  readonly labels?: Readonly<Record<string, string>>;
  readonly detached?: false;
}

/** Options of a run that outlives the one that starts it. */
export interface DetachedOptions extends QueueChoice {
  readonly detached: true;
  /** If a run with this id, workflow and input exists, it is the one. Default: derived from this run's id. */
  readonly id?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Its own; that of this run does not apply. */
  readonly budget?: Readonly<Record<string, number>>;
}

/** A run without a parent. It is not waited for: what it leads to comes back as a signal, or is read by its id. */
export interface DetachedRun {
  readonly id: string;
}

/** A started child run. */
export interface Child<R> {
  readonly id: string;
  result(): Promise<R>;
}

/** Options of `tape.map`. */
export interface MapOptions {
  /** How many items at once. Default 10. */
  readonly concurrency?: number;
  /** Every item is processed, and the results are outcomes, as of `Promise.allSettled`. */
  readonly settle?: boolean;
}

/** How one item of `tape.map` with `settle` ended. */
export type MapOutcome<R> =
  | { readonly status: "fulfilled"; readonly value: R }
  | { readonly status: "rejected"; readonly reason: unknown };

/** Values of the tenant, read and written inside a run. */
export interface ValuesContext {
  get(key: string): Promise<{ readonly version: number; readonly value: unknown } | undefined>;
  /** Like `get`, also for a value that was deleted (its version stays) or never existed (version 0). */
  read(key: string): Promise<{ readonly version: number; readonly value: unknown }>;
  /** Compare-and-set: `version` 0 means that it must not exist. */
  put(key: string, value: unknown, version: number): Promise<number>;
}

/** One key of an object, for a run that calls it. */
export type ObjectInRun<S, H extends ObjectHandlers<S>> = ObjectCalls<H> & { state(): Promise<S> };

/** The budget of a run's tree. */
export interface BudgetContext {
  /**
   * Reserves an amount, makes the call, charges its cost and returns the rest. Throws TAPE_BUDGET_EXCEEDED. A unit
   * without a cap is counted.
   */
  spend<T>(
    amounts: Readonly<Record<string, number>>,
    call: () => Promise<{ cost: Readonly<Record<string, number>>; value: T }>,
  ): Promise<T>;
}

/** How long the journal of a run is, since the run last continued as new. */
export interface JournalFigures {
  /** Operations that the code has requested; most of them are one record each. */
  readonly records: number;
  /** Notes of the inbox up to the last signal that the code has received. */
  readonly notes: number;
  /** From 5,000 operations or notes on: time to continue as new. */
  readonly long: boolean;
}

/** The durable operations of a workflow. Each is recorded once, and replay returns the recorded result. */
export interface TapeContext<I = never> {
  readonly runId: string;
  /**
   * Local work that may be repeated: runs at least once.
   *
   * @example
   * const rate = await tape.step("rate", ({ abortSignal }) => fetchRate(abortSignal), { retry: { attempts: 5 }, timeout: "10s" });
   */
  step<T>(name: string, body: (context: StepContext) => T | Promise<T>, options?: StepOptions): Promise<T>;
  /**
   * A step whose rows commit together with its result, exactly once, in the store's own PostgreSQL database. The body
   * gets a client of your pool inside a transaction. It may run again if that is rolled back.
   *
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
  /** The same in the store's own SQLite file. The body is synchronous, because every other writer waits for it. */
  transaction<T, D extends SqliteConnection>(
    name: string,
    database: D,
    body: (database: D, context: StepContext) => T,
    options?: StepOptions,
  ): Promise<T>;
  /** A model call or any other judgement, recorded with its rationale and never repeated once recorded. */
  decide<T>(name: string, body: (decision: DecisionContext) => T | Promise<T>, options?: StepOptions): Promise<T>;
  /** Resolves when confirmed, throws EffectFailed when failed. While the outcome is unknown, the run is parked. */
  effect<R>(call: EffectCall<R>): Promise<R>;
  attempt<R>(call: EffectCall<R>): Promise<EffectResult<R>>;
  gate<T, R>(gate: ReplyGate<T, R>, options?: GateOptions): Promise<GateRequest<T, R>>;
  gate<T>(gate: GateDefinition<T>, options?: GateOptions): Promise<GateAnswer<T>>;
  /**
   * A gate for another system that calls back: it gets an address or a token, which opens this gate, once.
   *
   * @example
   * const paid = await tape.callback<{ receipt: string }>("paid", { timeout: "2d" });
   * await tape.step("invoice", () => sendInvoice({ webhook: paid.url }));
   * const answer = await paid.result();
   */
  callback(name: string, options: CallbackOptions & { readonly raw: true }): Promise<Callback<RawCallback>>;
  callback<T = unknown>(name: string, options?: CallbackOptions): Promise<Callback<T>>;
  /**
   * Shows a value under a name, for readers outside the run: the latest one, also after the end. Recorded with the next
   * write, not awaited.
   */
  publish(name: string, value: unknown): void;
  /**
   * Changes labels of this run, by which lists find it; undefined removes one. Recorded with the next write, not
   * awaited.
   *
   * @example
   * tape.label({ customer: "acme", stage: "paid", draft: undefined });
   */
  label(labels: Readonly<Record<string, string | undefined>>): void;
  /** How long the journal of this run has become: the same on replay. */
  readonly journal: JournalFigures;
  /**
   * Ends this generation of the run and starts its function again with this input, in the same run: an endless loop
   * whose journal stays short. Signals that no gate has taken yet are kept. It waits for effects without a result; with a
   * child that lives it fails as TAPE_OPEN_CHILDREN.
   *
   * @example
   * if (tape.journal.long) return tape.continueAsNew(state);
   */
  continueAsNew(input: I): Promise<never>;
  sleep(duration: Duration): Promise<void>;
  /** Sleeps until a Date or a time in milliseconds since 1970; a past time ends the sleep at once. */
  sleepUntil(moment: Date | number): Promise<void>;
  /**
   * Starts a child run. This run ends only after it, and an ending run cancels it. Detached, it is a run of its own:
   * neither waited for nor cancelled, with a budget of its own, and `startedBy` names this run.
   */
  spawn<I, O>(workflow: Workflow<I, O>, input: I, options: DetachedOptions): Promise<DetachedRun>;
  spawn<I, O>(workflow: Workflow<I, O>, input: I, options?: SpawnOptions): Promise<Child<O>>;
  /** Starts a child run and waits for its result. */
  call<I, O>(workflow: Workflow<I, O>, input: I, options?: SpawnOptions): Promise<O>;
  /**
   * Calls a function for each item, a bounded number at once, and returns the results in the order of the items. The
   * first failure stops further starts, and is thrown when the items under way are through.
   *
   * @example
   * const pages = await tape.map(files, (file) => tape.call(parse, file), { concurrency: 20 });
   */
  map<T, R>(
    items: readonly T[],
    fn: (item: T, index: number) => R | Promise<R>,
    options: MapOptions & { readonly settle: true },
  ): Promise<MapOutcome<Awaited<R>>[]>;
  map<T, R>(
    items: readonly T[],
    fn: (item: T, index: number) => R | Promise<R>,
    options?: MapOptions,
  ): Promise<Awaited<R>[]>;
  /**
   * A branch with positions of its own, so that replay finds its operations whatever other branches do. For concurrent
   * branches that await something else between operations. Names must be unique among concurrent branches.
   *
   * @example
   * await Promise.all(shops.map((shop) => tape.lane(shop.id, async () => { const page = await load(shop); return tape.decide("pick", () => ask(page)); })));
   */
  lane<T>(name: string, branch: (tape: TapeContext<I>) => T | Promise<T>): Promise<T>;
  /**
   * Runs a function whose operations end together. When it returns or throws, its handle is cancelled or its time is
   * over, what is still pending inside is refused: gates and timers are withdrawn, children are asked to stop, and
   * effects that were not sent never will be. An effect that was sent stays sent; the error says which.
   *
   * @example
   * await tape.scope(async (scope) => { if (await enough()) scope.cancel("enough"); });
   */
  scope<T>(work: (scope: ScopeHandle) => T | Promise<T>, options?: ScopeOptions): Promise<T>;
  /** A scope with a time limit: when it is over, what is pending inside is refused with TAPE_TIMEOUT. */
  timeout<T>(duration: Duration, work: (scope: ScopeHandle) => T | Promise<T>): Promise<T>;
  /**
   * A scope whose failure is compensated: every effect that was confirmed inside, newest first, also those of completed
   * children. Then the error is thrown, and the run continues. Effects outside are left alone.
   */
  saga<T>(work: (scope: ScopeHandle) => T | Promise<T>): Promise<T>;
  /** Promise.race whose winner is recorded. */
  race<T extends readonly unknown[]>(branches: Branches<T>): Promise<T[number]>;
  /** Promise.any whose winner is recorded. */
  any<T extends readonly unknown[]>(branches: Branches<T>): Promise<T[number]>;
  /** Records the result of any non-deterministic function. */
  sample<T>(name: string, body: () => T | Promise<T>): Promise<T>;
  /** Milliseconds since 1970, recorded: the same on replay. */
  now(): number;
  uuid(): string;
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
   */
  progress(note?: string): void;
  log(message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** Aborts when the run is cancelled or its lease is lost. */
  readonly abortSignal: AbortSignal;
  /** The run's fence, for resources that can compare it. */
  readonly fence: Fence;
  /** true in runs that reached this point after the change was deployed; false in older ones. */
  patched(name: string): boolean;
}

/** An async function that a run executes, and executes again against its journal. */
export interface Workflow<I, O> {
  readonly name: string;
  readonly run: (tape: TapeContext<I>, input: I) => Promise<O> | O;
  readonly schema: Schema<I> | undefined;
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
  readonly key: ((input: I) => string) | undefined;
  /** Its runs are driven only by the build that drove them first. */
  readonly pinned?: true;
  /** It handles calls of an object, one run each: these do not continue as new. */
  readonly handlesCalls?: true;
}

/** The state of one key, inside a handler. */
export interface ObjectSelf<S> {
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
  readonly initial: () => S;
  readonly handlers: H;
  readonly queue: QueueDefinition;
  readonly workflows: ReadonlyMap<string, HandlerWorkflow>;
}

/** The input of a handler's run. */
export interface HandlerInput {
  readonly key: string;
  readonly input?: unknown;
}
export type HandlerWorkflow = Workflow<HandlerInput, unknown>;

/** A function for each handler, without the context and the state. */
export type ObjectCalls<H, Result extends "value" | "handle" = "value", Handle = never> = {
  readonly [K in keyof H]: H[K] extends (tape: TapeContext, self: never, ...rest: infer Rest) => infer Output
    ? (...input: Rest) => Promise<Result extends "value" ? Awaited<Output> : HandleOf<Handle, Awaited<Output>>>
    : never;
};
/** A handle to a run of a handler. */
type HandleOf<Handle, Output> = Omit<Handle, "result"> & { result(): Promise<Output> };
