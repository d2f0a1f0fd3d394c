import type { Clock } from "../base/clock.ts";
import type { Metrics, Sample } from "../base/metrics.ts";
import type { Census, ReadOps, SinkRow } from "./contract/store.ts";

/** Prometheus scrapes every 15 to 60 s; the figures of one census serve all scrapes of this time. */
const everyMs = 15_000;

const reactors = ["recovery", "reconciler", "outbox", "timers", "compensation"];
const inDoubt = (["effect", "compensation"] as const).flatMap((role) =>
  (["UNKNOWN", "STUCK"] as const).map((status) => ({ role, status })),
);
const seconds = (ms: number): number => ms / 1_000;

/** A sink is configuration: more are hardly read by anyone. */
const maxSinks = 100;

const sinkFigures: readonly (readonly [name: string, help: string, figure: (row: SinkRow) => number])[] = [
  [
    "tape_sink_lag_seconds",
    "How old the first record is that a sink has not passed; 0 if it has passed all.",
    ({ lagMs }) => seconds(lagMs),
  ],
  ["tape_sink_paused", "1 while a sink is paused.", ({ state }) => (state === "paused" ? 1 : 0)],
  ["tape_sink_dead_letters_open", "Open dead letters by sink, counted up to 10000.", ({ openLetters }) => openLetters],
  [
    "tape_retention_held",
    "Runs that ended over an hour ago and that pruning keeps for a sink, counted up to 10000.",
    ({ keptRuns }) => keptRuns,
  ],
];

export interface CensusSource {
  readonly read: Pick<ReadOps, "census" | "sinks" | "retention">;
  readonly tenant: string;
  readonly clock: Clock;
}

/**
 * Figures of the store for operators, read on a scrape and at most every 15 s. Every replica reports the same ones:
 * take their maximum, not their sum. Figures that could not be read are absent, so that no old one looks current.
 */
export class CensusMetrics {
  readonly #source: CensusSource;
  readonly #failed: () => void;
  #census: Census | undefined;
  #sinks: readonly SinkRow[] = [];
  #retentionLagMs: number | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #pending: Promise<void> | undefined;

  constructor(metrics: Metrics, source: CensusSource) {
    this.#source = source;
    this.#failed = metrics.counter("tape_census_failures_total", "Queries for the figures of the store that failed.");
    const add = (name: string, help: string, samples: (census: Census) => readonly Sample[]): void =>
      metrics.series(name, help, "gauge", () => (this.#census === undefined ? [] : samples(this.#census)));
    const ofReactors = (figure: (of: Census["reactors"][number] | undefined) => number) => (census: Census) =>
      reactors.map((name): Sample => [{ reactor: name }, figure(census.reactors.find((one) => one.reactor === name))]);
    add(
      "tape_reactor_due",
      "Items that a reactor could claim now, counted up to 10000.",
      ofReactors((of) => of?.due ?? 0),
    );
    add(
      "tape_reactor_lag_seconds",
      "How long the oldest due item of a reactor has been due.",
      ofReactors((of) => seconds(of?.lagMs ?? 0)),
    );
    add("tape_runs", "Open runs by status, without WAITING, counted up to 10000.", ({ runs }) =>
      runs.map(({ status, count }): Sample => [{ status }, count]),
    );
    const ofInDoubt =
      (figure: (of: Census["inDoubt"][number] | undefined) => number) =>
      (census: Census): Sample[] =>
        inDoubt.map((kind) => [
          kind,
          figure(census.inDoubt.find(({ role, status }) => role === kind.role && status === kind.status)),
        ]);
    add(
      "tape_effects_in_doubt",
      "Effects and obligations that are UNKNOWN or STUCK, counted up to 10000.",
      ofInDoubt((of) => of?.count ?? 0),
    );
    add(
      "tape_in_doubt_age_seconds",
      "How long the oldest of them has been in its status.",
      ofInDoubt((of) => seconds(of?.ageMs ?? 0)),
    );
    add("tape_lease_held", "Held leases by kind, counted up to 10000.", ({ held }) =>
      (["run", "item", "name"] as const).map(
        (kind): Sample => [{ kind }, held.find((one) => one.kind === kind)?.count ?? 0],
      ),
    );
    add(
      "tape_feed_blocked_seconds",
      "How long the transaction has been open that holds the feed back; 0 if none does.",
      ({ feedBlockedMs }) => [[{}, seconds(feedBlockedMs)]],
    );
    metrics.series(
      "tape_retention_lag_seconds",
      "How long the oldest tree of ended runs has been due for the archive; 0 if none is.",
      "gauge",
      () => (this.#retentionLagMs === undefined ? [] : [[{}, seconds(this.#retentionLagMs)]]),
    );
    this.#addSinks(metrics);
  }

  #addSinks(metrics: Metrics): void {
    for (const [name, help, figure] of sinkFigures) {
      metrics.series(name, help, "gauge", () => this.#sinks.map((row): Sample => [{ sink: row.sink }, figure(row)]));
    }
  }

  /** Reads the figures again if they are 15 s old. Concurrent scrapes share one query. */
  refresh(): Promise<void> {
    if (this.#pending !== undefined) return this.#pending;
    if (this.#source.clock.mono() - this.#readAt < everyMs) return Promise.resolve();
    this.#pending = this.#read().finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  async #read(): Promise<void> {
    const { read, tenant, clock } = this.#source;
    this.#readAt = clock.mono();
    try {
      const sinks = read.sinks(tenant, { limit: maxSinks });
      const [census, rows, { lagMs }] = await Promise.all([read.census(tenant), sinks, read.retention(tenant)]);
      [this.#census, this.#sinks, this.#retentionLagMs] = [census, rows, lagMs];
    } catch {
      this.#retentionLagMs = undefined;
      this.#census = undefined;
      this.#sinks = []; // the metric counts it; the reactors log why the store does not respond
      this.#failed();
    }
  }
}
