import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import type { ResponseOf } from "../protocol/contract.ts";
import type { ReadOps, RunRate } from "../store/contract/store.ts";

const minuteMs = 60_000;
/** One day of samples, one per minute. */
const maxSamples = 1_440;
/** A transaction with an earlier timestamp may still be uncommitted. Counts older than this do not change. */
const settledMs = minuteMs;

interface Sample {
  readonly at: number;
  readonly lags: ReadonlyMap<string, number>;
}

interface WatchedTenant {
  readonly samples: Sample[];
  /** Final counts, by time bucket. */
  readonly counted: Map<string, RunRate>;
}

/**
 * The history that the overview shows. The numbers of started and ended runs come from the store, so that all replicas
 * agree and a restart loses nothing. The lag of each reactor is not stored: this server samples it once a minute, for
 * each tenant whose overview has been requested, and keeps one day.
 */
export class LagHistory {
  readonly #read: ReadOps;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #watched = new Map<string, WatchedTenant>();
  #cancel: (() => void) | undefined;

  constructor(deps: { readonly read: ReadOps; readonly clock: Clock; readonly log: Log }) {
    this.#read = deps.read;
    this.#clock = deps.clock;
    this.#log = deps.log;
  }

  /** Tenants come from credentials alone, so their number is bounded. */
  async watch(tenant: string): Promise<WatchedTenant> {
    const before = this.#watched.get(tenant);
    if (before !== undefined) return before;
    const watched: WatchedTenant = { samples: [], counted: new Map() };
    this.#watched.set(tenant, watched);
    this.#cancel ??= this.#clock.after(minuteMs, () => void this.#round());
    await this.#sample(tenant, watched);
    return watched;
  }

  async of(tenant: string, minutes: number, buckets: number): Promise<ResponseOf<"overview.history">> {
    const watched = await this.watch(tenant);
    const now = await this.#read.now();
    const bucketMs = Math.max(1_000, Math.round((minutes * minuteMs) / buckets));
    const last = Math.floor(now / bucketMs) * bucketMs;
    const since = last - (buckets - 1) * bucketMs;
    const runs = await this.#runs(tenant, watched, { since, bucketMs, buckets, now });
    const names = [...new Set(watched.samples.flatMap(({ lags }) => [...lags.keys()]))].sort();
    const reactors = names.map((reactor) => ({
      reactor,
      samples: watched.samples.flatMap(({ at, lags }) =>
        at < since || !lags.has(reactor) ? [] : [{ at, lagMs: lags.get(reactor)! }],
      ),
    }));
    return { now, bucketMs, runs, reactors };
  }

  close(): void {
    this.#cancel?.();
    this.#watched.clear();
  }

  /** Counts only buckets that may have changed. */
  async #runs(
    tenant: string,
    { counted }: WatchedTenant,
    { since, bucketMs, buckets, now }: { since: number; bucketMs: number; buckets: number; now: number },
  ): Promise<RunRate[]> {
    const keyOf = (at: number): string => `${bucketMs} ${at}`;
    const starts = Array.from({ length: buckets }, (_, k) => since + k * bucketMs);
    const from = starts.findIndex((at) => !counted.has(keyOf(at)));
    const fresh = from < 0 ? [] : await this.#read.rate(tenant, starts[from]!, bucketMs, buckets - from);
    const rates = [...starts.slice(0, from < 0 ? buckets : from).map((at) => counted.get(keyOf(at))!), ...fresh];
    for (const key of counted.keys()) if (Number(key.split(" ")[1]) < now - maxSamples * minuteMs) counted.delete(key);
    for (const rate of fresh) if (rate.at + bucketMs < now - settledMs) counted.set(keyOf(rate.at), rate);
    while (counted.size > maxSamples) counted.delete(counted.keys().next().value!);
    return rates;
  }

  async #round(): Promise<void> {
    for (const [tenant, watched] of this.#watched) {
      await this.#sample(tenant, watched).catch((error: unknown) =>
        this.#log("warn", "server.sample_failed", { tenant, ...errorFields(error) }),
      );
    }
    if (this.#watched.size > 0) this.#cancel = this.#clock.after(minuteMs, () => void this.#round());
  }

  async #sample(tenant: string, { samples }: WatchedTenant): Promise<void> {
    const [at, agenda] = await Promise.all([this.#read.now(), this.#read.agenda(tenant)]);
    const lags = new Map<string, number>(reactors.map((reactor) => [reactor, 0]));
    for (const { reactor, lateMs } of agenda) if (reactor !== undefined) lags.set(reactor, lateMs);
    samples.push({ at, lags });
    if (samples.length > maxSamples) samples.shift();
  }
}

/** The agenda does not list reactors without work; their lag is 0. */
const reactors = ["recovery", "reconciler", "outbox", "timers", "compensation"] as const;
