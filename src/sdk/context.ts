import type { Duration } from "../base/duration.ts";
import type { Fence } from "../model/fence.ts";
import type { EffectCall, RetryPolicy } from "./effect-types.ts";
import type { GateDefinition, ReplyGate } from "./gate.ts";
import type { QueueDefinition } from "./queue.ts";
import type { QueueChoice } from "./queue-choice.ts";
import type { Schema } from "./schema.ts";
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
}

/** A started child run. */
export interface Child<R> {
  readonly id: string;
  result(): Promise<R>;
}

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

/** The durable operations of a workflow. Each is recorded once, and replay returns the recorded result. */
export interface TapeContext {
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
  sleep(duration: Duration): Promise<void>;
  /** Sleeps until a Date or a time in milliseconds since 1970; a past time ends the sleep at once. */
  sleepUntil(moment: Date | number): Promise<void>;
  spawn<I, O>(workflow: Workflow<I, O>, input: I, options?: SpawnOptions): Promise<Child<O>>;
  /** Starts a child run and waits for its result. */
  call<I, O>(workflow: Workflow<I, O>, input: I, options?: SpawnOptions): Promise<O>;
  /**
   * A branch with positions of its own, so that replay finds its operations whatever other branches do. For concurrent
   * branches that await something else between operations. Names must be unique among concurrent branches.
   *
   * @example
   * await Promise.all(shops.map((shop) => tape.lane(shop.id, async () => { const page = await load(shop); return tape.decide("pick", () => ask(page)); })));
   */
  lane<T>(name: string, branch: (tape: TapeContext) => T | Promise<T>): Promise<T>;
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
  readonly run: (tape: TapeContext, input: I) => Promise<O> | O;
  readonly schema: Schema<I> | undefined;
  readonly version: string | undefined;
  readonly retry: RetryPolicy;
  /** Absent: a holder that renews its lease keeps the run. */
  readonly maxStallMs?: number;
  /** Absent: the run may take any time. */
  readonly deadlineMs?: number;
  /** The queue in which its runs wait, unless their start names another. */
  readonly queue: QueueDefinition | undefined;
  readonly key: ((input: I) => string) | undefined;
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
