import type { Clock } from "../base/clock.ts";
import { Metrics } from "../base/metrics.ts";
import { takingReasons } from "../lease/lease-counts.ts";
import type { ErrorCode } from "../model/errors.ts";
import type { RenewResult, Term } from "../model/lease.ts";
import type { RouteName } from "../protocol/contract.ts";
import { QueueMetrics } from "./queue-metrics.ts";

/** The state of this server: whether it takes calls, how many are in progress, and its metrics. */
export class Service {
  readonly version: string;
  readonly label: string;
  /** The tenant that operates the server. */
  readonly home: string;
  /** `durable-tape dev` serves: the page shows its buttons. */
  readonly dev: boolean;
  readonly codecEndpoint: string | undefined;
  readonly queues = new QueueMetrics();
  readonly #clock: Clock;
  readonly #metrics = new Metrics();
  readonly #requests;
  readonly #seconds;
  readonly #refusals;
  readonly #quotaRefusals;
  readonly #terms;
  readonly #takeovers;
  readonly #losses;
  readonly #drained = new AbortController();
  #calls = 0;
  #streams = 0;
  #onIdle = (): void => {};

  constructor(options: {
    readonly clock: Clock;
    readonly version: string;
    readonly label: string;
    readonly home: string;
    readonly dev?: boolean;
    readonly codecEndpoint?: string | undefined;
  }) {
    const { clock, version, label, home, dev = false } = options;
    this.dev = dev;
    this.codecEndpoint = options.codecEndpoint;
    this.#clock = clock;
    this.version = version;
    this.label = label;
    this.home = home;
    const metrics = this.#metrics;
    const startedAt = clock.wall();
    this.#requests = metrics.counter("tape_http_requests_total", "Responses, by route and status.");
    this.#seconds = metrics.histogram(
      "tape_http_request_duration_seconds",
      "Time from a call's arrival to its response; of a stream to its first line.",
    );
    this.#refusals = metrics.counter("tape_http_refusals_total", "Calls refused, by code.");
    this.#quotaRefusals = metrics.counter(
      "tape_quota_refusals_total",
      "Calls refused because a tenant's quota is exhausted, by quota.",
    );
    this.#terms = metrics.counter("tape_lease_acquires_total", "Terms granted through this server, by reason.");
    this.#takeovers = metrics.counter(
      "tape_lease_takeovers_total",
      "Terms that ended another holder's term, by reason.",
    );
    this.#losses = metrics.counter("tape_lease_losses_total", "Renewals refused because the term had ended, by code.");
    metrics.gauge("tape_http_requests_in_flight", "Calls in progress, without streams.", () => this.#calls);
    metrics.gauge("tape_http_streams_open", "Open streams.", () => this.#streams);
    metrics.gauge("tape_server_draining", "1 while the server drains and takes no more calls.", () =>
      this.draining ? 1 : 0,
    );
    metrics.gauge("tape_server_start_time_seconds", "When the server started, in seconds since 1970.", () =>
      Math.round(startedAt / 1_000),
    );
  }

  get draining(): boolean {
    return this.#drained.signal.aborted;
  }

  /** Aborts when streams must end. */
  get drainSignal(): AbortSignal {
    return this.#drained.signal;
  }

  get callsInProgress(): number {
    return this.#calls;
  }

  get streamsOpen(): number {
    return this.#streams;
  }

  metricsText(): string {
    return this.#metrics.text();
  }

  callStarted(): number {
    this.#calls++;
    return this.#clock.mono();
  }

  callEnded(startedAt: number, route: RouteName | "none", status: number, code: ErrorCode | undefined): void {
    this.#requests({ route, status: String(status) });
    this.#seconds((this.#clock.mono() - startedAt) / 1_000, { route });
    if (code !== undefined) this.#refusals({ code });
    this.#calls--;
    this.#checkIdle();
  }

  quotaRefused(quota: string): void {
    this.#quotaRefusals({ quota });
  }

  streamStarted(): void {
    this.#streams++;
  }

  streamEnded(): void {
    this.#streams--;
    this.#checkIdle();
  }

  /** Counts granted terms and takeovers. */
  granted(terms: readonly Term[]): void {
    for (const { reason, takenFrom } of terms) {
      this.#terms({ reason });
      if (takenFrom !== undefined || takingReasons.has(reason)) this.#takeovers({ reason });
    }
  }

  renewed(results: readonly RenewResult[]): void {
    for (const result of results) {
      if (result.ok) continue;
      const { code } = result.error;
      if (code === "TAPE_FENCED" || code === "TAPE_LEASE_STALLED") this.#losses({ code });
    }
  }

  /** Takes no more calls; resolves when calls in progress and streams have ended, or after `withinMs`. */
  async drain(withinMs: number): Promise<boolean> {
    this.#drained.abort();
    const idle = new AbortController();
    this.#onIdle = () => idle.abort();
    this.#checkIdle();
    await this.#clock.sleep(withinMs, idle.signal);
    return this.#calls + this.#streams === 0;
  }

  #checkIdle(): void {
    if (this.#calls + this.#streams === 0) this.#onIdle();
  }
}
