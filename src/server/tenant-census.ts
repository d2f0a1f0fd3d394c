import type { Clock } from "../base/clock.ts";
import { Metrics } from "../base/metrics.ts";
import { CensusMetrics } from "../store/census-metrics.ts";
import type { Store } from "../store/contract/store.ts";

/** The figures of each tenant's work, for callers that may read it. */
export class TenantCensus {
  readonly #deps: { readonly store: Pick<Store, "read">; readonly clock: Clock };
  readonly #tenants = new Map<string, { readonly metrics: Metrics; readonly census: CensusMetrics }>();

  constructor(deps: { readonly store: Pick<Store, "read">; readonly clock: Clock }) {
    this.#deps = deps;
  }

  async text(tenant: string): Promise<string> {
    const { metrics, census } = this.#of(tenant);
    await census.refresh();
    return metrics.text();
  }

  /** Tenants come from credentials alone, so their number is bounded. */
  #of(tenant: string): { readonly metrics: Metrics; readonly census: CensusMetrics } {
    const known = this.#tenants.get(tenant);
    if (known !== undefined) return known;
    const { store, clock } = this.#deps;
    const metrics = new Metrics();
    const made = { metrics, census: new CensusMetrics(metrics, { read: store.read, tenant, clock }) };
    this.#tenants.set(tenant, made);
    return made;
  }
}
