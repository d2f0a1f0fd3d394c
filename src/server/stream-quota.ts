import type { Clock } from "../base/clock.ts";
import { quotaExceeded } from "../model/quota.ts";
import type { Store } from "../store/contract/store.ts";
import type { Admission } from "./admission.ts";

/** A changed limit applies on every replica after this time. */
const cacheMs = 5_000;
/** Tenants in the cache. */
const maxTenants = 10_000;

/** Limits the open streams of a tenant at this server. The quota is read when a stream starts, and cached. */
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

  /** The new stream already has its place and is counted. */
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
    limit.catch(() => this.#known.delete(tenant)); // this caller gets the error; the next one reads again
    if (this.#known.size >= maxTenants) this.#known.clear();
    this.#known.set(tenant, { limit, until: now + cacheMs });
    return limit;
  }
}
