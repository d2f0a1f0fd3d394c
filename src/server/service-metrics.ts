import type { Clock } from "../base/clock.ts";
import type { ErrorCode } from "../model/errors.ts";
import type { RenewResult, Term } from "../model/lease.ts";
import type { RouteName } from "../protocol/contract.ts";
import { Metrics } from "./metrics.ts";

/** How this server itself is doing: whether it takes calls, how many are under way, and figures of what it has done. */
export class Service {
  readonly version: string;
  readonly label: string;
  /** The tenant of whoever runs the server. */
  readonly home: string;
  /** It is `durable-tape dev` that serves: the page shows its buttons. */
  readonly dev: boolean;
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
  #idle = (): void => {};

  constructor(options: {
    readonly clock: Clock;
    readonly version: string;
    readonly label: string;
    readonly home: string;
    readonly dev?: boolean;
  }) {
    const { clock, version, label, home, dev = false } = options;
    this.dev = dev;
    this.#clock = clock;
    this.version = version;
    this.label = label;
    this.home = home;
    const metrics = this.#metrics;
    const startedAt = clock.wall();
    this.#requests = metrics.counter("tape_http_requests_total", "Calls answered, by route and status.");
    this.#seconds = metrics.histogram(
      "tape_http_request_duration_seconds",
      "Time from a call's arrival to its answer; of a stream to its first line.",
    );
    this.#refusals = metrics.counter("tape_http_refusals_total", "Calls refused, by code.");
    this.#quotaRefusals = metrics.counter(
      "tape_quota_refusals_total",
      "Calls refused because a tenant's quota is used up, by quota.",
    );
    this.#terms = metrics.counter("tape_lease_acquires_total", "Terms granted through this server, by reason.");
    this.#takeovers = metrics.counter("tape_lease_takeovers_total", "Terms that ended somebody else's, by reason.");
    this.#losses = metrics.counter("tape_lease_losses_total", "Renewals refused because the term was over, by code.");
    metrics.gauge("tape_http_requests_in_flight", "Calls being worked on, streams left out.", () => this.#calls);
    metrics.gauge("tape_http_streams_open", "Streams open.", () => this.#streams);
    metrics.gauge("tape_server_draining", "1 while the server stops and takes no more calls.", () =>
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

  get callsUnderWay(): number {
    return this.#calls;
  }

  get streamsOpen(): number {
    return this.#streams;
  }

  metricsText(): string {
    return this.#metrics.text();
  }

  begun(): number {
    this.#calls++;
    return this.#clock.mono();
  }

  ended(begun: number, route: RouteName | "none", status: number, code: ErrorCode | undefined): void {
    this.#requests({ route, status: String(status) });
    this.#seconds((this.#clock.mono() - begun) / 1_000, { route });
    if (code !== undefined) this.#refusals({ code });
    this.#calls--;
    this.#rest();
  }

  quotaRefused(quota: string): void {
    this.#quotaRefusals({ quota });
  }

  streamBegun(): void {
    this.#streams++;
  }

  streamEnded(): void {
    this.#streams--;
    this.#rest();
  }

  /** Lease churn: who got what, and from whom. */
  granted(terms: readonly Term[]): void {
    for (const { reason, takenFrom } of terms) {
      this.#terms({ reason });
      if (takenFrom !== undefined || takingReasons.has(reason)) this.#takeovers({ reason });
    }
  }

  renewed(verdicts: readonly RenewResult[]): void {
    for (const verdict of verdicts) {
      if (verdict.ok) continue;
      const { code } = verdict.error;
      if (code === "TAPE_FENCED" || code === "TAPE_LEASE_STALLED") this.#losses({ code });
    }
  }

  /** No more calls; resolves when those under way are answered and the streams have ended, or the time is over. */
  async drain(withinMs: number): Promise<boolean> {
    this.#drained.abort();
    const over = new AbortController();
    this.#idle = () => over.abort();
    this.#rest();
    await this.#clock.sleep(withinMs, over.signal);
    return this.#calls + this.#streams === 0;
  }

  #rest(): void {
    if (this.#calls + this.#streams === 0) this.#idle();
  }
}

/** Reasons that a term begins for only when another's was ended against its holder's will. */
const takingReasons: ReadonlySet<string> = new Set(["manual", "timeout", "stalled", "recovery"]);
