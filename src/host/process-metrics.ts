import type { AlarmCounts } from "../alarm/counted-alarms.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { Metrics, type Sample } from "../base/metrics.ts";
import type { ModelFigures } from "../engine/core/handle.ts";
import type { RunDriverOptions } from "../engine/run-driver.ts";
import type { FanoutView } from "../events/fanout.ts";
import type { Identity } from "../lease/identity.ts";
import type { LeaseCount, LeaseCounts } from "../lease/lease-counts.ts";
import type { ReactorStats } from "../reactor/runner.ts";
import type { RetentionCounts } from "../retention/pass.ts";
import { CensusMetrics } from "../store/census-metrics.ts";
import type { Store } from "../store/contract/store.ts";
import { countedModels } from "./model-metrics.ts";
import { type LoopPulse, ProcessHealth } from "./process-health.ts";
import { summed } from "./process-reporter.ts";
import type { HeldShards } from "./singleton/singletons.ts";
import { addSinkMetrics } from "./sink-metrics.ts";
import type { MetricsExport } from "./telemetry-metrics.ts";

/** Where the figures of a process are published. */
export interface MetricsOptions {
  /** PORT or HOST:PORT of a port for probes and scrapes. Without a host only this machine reaches it. */
  readonly listen?: string;
  /** Hands the figures to another system, such as {@link openTelemetryMetrics}. */
  readonly export?: MetricsExport;
}

/** A part of the process that works: a worker, or reactors that were started on their own. */
export interface WorkSource {
  readonly stats: Readonly<Record<string, ReactorStats>>;
  readonly driving: number;
  readonly pulse: LoopPulse | undefined;
}

export interface ProcessMetricsDeps {
  readonly store: Store;
  readonly tenant: string;
  readonly keeper: { readonly identity: Identity; readonly counts: LeaseCounts };
  readonly clock: Clock;
  readonly isDraining: () => boolean;
  readonly fanouts: { list(): readonly FanoutView[] };
  readonly singletons: { shards(): readonly HeldShards[] };
  /** Of an app that relies on alarms. */
  readonly alarms: AlarmCounts | undefined;
}

/**
 * What became of a request to a push handler. `more`: work was left when its time was over. `refused`: its sender is not
 * verified, or it is no wake-up. `unavailable`: the sender repeats it.
 */
export type PushOutcome = "done" | "more" | "unreadable" | "refused" | "unavailable" | "failed";

type Figure = keyof ReactorStats & ("polls" | "found" | "done" | "failed" | "faults" | "unserved" | "busy");

const figures: readonly (readonly [figure: Figure, name: string, help: string])[] = [
  ["polls", "tape_reactor_polls_total", "Polls for work, by reactor."],
  ["found", "tape_reactor_found_total", "Items that polls have found, by reactor."],
  ["done", "tape_reactor_done_total", "Items that are done, by reactor."],
  ["failed", "tape_reactor_failed_total", "Items released for a retry or lost to another holder, by reactor."],
  ["faults", "tape_reactor_faults_total", "Polls that failed as a whole, by reactor."],
  ["unserved", "tape_reactor_unserved_total", "Items that this process could not do, by reactor."],
  ["busy", "tape_reactor_busy", "Items in progress, by reactor."],
];

const leaseFigures = [
  ["acquires", "tape_lease_acquires_total", "Terms that this process was granted, by reactor and reason."],
  ["takeovers", "tape_lease_takeovers_total", "Those of them that ended another holder's term."],
  ["losses", "tape_lease_losses_total", "Terms that this process lost, by reactor and reason."],
] as const;

function countedPushes(registry: Metrics): ProcessMetrics["countPush"] {
  const help = "Requests to push handlers of this process, by reactor and outcome.";
  const count = registry.counter("tape_push_requests_total", help);
  return (reactor, outcome) => count({ reactor, outcome });
}

