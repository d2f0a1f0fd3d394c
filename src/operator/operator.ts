import type { ReactorDeps } from "../engine/item/deps.ts";
import type { AuditInfo, OperatorReason } from "../store/contract/store.ts";
import { type MovePage, type MoveRequest, moveRuns } from "./builds.ts";
import { cancelRun } from "./cancel.ts";
import { type EraseRequest, type ErasureResult, eraseRun } from "./erase.ts";
import { type ForkRequest, fork, planFork } from "./fork.ts";
import type { ForkPlan } from "./fork-plan.ts";
import { type PreemptRequest, type PreemptTarget, preempt } from "./preempt.ts";
import { type RedriveRequest, redrive } from "./redrive.ts";
import { type ResolveRequest, resolve } from "./resolve.ts";
import { changeSink, type SinkChange } from "./sinks.ts";

export type { ForkRequest } from "./fork.ts";
export type { ForkPlan } from "./fork-plan.ts";
export type { RedriveRequest } from "./redrive.ts";
export type { ResolveRequest } from "./resolve.ts";

/** Operator actions on work that another owner may hold: under its lease, acquired in the operator's name. */
export interface Operator {
  resolve(request: ResolveRequest): Promise<void>;
  redrive(run: string, request: RedriveRequest): Promise<void>;
  /** Requests that the run stops; one that never started ends at once. */
  cancel(run: string, reason: OperatorReason): Promise<void>;
  /** Fences the holder and frees the lease. `onlyStale`: only if it has expired. */
  preempt(target: PreemptTarget, request: PreemptRequest): Promise<void>;
  /** Pauses, resumes, rewinds or forgets a sink, under its lease. */
  changeSink(sink: string, change: SinkChange, audit: AuditInfo): Promise<void>;
  /** Moves live runs to another build, whose processes replay them first. */
  moveRuns(request: MoveRequest): Promise<MovePage>;
  forkPlan(run: string, at: number | undefined): Promise<ForkPlan>;
  /** The id of the new run. */
  fork(run: string, request: ForkRequest): Promise<string>;
  /** Erases the payloads of a run that has ended. */
  erase(run: string, request: EraseRequest): Promise<ErasureResult>;
}

/** Whose runs are erased, and in whose name unless the request has one. */
export const erasing = ({ store, tenant, keeper }: Pick<ReactorDeps, "store" | "tenant" | "keeper">) => ({
  store,
  tenant,
  label: keeper.identity.label,
});

/** Performs the actions in this process, through its store. */
export function localOperator(deps: ReactorDeps): Operator {
  return {
    resolve: (request) => resolve(deps, request),
    redrive: (run, request) => redrive(deps, run, request),
    cancel: async (run, reason) => void (await cancelRun(deps, run, reason)),
    preempt: (target, request) => preempt(deps, target, request),
    changeSink: (sink, change, audit) => changeSink(deps, sink, change, audit),
    moveRuns: (request) => moveRuns(deps, request),
    forkPlan: (run, at) => planFork(deps, run, at),
    fork: (run, request) => fork(deps, run, request),
    erase: (run, request) => eraseRun(erasing(deps), run, request),
  };
}
