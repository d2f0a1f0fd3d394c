import type { Duration } from "../base/duration.ts";
import type { Fence } from "../model/fence.ts";
import type { Observation } from "./outcomes.ts";

/** What a body, an observer and an inverse are told about the act. */
export interface EffectContext {
  readonly runId: string;
  /** Names the decision to act, not its arguments: stable over every attempt and re-drive. Hand it to the other side. */
  readonly key: string;
  /** The fencing token of whoever acts. Hand it to the other side too, if it can compare. */
  readonly token: bigint;
  /** The fence of the lease under which it acts, for guards in the database of the store: `guardPostgres(client, fx)`. */
  readonly fence: Fence;
  readonly attempt: number;
  /** Aborts when the time-out is over or the lease is lost. */
  readonly abortSignal: AbortSignal;
  readonly businessKey: string | undefined;
}

/** How often and after which pauses an attempt is repeated. */
export interface RetryPolicy {
  /** How often in all; 1: never again. */
  readonly attempts?: number;
  readonly base?: Duration;
  readonly factor?: number;
  readonly cap?: Duration;
}

/** Whether an effect may be sent again: safely under one key, never, or because it only reads. */
export type Semantics = "idempotent" | "non_idempotent" | "read";
export type Body<A, R> = (args: A, fx: EffectContext) => R | Promise<R>;
export type Compensate<A, R> = (args: A, result: R, fx: EffectContext) => unknown;
export type Observe<A, R> = (args: A, fx: EffectContext) => Observation<R> | Promise<Observation<R>>;

/** What every effect may say, whoever carries it out. */
interface SharedEffectOptions<A, R> {
  /** `non_idempotent` (default): never sent again blindly. `idempotent`: the other side dedupes by key. `read`: no effect. */
  readonly semantics?: Semantics;
  /** One act for one key, over all runs of the tenant. */
  readonly businessKey?: (args: A) => string;
  readonly observe?: Observe<A, R>;
  readonly compensate?:
    | Compensate<A, R>
    | {
        readonly run: Compensate<A, R>;
        readonly semantics?: Semantics;
        readonly observe?: Observe<{ args: A; result: R }, unknown>;
      };
  /** On a non_idempotent effect only after NotSent. */
  readonly retry?: RetryPolicy;
  readonly timeout?: Duration;
  /** How long after its send deadline an act that is not found may still turn up. Default 60 s. */
  readonly settleDelay?: Duration;
  /** Errors that say for sure that it did not happen, besides {@link Definite}. */
  readonly isDefinite?: (error: unknown) => boolean;
  /** A non_idempotent effect that nobody can observe or undo: say why that is acceptable. */
  readonly allowUnsafe?: string;
}

/** Options of an effect with a body. */
export interface EffectOptions<A, R> extends SharedEffectOptions<A, R> {
  /** `inline` (default): the driver calls. `outbox`: a reactor does, under a lease of its own; the run parks meanwhile. */
  readonly dispatch?: "inline" | "outbox";
}

/** For an effect without a body. Its own `observe` and `compensate` go before those of the connector. */
export interface ConnectorEffectOptions<A, R> extends SharedEffectOptions<A, R> {
  /** Who carries it out, by name: the runner of any process may have it. */
  readonly connector: string;
  /** A connector is always called by the outbox. */
  readonly dispatch?: "outbox";
}

/** An act that has been decided but not done: an effect and its arguments. A gate can be bound to it. */
export interface EffectCall<R> {
  readonly effect: EffectDefinition;
  readonly args: unknown;
  /** Fingerprint of effect and arguments: what an approval is bound to. */
  readonly hash: string;
  /** Never set: carries the type of the result. */
  readonly returns?: R;
}

/** What the engine needs of an effect, with the types of arguments and result gone. */
export interface EffectDefinition {
  readonly name: string;
  readonly body: Body<unknown, unknown> | undefined;
  readonly connector: string | undefined;
  readonly semantics: Semantics;
  readonly dispatch: "inline" | "outbox";
  readonly businessKey: ((args: unknown) => string) | undefined;
  readonly observe: Observe<unknown, unknown> | undefined;
  readonly compensate: CompensateDefinition | undefined;
  readonly attempts: number;
  readonly backoff: { readonly baseMs: number; readonly factor: number; readonly capMs: number };
  readonly timeoutMs: number;
  readonly settleDelayMs: number;
  readonly isDefinite: (error: unknown) => boolean;
  /** Why it is acceptable that nobody can observe or undo it. */
  readonly allowUnsafe?: string | undefined;
}

/** A compensation as the engine runs it. */
export interface CompensateDefinition<F = EffectContext> {
  readonly run: (args: unknown, result: unknown, fx: F) => unknown;
  readonly semantics: Semantics;
  readonly observe:
    | ((args: { args: unknown; result: unknown }, fx: F) => Observation<unknown> | Promise<Observation<unknown>>)
    | undefined;
}
