import { defined } from "../base/defined.ts";
import { isRemote, type RemoteStore } from "../client/remote.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import { type Cancellation, cancelRun } from "../operator/cancel.ts";
import { type ForkRequest, fork, planFork } from "../operator/fork.ts";
import type { ForkPlan } from "../operator/fork-plan.ts";
import { type PreemptRequest, type PreemptTarget, preempt } from "../operator/preempt.ts";
import { redrive } from "../operator/redrive.ts";
import { type ResolveRequest, resolve } from "../operator/resolve.ts";
import type { AuditInfo } from "../store/contract/store.ts";

/** What a person does to work that another owner may hold: under its lease, taken in the person's name. */
export interface Operator {
  resolve(resolving: ResolveRequest): Promise<void>;
  redrive(run: string, person: AuditInfo): Promise<void>;
  /** Asks the run to stop; one that never began ends at once. */
  cancel(run: string, asked: Cancellation): Promise<void>;
  /** Fences the holder and sets the lease free. `onlyStale`: only if its time has run out. */
  preempt(target: PreemptTarget, act: PreemptRequest): Promise<void>;
  forkPlan(run: string, at: number | undefined): Promise<ForkPlan>;
  /** The id of the new run. */
  fork(run: string, request: ForkRequest): Promise<string>;
}

/** Embedded it acts itself; connected the server does, so that an operator's token suffices and the server says who it was. */
export function createOperator(deps: ReactorDeps): Operator {
  const here: Operator = {
    resolve: (resolving) => resolve(deps, resolving),
    redrive: (run, person) => redrive(deps, run, person),
    cancel: async (run, asked) => void (await cancelRun(deps, run, asked)),
    preempt: (target, act) => preempt(deps, target, act),
    forkPlan: (run, at) => planFork(deps, run, at),
    fork: (run, request) => fork(deps, run, request),
  };
  return isRemote(deps.store) ? remoteOperator(deps.store, deps.tenant) : here;
}

function remoteOperator({ remote, intake }: RemoteStore, tenant: string): Operator {
  return {
    async cancel(run, asked) {
      await intake.cancel(tenant, run, asked); // the server ends it where it never began
    },
    async resolve(resolving) {
      const { run: id, pos, sub = 0, resolution, by, reason } = resolving;
      const body = { resolution, by, reason };
      await remote.call("effects.resolve", { params: { id, pos, sub }, body });
    },
    async redrive(id, { by, reason }) {
      await remote.call("runs.redrive", { params: { id }, body: { by, reason } });
    },
    async preempt(target, { by, reason, onlyStale }) {
      const body = { by, reason, ...defined({ onlyStale }) };
      if ("name" in target) await remote.call("leases.takeover", { params: { name: target.name }, body });
      else await remote.call("runs.takeover", { params: { id: target.run }, body });
    },
    async forkPlan(id, at) {
      return remote.call("runs.forkPlan", { params: { id }, query: defined({ at }) });
    },
    async fork(id, { again, keepCompensated, ...request }) {
      const body = {
        ...request,
        ...(again !== undefined && { again: [...again] }),
        ...(keepCompensated !== undefined && { keepCompensated: [...keepCompensated] }),
      };
      return (await remote.call("runs.fork", { params: { id }, body })).id;
    },
  };
}
