import { backoffMs } from "../base/backoff.ts";
import { defined } from "../base/defined.ts";
import { errorFields, reasonOf } from "../base/reason.ts";
import type { Lease } from "../lease/lease.ts";
import { sinkLease } from "../model/dead-letter.ts";
import type { SinkPause } from "../model/sink-checkpoint.ts";
import type { TermDeps } from "./deps.ts";
import type { FanoutCounts, FanoutSettings, TermStatus } from "./settings.ts";
import { FanoutTerm } from "./term.ts";

/** The state of a fan-out in this process. */
export type FanoutState = "standby" | "running" | "retrying" | "paused" | "stopped";

/** A fan-out as its process sees it. */
export interface FanoutView {
  readonly name: string;
  readonly state: FanoutState;
  /** Milliseconds since the oldest event that is under way was written; 0: none is. */
  readonly lagMs: number;
  /** Events that were read and are not settled. */
  readonly inFlight: number;
  /** Counted since this process started. */
  readonly delivered: number;
  /** Attempts after the first. */
  readonly retries: number;
  /** Events that the sink refused. */
  readonly deadLetters: number;
  /** The error of the last attempt that failed. */
  readonly lastError?: string;
  readonly paused?: SinkPause;
}

export interface FanoutDeps extends TermDeps {
  /** Stands by for the lease; undefined: the signal aborted. */
  acquire(name: string, signal: AbortSignal): Promise<Lease | undefined>;
}

const termBackoff = { baseMs: 1_000, capMs: 30_000 };

/**
 * Sends the events of a tenant to one sink, from one process at a time: the holder of the lease `sink NAME`. Another
 * process continues from its checkpoint, so every event arrives at least once, in order within each journal.
 *
 * @example
 * const { state, lastError } = app.fanouts.start({ name: "billing", sink: logSink({ log: silentLog }) }).view();
 */
export class Fanout {
  readonly name: string;
  readonly #deps: FanoutDeps;
  readonly #settings: FanoutSettings;
  readonly #counts: FanoutCounts = { delivered: 0, retries: 0, deadLetters: 0 };
  readonly #status: TermStatus = { state: "running", lastError: undefined, paused: undefined };
  readonly #stopping = new AbortController();
  readonly #done: Promise<void>;
  #term: FanoutTerm | undefined;
  #stopped = false;

  constructor(deps: FanoutDeps, settings: FanoutSettings) {
    this.name = settings.name;
    this.#deps = deps;
    this.#settings = settings;
    this.#done = this.#run();
  }

  /** Its state and counters now. */
  view(): FanoutView {
    const { lastError, paused } = this.#status;
    const state = this.#stopped ? "stopped" : this.#term === undefined ? "standby" : this.#status.state;
    return {
      name: this.name,
      state,
      lagMs: this.#term?.lagMs ?? 0,
      inFlight: this.#term?.inFlight ?? 0,
      ...this.#counts,
      ...defined({ lastError, paused }),
    };
  }

  /** Stops reading, waits for what is under way, leaves the checkpoint and releases the lease. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    const { clock, random, log } = this.#deps;
    const { signal } = this.#stopping;
    for (let failures = 0; !signal.aborted; ) {
      let lease: Lease | undefined;
      try {
        lease = await this.#deps.acquire(sinkLease(this.name), signal);
        if (lease === undefined) break;
        log("info", "sink.started", { sink: this.name, label: this.#settings.sink.label, token: lease.token });
        this.#term = new FanoutTerm(this.#deps, this.#settings, lease, this.#counts, this.#status);
        await this.#term.run(signal);
        failures = 0;
      } catch (error) {
        failures++;
        this.#status.lastError = reasonOf(error);
        log("error", "sink.failed", { sink: this.name, ...errorFields(error) });
        await clock.sleep(backoffMs(failures, termBackoff, random), signal);
      } finally {
        this.#term = undefined;
        await lease?.release("drained");
      }
    }
    this.#stopped = true;
    await this.#settings.sink.close?.();
    log("info", "sink.stopped", { sink: this.name });
  }
}