function addPartMetrics(registry: Metrics, { alarms, singletons }: ProcessMetricsDeps): void {
  registry.series("tape_alarms_set_total", "Alarms that this process has requested, by outcome.", "counter", () =>
    alarms === undefined ? [] : (["set", "failed"] as const).map((outcome): Sample => [{ outcome }, alarms[outcome]]),
  );
  registry.series("tape_singleton_shards", "Shards that this process holds, by singleton.", "gauge", () =>
    singletons.shards().map(({ name, held }): Sample => [{ name }, held]),
  );
  registry.series("tape_singleton_shards_unheld", "Shards that no process takes, by singleton.", "gauge", () =>
    singletons.shards().map(({ name, unheld }): Sample => [{ name }, unheld]),
  );
}

function addRetentionMetrics(registry: Metrics, counts: RetentionCounts): void {
  const series = (name: string, help: string, figure: keyof RetentionCounts): void =>
    registry.series(name, help, "counter", () => [[{}, counts[figure]]]);
  series("tape_retention_runs_total", "Runs that this process has archived and deleted.", "runs");
  series("tape_retention_bytes_total", "Bytes that this process has written to the archive.", "bytes");
  series("tape_retention_failures_total", "Passes of the reactor retention that failed in this process.", "failures");
}

/**
 * The metrics and the health of this process. Its own figures are counters to be summed over processes; those of the
 * store (see {@link CensusMetrics}) are the same in each.
 *
 * @example
 * console.log(await app.metrics.text()); // in the format of Prometheus
 */
export class ProcessMetrics {
  /** Where other parts of the process register their own figures. */
  readonly registry = new Metrics();
  readonly health: ProcessHealth;
  /** Counts a request to a push handler, by the reactor that it wakes. */
  readonly countPush: (reactor: string, outcome: PushOutcome) => void;
  /** What the reactor `retention` has done in this process. */
  readonly retention: RetentionCounts = { runs: 0, bytes: 0, files: 0, failures: 0 };
  /** Counts a call of a model. */
  readonly countModelCall: (call: ModelFigures) => void;
  /** Counts one replay and its duration. */
  readonly countReplay: (seconds: number) => void;
  /** Where the port listens; undefined without one. */
  url: string | undefined;
  #draining = false;
  readonly #deps: ProcessMetricsDeps;
  readonly #work = new Set<WorkSource>();
  readonly #leases = new Set<LeaseCounts>();
  readonly #refreshes: (() => Promise<void>)[] = [];
  readonly #ends: (() => Promise<void> | void)[] = [];

