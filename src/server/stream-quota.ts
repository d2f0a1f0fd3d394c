import type { Clock } from "../base/clock.ts";
import { quotaExceeded } from "../model/quota.ts";
import type { Store } from "../store/contract/store.ts";
import type { Admission } from "./admission.ts";

/** A limit that was changed holds on every replica after so long. */
const rememberedMs = 5_000;
/** Tenants remembered: those that came last. */
const maxTenants = 10_000;

/** How many streams a tenant may have open at this server. Asked for when a stream begins, and remembered for a while. */
export class StreamQuota {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #admission: Pick<Admission, "count">;
  readonly #known = new Map<string, { readonly limit: Promise<number | null>; readonly until: number }>();

  constructor(store: Store, clock: Clock, admission: Pick<Admission, "count">) {
    this.#store = store;
    this.#clock = clock;
    this.#admission = admission;
  }

  /** The stream has its place already, and is counted. */
  async check(tenant: string): Promise<void> {
    const limit = await this.#limitOf(tenant);
    const used = this.#admission.count("streams", tenant);
    if (limit !== null && used > limit) throw quotaExceeded("streams", used - 1, limit);
  }

  #limitOf(tenant: string): Promise<number | null> {
    const now = this.#clock.mono();
    const known = this.#known.get(tenant);
    if (known !== undefined && known.until > now) return known.limit;
    const limit = this.#store.read.quota(tenant).then(({ limits }) => limits.streams);
    limit.catch(() => this.#known.delete(tenant)); // whoever asked is told; the next asks again
    if (this.#known.size >= maxTenants) this.#known.clear();
    this.#known.set(tenant, { limit, until: now + rememberedMs });
    return limit;
  }
}
