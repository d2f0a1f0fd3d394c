import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import type { Identity } from "../lease/identity.ts";
import { LeaseKeeper } from "../lease/keeper.ts";
import { endUnstarted } from "../operator/cancel.ts";
import { localOperator, type Operator } from "../operator/operator.ts";
import type { Runner } from "../sdk/workflow.ts";
import type { Store } from "../store/contract/store.ts";

export interface OperatorsOptions {
  readonly store: Store;
  readonly identity: Identity;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly runner: Runner;
}

interface TenantOperator {
  readonly deps: ReactorDeps;
  readonly operator: Operator;
}

/**
 * Operator actions of a server's callers. The server acquires the lease in their name, with their reason, and writes
 * under its token, exactly as an embedded program does: the fence holds for every write.
 */
export class Operators {
  readonly #options: OperatorsOptions;
  readonly #tenants = new Map<string, TenantOperator>();

  constructor(options: OperatorsOptions) {
    this.#options = options;
  }

  of(tenant: string): Operator {
    return this.#of(tenant).operator;
  }

  /** A run that was cancelled and never started needs no worker to end it. */
  async endUnstarted(tenant: string, run: string): Promise<void> {
    await endUnstarted(this.#of(tenant).deps, run);
  }

  close(): void {
    for (const { deps } of this.#tenants.values()) deps.keeper.close();
  }

  /** Tenants come from credentials alone, so the number of keepers is bounded. */
  #of(tenant: string): TenantOperator {
    const known = this.#tenants.get(tenant);
    if (known !== undefined) return known;
    const { identity: _, ...shared } = this.#options;
    const deps = { ...shared, tenant, keeper: new LeaseKeeper({ ...this.#options, tenant }) };
    const made = { deps, operator: localOperator(deps) };
    this.#tenants.set(tenant, made);
    return made;
  }
}
