import type { Duration } from "../base/duration.ts";
import type { EffectCall, RetryPolicy } from "./effect-types.ts";
import type { QueueChoice } from "./queue-choice.ts";
import type { OpenStream } from "./stream-types.ts";

/** The outcome of an effect as a value, for code that prefers a check to a catch. */
export type EffectResult<R> =
  | { readonly status: "confirmed"; readonly value: R }
  | { readonly status: "failed"; readonly reason: string; readonly error: unknown };

/** What a gate shows, which call its approval is bound to, and how long it waits. */
export interface GateOptions {
  /** Shown to the approver. Default: nothing. */
  readonly payload?: unknown;
  /** The approval is valid for this effect with these arguments only. Default: not bound. */
  readonly binds?: EffectCall<unknown>;
  /** How long the gate waits; then its answer is `{ status: "timeout" }`. Default: without end. */
  readonly timeout?: Duration;
}

/** What a decision may record about itself. */
export interface DecisionDetails {
  /** The name of the model that was asked. */
  readonly model?: string;
  /** What it was asked. */
  readonly request?: unknown;
  /** What it answered. */
  readonly response?: unknown;
  /** Why it decided so, as text. */
  readonly rationale?: string;
  /** The name of the rule that decided, where no model did. */
  readonly policy?: string;
  /** What it cost, by unit, such as `{ input: 1200, output: 80 }`. */
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
  /** Records details beside the decision's value, for the journal, the dashboard and the conversation. */
  record(notes: DecisionDetails): void;
  /** Writes to the stream `parts`, which `followRun` shows: the text of a model, its tool calls. */
  emit(part: unknown): Promise<void>;
}

/** How often and when a step or decision is attempted again. */
export interface StepRetryPolicy extends RetryPolicy {
  /** false: this error is final. A {@link DefiniteFailure} always is. Default: every error may be retried. */
  readonly when?: (error: unknown) => boolean;
  /**
   * How long an outage of the upstream may last; "24h" suits a model. Without it, the last attempt's error is the
   * result. With it, the run parks when no attempt is left, and tries again after 30 s, then at doubling intervals of
   * at most 15 min. After this time the run is STUCK, not failed: nothing is compensated, and a redrive tries again.
   * Default: none.
   */
  readonly giveUpAfter?: Duration;
}

/** Options of a step or a decision. Without them it is attempted once, without a time-out. */
export interface StepOptions {
  /** How often and when it is attempted again. Default: one attempt. */
  readonly retry?: StepRetryPolicy;
  /**
   * Of one attempt. When it is over, the attempt has failed with TAPE_TIMEOUT, and a later result is dropped. Default:
   * none.
   */
  readonly timeout?: Duration;
}

/** Options of a child run. */
export interface SpawnOptions extends QueueChoice {
  /** Words by which lists find the run. Default: none. */
  readonly labels?: Readonly<Record<string, string>>;
  /** true: a run of its own, see {@link DetachedOptions}. Default false. */
  readonly detached?: false;
}

/** Options of a run that outlives the one that starts it. */
export interface DetachedOptions extends QueueChoice {
  /** Marks the run as one of its own. */
  readonly detached: true;
  /** If a run with this id, workflow and input exists, it is the one. Default: derived from this run's id. */
  readonly id?: string;
  /** Words by which lists find the run. Default: none. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Its own; that of this run does not apply. */
  readonly budget?: Readonly<Record<string, number>>;
}

/** A run without a parent. It is not waited for: what it leads to comes back as a signal, or is read by its id. */
export interface DetachedRun {
  /** The id of the run. */
  readonly id: string;
}

/** A started child run. */
export interface Child<R> {
  /** The id of the child run. */
  readonly id: string;
  /** Waits for the child's result. Throws TAPE_RUN_FAILED if the child has failed. */
  result(): Promise<R>;
}

/** Options of `tape.map`. */
export interface MapOptions {
  /** How many items at once. Default 10. */
  readonly concurrency?: number;
  /**
   * Every item is processed, and the results are outcomes, as of `Promise.allSettled`. Default false: the first failure
   * is thrown.
   */
  readonly settle?: boolean;
}

/** How one item of `tape.map` with `settle` ended. */
export type MapOutcome<R> =
  | { readonly status: "fulfilled"; readonly value: R }
  | { readonly status: "rejected"; readonly reason: unknown };

/** Values of the tenant, read and written inside a run. */
export interface ValuesContext {
  /** The value of a key with its version; undefined if there is none. */
  get(key: string): Promise<{ readonly version: number; readonly value: unknown } | undefined>;
  /** Like `get`, also for a value that was deleted (its version stays) or never existed (version 0). */
  read(key: string): Promise<{ readonly version: number; readonly value: unknown }>;
  /**
   * Compare-and-set: `version` 0 means that it must not exist. Throws TAPE_VERSION_CONFLICT if the value has another
   * version.
   */
  put(key: string, value: unknown, version: number): Promise<number>;
}

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
