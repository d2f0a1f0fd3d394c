import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Identity } from "../lease/identity.ts";
import { LeaseKeeper } from "../lease/keeper.ts";
import { endUnbegun } from "../operator/cancel.ts";
import { type ForkRequest, fork, planFork } from "../operator/fork.ts";
import type { ForkPlan } from "../operator/fork-plan.ts";
import { type PreemptRequest, type PreemptTarget, preempt } from "../operator/preempt.ts";
import { redrive } from "../operator/redrive.ts";
import { type ResolveRequest, resolve } from "../operator/resolve.ts";
import type { Runner } from "../sdk/workflow.ts";
import type { AuditInfo, Store } from "../store/contract/store.ts";

export interface ServerOperatorDeps {
  readonly store: Store;
  readonly identity: Identity;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly runner: Runner;
}

/** One tenant's ground for a deed that needs a lease. */
interface TenantDeps extends ServerOperatorDeps {
  readonly tenant: string;
  readonly keeper: LeaseKeeper;
}

/**
 * People's deeds that need a lease: the server acquires it in their name, with their reason, and writes under its token,
 * exactly as an embedded program does. Nobody gets past the fence.
 */
export class Operator {
  readonly #deps: ServerOperatorDeps;
  readonly #keepers = new Map<string, LeaseKeeper>();

  constructor(deps: ServerOperatorDeps) {
    this.#deps = deps;
  }

  redrive(tenant: string, run: string, act: AuditInfo): Promise<void> {
    return redrive(this.#tenantDeps(tenant), run, act);
  }

  resolve(tenant: string, resolving: ResolveRequest): Promise<void> {
    return resolve(this.#tenantDeps(tenant), resolving);
  }

  forkPlan(tenant: string, run: string, at: number | undefined): Promise<ForkPlan> {
    return planFork(this.#tenantDeps(tenant), run, at);
  }

  fork(tenant: string, run: string, request: ForkRequest): Promise<string> {
    return fork(this.#tenantDeps(tenant), run, request);
  }

  /** Fences the holder, says so for the audit, and gives the lease back at once: whoever stands by takes it. */
  takeover(tenant: string, target: PreemptTarget, act: PreemptRequest): Promise<void> {
    return preempt(this.#tenantDeps(tenant), target, act);
  }

  /** A run that was cancelled and never began needs nobody to end it. */
  async endUnbegun(tenant: string, run: string): Promise<void> {
    await endUnbegun(this.#tenantDeps(tenant), run);
  }

  close(): void {
    for (const keeper of this.#keepers.values()) keeper.close();
  }

  /** Tenants come from credentials alone, so there are no more keepers than tenants. */
  #tenantDeps(tenant: string): TenantDeps {
    const deps = this.#deps;
    const keeper = this.#keepers.get(tenant) ?? new LeaseKeeper({ ...deps, tenant });
    this.#keepers.set(tenant, keeper);
    return { ...deps, tenant, keeper };
  }
}
