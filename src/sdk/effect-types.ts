import type { Duration } from "../base/duration.ts";
import type { Fence } from "../model/fence.ts";
import type { Observation } from "./outcomes.ts";
import type { OpenStream } from "./stream-types.ts";

/** The context of an effect's body, `observe` and `compensate`. */
export interface EffectContext {
  readonly runId: string;
  /** Identifies the decision to call, not its arguments: stable across attempts and redrives. Pass it to the upstream. */
  readonly key: string;
  /** The fencing token of the caller's lease. Pass it to the upstream if it can compare tokens. */
  readonly token: bigint;
  /** The fence of the lease under which the attempt is made, for guards in the store's database: `guardPostgres(client, fx)`. */
  readonly fence: Fence;
  /** The number of this attempt, from 1 on. */
  readonly attempt: number;
  /** Aborts when the timeout has passed or the lease is lost. */
  readonly abortSignal: AbortSignal;
  /** The business key of this call, if the effect has one. */
  readonly businessKey: string | undefined;
  /** Writes values for readers outside the run, see {@link StepContext}. Only where the run's driver calls the body: inline. */
  readonly stream: OpenStream;
}

/** How many attempts are made, and with which back-off. */
export interface RetryPolicy {
  /** Attempts in total; 1: no retry. Default: 1 for steps, 3, 10 or 5 for effects by their semantics. */
  readonly attempts?: number;
  /** The pause after the first failure. Default 1 s. */
  readonly base?: Duration;
  /** By how much each pause is longer than the one before it. Default 2. */
  readonly factor?: number;
  /** The longest pause. Default 60 s. */
  readonly cap?: Duration;
}

/** The retry policy of an effect. */
export interface EffectRetryPolicy extends RetryPolicy {
  /**
   * How often a `non_idempotent` effect is sent again after an observation has proved that it did not happen. Default 3
   * for inline effects, 0 for those of the outbox.
   */
  readonly absent?: number;
}

/** Whether an effect may be retried: safely under one key, never, or because it only reads. */
export type Semantics = "idempotent" | "non_idempotent" | "read";
export type Body<A, R> = (args: A, fx: EffectContext) => R | Promise<R>;
export type Compensate<A, R> = (args: A, result: R, fx: EffectContext) => unknown;
export type Observe<A, R> = (args: A, fx: EffectContext) => Observation<R> | Promise<Observation<R>>;

/** Options of every effect, with a body or with a connector. */
interface SharedEffectOptions<A, R> {
  /** `non_idempotent` (default): never retried blindly. `idempotent`: the upstream deduplicates by key. `read`: changes nothing. */
  readonly semantics?: Semantics;
  /** At most one effect per key, across all runs of the tenant. Default: none. */
  readonly businessKey?: (args: A) => string;
  /** Asks the upstream whether the effect happened, after a response was lost. Default: an operator decides. */
  readonly observe?: Observe<A, R>;
  /** Reverses the effect if the run fails or is cancelled later. Default: nothing is reversed. */
  readonly compensate?:
    | Compensate<A, R>
    | {
        readonly run: Compensate<A, R>;
        readonly semantics?: Semantics;
        readonly observe?: Observe<{ args: A; result: R }, unknown>;
      };
  /**
   * A non_idempotent effect is retried only after NotSent, and after a proven absence. Default: 3 attempts if
   * `non_idempotent`, 10 if `idempotent`, 5 if `read`.
   */
  readonly retry?: EffectRetryPolicy;
  /** How long one attempt may take; then its outcome is unknown. Default 30 s. */
  readonly timeout?: Duration;
  /** How long after its send deadline an absent effect may still appear at the upstream. Default 60 s. */
  readonly settleDelay?: Duration;
  /**
   * Errors, besides {@link DefiniteFailure}, that prove that the effect did not happen. Default: no other error does.
   */
  readonly isDefinite?: (error: unknown) => boolean;
  /**
   * Why it is acceptable that a non_idempotent effect can be neither observed nor compensated. Default:
   * TAPE_UNSAFE_EFFECT is thrown instead.
   */
  readonly allowUnsafe?: string;
}

/** Options of an effect with a body. */
export interface EffectOptions<A, R> extends SharedEffectOptions<A, R> {
  /** `inline` (default): the run's driver calls. `outbox`: a reactor calls under the effect's own lease; the run is parked. */
  readonly dispatch?: "inline" | "outbox";
}

/** Options of an effect without a body. Its own `observe` and `compensate` take precedence over the connector's. */
export interface ConnectorEffectOptions<A, R> extends SharedEffectOptions<A, R> {
  /** The name of the connector that makes the call; the runner of any process may have it. */
  readonly connector: string;
  /** The outbox always calls connectors. Default "outbox". */
  readonly dispatch?: "outbox";
}

/** An effect with its arguments, not called yet. A gate can be bound to it. */
export interface EffectCall<R> {
  /** The definition of the effect. */
  readonly effect: EffectDefinition;
  /** The arguments, as the journal stores them. */
  readonly args: unknown;
  /** Fingerprint of effect and arguments, to which an approval is bound. */
  readonly hash: string;
  /** Never set; carries the type of the result. */
  readonly returns?: R;
}

/** An effect as the engine sees it, without the types of arguments and result. */
export interface EffectDefinition {
  /** The name by which every process knows it. */
  readonly name: string;
  /** The function that makes the call; undefined for an effect of a connector. */
  readonly body: Body<unknown, unknown> | undefined;
  readonly connector: string | undefined;
  /** Whether the effect may be retried. */
  readonly semantics: Semantics;
  /** Who calls: the run's driver, or the outbox. */
  readonly dispatch: "inline" | "outbox";
  /** Computes the business key from the arguments. */
  readonly businessKey: ((args: unknown) => string) | undefined;
  /** Asks the upstream whether the effect happened. */
  readonly observe: Observe<unknown, unknown> | undefined;
  readonly compensate: CompensateDefinition | undefined;
  /** Attempts in total. */
  readonly attempts: number;
  /** How often it is sent again after a proven absence. */
  readonly absentRetries: number;
  /** The pauses between attempts, in milliseconds. */
  readonly backoff: { readonly baseMs: number; readonly factor: number; readonly capMs: number };
  /** How long one attempt may take. */
  readonly timeoutMs: number;
  /** How long an absent effect may still appear at the upstream. */
  readonly settleDelayMs: number;
  /** Errors that prove that the effect did not happen. */
  readonly isDefinite: (error: unknown) => boolean;
  /** Why it is acceptable that it can be neither observed nor compensated. */
  readonly allowUnsafe?: string | undefined;
}

/** A compensation as the engine runs it. */
export interface CompensateDefinition<F = EffectContext> {
  /** Reverses the effect. */
  readonly run: (args: unknown, result: unknown, fx: F) => unknown;
  /** Whether the compensation may be retried. */
  readonly semantics: Semantics;
  /** Asks the upstream whether the compensation happened. */
  readonly observe:
    | ((args: { args: unknown; result: unknown }, fx: F) => Observation<unknown> | Promise<Observation<unknown>>)
    | undefined;
}