  constructor(deps: ProcessMetricsDeps) {
    this.#deps = deps;
    const { store, tenant, clock } = deps;
    const isDraining = (): boolean => this.#draining || deps.isDraining();
    const startedAt = clock.wall();
    const { registry } = this;
    for (const [figure, name, help] of figures) {
      registry.series(name, help, figure === "busy" ? "gauge" : "counter", () => this.#reactorSamples(figure));
    }
    for (const [figure, name, help] of leaseFigures) {
      registry.series(name, help, "counter", () => this.#leaseSamples(figure));
    }
    registry.gauge("tape_runs_driving", "Runs that this process drives now.", () => this.driving);
    registry.gauge("tape_process_start_time_seconds", "When this handle was opened, in seconds since 1970.", () =>
      Math.round(startedAt / 1_000),
    );
    addSinkMetrics(registry, () => deps.fanouts.list());
    this.countPush = countedPushes(registry);
    this.countModelCall = countedModels(registry);
    const help = "Seconds from the start of reading a run's journal until its code is live.";
    this.countReplay = registry.histogram("tape_run_replay_seconds", help);
    addPartMetrics(registry, deps);
    addRetentionMetrics(registry, this.retention);
    this.countLeases(deps.keeper.counts);
    const census = new CensusMetrics(registry, { read: store.read, tenant, clock });
    this.onScrape(() => census.refresh());
    this.health = new ProcessHealth({ store, clock, isDraining, pulses: () => this.#pulses() });
  }

  /** From now on `/readyz` reports that the process drains. */
  drain(): void {
    this.#draining = true;
  }

  /** How many runs this process drives now. */
  get driving(): number {
    return [...this.#work].reduce((sum, { driving }) => sum + driving, 0);
  }

  /** Counts the work of this part. Returns the function that forgets it. */
  watch(source: WorkSource): () => void {
    this.#work.add(source);
    return () => this.#work.delete(source);
  }

  /** Counts the terms of these keepers. What they have counted stays when they are closed. */
  countLeases(counts: LeaseCounts): void {
    this.#leases.add(counts);
  }

  /** Called before each scrape, to read what the figures need. It must be bounded, and must not throw. */
  onScrape(refresh: () => Promise<void>): void {
    this.#refreshes.push(refresh);
  }

  /** Reads the figures of the store now. */
  async refresh(): Promise<void> {
    await Promise.all(this.#refreshes.map((refresh) => refresh()));
  }

  /** Opens the port and starts the export, if any. */
  async start({ listen, export: exported }: MetricsOptions = {}, log: Log, setting = "metrics.listen"): Promise<void> {
    if (exported !== undefined) this.#ends.push(exported(this));
    if (listen === undefined) return;
    // Loaded on demand: most programs do not listen.
    const { metricsAddress, openMetricsPort } = await import("./metrics-port.ts");
    const port = await openMetricsPort(this, metricsAddress(listen, setting), log);
    this.url = port.url;
    this.#ends.push(() => port.stop());
  }

  /** Closes the port and ends the export. */
  async stop(): Promise<void> {
    for (const end of this.#ends.splice(0)) await end();
  }

  /** In the Prometheus text format. */
  async text(): Promise<string> {
    await this.refresh();
    return this.registry.text();
  }

  /** For operators: without names of tenants and runs. */
  async report(): Promise<Readonly<Record<string, unknown>>> {
    const { clock, keeper } = this.#deps;
    const [live, ready] = await Promise.all([this.health.live(), this.health.ready()]);
    const now = clock.mono();
    const pulses = this.#pulses();
    return {
      status: live === "ok" ? ready : live,
      replica: keeper.identity.label,
      driving: this.driving,
      lastPollAgoMs: pulses.length === 0 ? null : Math.round(Math.min(...pulses.map(({ polledAt }) => now - polledAt))),
      reactors: this.#stats(),
    };
  }

  #pulses(): LoopPulse[] {
    return [...this.#work].flatMap(({ pulse }) => (pulse === undefined ? [] : [pulse]));
  }

  #stats(): ReturnType<typeof summed> {
    return summed([...this.#work].map(({ stats }) => stats));
  }

  #reactorSamples(figure: Figure): Sample[] {
    return Object.entries(this.#stats()).map(([reactor, stats]) => [{ reactor }, stats[figure]]);
  }

  #leaseSamples(figure: (typeof leaseFigures)[number][0]): Sample[] {
    const sums = new Map<string, { -readonly [K in keyof LeaseCount]: LeaseCount[K] }>();
    for (const { reactor, reason, count } of [...this.#leases].flatMap((counts) => counts[figure])) {
      const key = JSON.stringify([reactor, reason]);
      const sum = sums.get(key);
      if (sum === undefined) sums.set(key, { reactor, reason, count });
      else sum.count += count;
    }
    return [...sums.values()].map(({ reactor, reason, count }) => [{ reactor, reason }, count]);
  }
}

/** What a run driver counts. The metrics may be created later than the driver. */
export const countedBy = (app: {
  readonly metrics: ProcessMetrics;
}): Pick<RunDriverOptions, "onModelCall" | "onReplayed"> => ({
  onModelCall: (call) => app.metrics.countModelCall(call),
  onReplayed: (seconds) => app.metrics.countReplay(seconds),
});
