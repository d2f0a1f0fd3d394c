import { Metrics, type Sample } from "../base/metrics.ts";
import type { Term } from "../model/lease.ts";
import type { QueueView } from "../store/contract/store.ts";

/** The wait for the first slot; only granted terms show it. */
type ObserveWait = ReturnType<Metrics["histogram"]>;

interface TenantQueues {
  readonly metrics: Metrics;
  readonly observeWait: ObserveWait;
  /** As of the scrape in progress. */
  queues: readonly QueueView[];
}

/**
 * Metrics of queues, for each tenant alone: a queue has a name that its tenant chose, and no other caller may see it.
 * The store counts, so all replicas report the same numbers; only the waits are those of runs that this server granted.
 */
export class QueueMetrics {
  readonly #tenants = new Map<string, TenantQueues>();

  /** Counts the waits of runs that got their first slot. */
  admitted(tenant: string, terms: readonly Term[]): void {
    for (const { queue, reason, lagMs } of terms) {
      if (queue === undefined || queue === "" || reason !== "start" || lagMs === undefined) continue;
      this.#of(tenant).observeWait(lagMs / 1_000, { queue });
    }
  }

  text(tenant: string, queues: readonly QueueView[]): string {
    const of = this.#of(tenant);
    of.queues = queues;
    return of.metrics.text();
  }

  /** Tenants come from credentials alone, so their number is bounded. */
  #of(tenant: string): TenantQueues {
    const known = this.#tenants.get(tenant);
    if (known !== undefined) return known;
    const metrics = new Metrics();
    const made: TenantQueues = {
      metrics,
      observeWait: metrics.histogram(
        "tape_queue_wait_seconds",
        "Time that runs waited in their queue before their first start, if this server granted it.",
      ),
      queues: [],
    };
    this.#tenants.set(tenant, made);
    for (const [name, type, help, figure] of families) {
      metrics.series(name, help, type, () =>
        made.queues.flatMap((view): Sample[] => {
          const value = figure(view);
          return value === undefined ? [] : [[{ queue: view.name }, value]];
        }),
      );
    }
    return made;
  }
}

type Family = readonly [
  name: string,
  type: "counter" | "gauge",
  help: string,
  figure: (view: QueueView) => number | undefined,
];

const families: readonly Family[] = [
  ["tape_queue_waiting", "gauge", "Runs that wait in the queue, counted up to a bound.", ({ waiting }) => waiting],
  ["tape_queue_running", "gauge", "Slots of the queue that are held.", ({ running }) => running],
  ["tape_queue_limit", "gauge", "Slots of the queue; absent without a limit.", ({ limits }) => limits.concurrency],
  [
    "tape_queue_oldest_wait_seconds",
    "gauge",
    "How long the oldest run has waited; 0 if none waits.",
    ({ oldestWaitMs = 0 }) => oldestWaitMs / 1_000,
  ],
  ["tape_queue_started_total", "counter", "Runs that the queue has started.", ({ started }) => started],
  ["tape_queue_paused", "gauge", "1 while the queue is paused.", ({ paused }) => (paused === undefined ? 0 : 1)],
];
