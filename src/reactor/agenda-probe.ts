import { type BackoffOptions, backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { errorFields } from "../base/reason.ts";
import { preloadMs } from "../engine/run-driver.ts";
import { staleJitterMs } from "../lease/keeper.ts";
import type { BuildClaim } from "../model/build.ts";
import type { Store } from "../store/contract/store.ts";
import { jittered } from "./runner.ts";

export interface AgendaProbeOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** For jitter; absent: none. */
  readonly random: Random | undefined;
  readonly log: Log;
  readonly tenant: string | undefined;
  /** Workflows that this process can drive; runs of others are no work for it. Undefined: all runs are on the agenda. */
  readonly workflows: readonly string[] | undefined;
  /** Queues whose runs this process can drive. */
  readonly queues: readonly string[];
  /** Its build, if it pins workflows. */
  readonly build: () => BuildClaim | undefined;
  /** Pause after a change; doubles up to `idleMs`. */
  readonly intervalMs: number;
  readonly idleMs: number;
  /** Pauses after an expired lease that another process was faster to take over; at most `idleMs`. */
  readonly takeover: BackoffOptions;
  /** Called when work is due for this reactor; undefined: for any reactor on the agenda. */
  readonly wake: (reactor: string | undefined) => void;
  /** A poll is over, whether it succeeded or not. */
  readonly polled: () => void;
}

/** Unserved runs are on no agenda. Recovery polls for them this often, so that they are logged. */
const recoverMs = 10_000;

/**
 * Reads the store's agenda for all reactors of a process: which of them have work, and when the next work falls due, to
 * the millisecond. A wake hint makes it poll at once; without hints it polls less and less often.
 *
 * Work that stays due is not claimable here. The pause ignores it, otherwise the probe would busy-loop.
 */
export class AgendaProbe {
  readonly #options: AgendaProbeOptions;
  #recheckRequested = false;
  #recoverAt: number;
  #pauseMs: number;
  /** Wakes for expired leases in a row after which no reactor of this process had work. */
  #lostRaces = 0;
  #restUntil = Number.NEGATIVE_INFINITY;
  #wakeUp = (): void => {};

  constructor(options: AgendaProbeOptions) {
    this.#options = options;
    this.#pauseMs = options.intervalMs;
    this.#recoverAt = options.clock.mono() + recoverMs;
  }

  /** The agenda may have changed. */
  recheck(): void {
    this.#recheckRequested = true;
    this.#lostRaces = 0;
    this.#restUntil = Number.NEGATIVE_INFINITY;
    this.#pauseMs = this.#options.intervalMs;
    this.#wakeUp();
  }

  async run(stopped: AbortSignal): Promise<void> {
    const { clock, random, log, idleMs, polled } = this.#options;
    while (!stopped.aborted) {
      this.#recheckRequested = false;
      let nextMs = Number.POSITIVE_INFINITY;
      try {
        nextMs = await this.#poll();
      } catch (error) {
        log("warn", "reactor.agenda_failed", { ...errorFields(error) });
      }
      polled();
      if (this.#recheckRequested || stopped.aborted) continue;
      const pause = new AbortController();
      this.#wakeUp = () => pause.abort();
      await clock.sleep(Math.min(jittered(this.#pauseMs, random), nextMs), AbortSignal.any([pause.signal, stopped]));
      this.#wakeUp = () => {};
      if (!this.#recheckRequested) this.#pauseMs = Math.min(idleMs, this.#pauseMs * 2);
    }
  }

  /** Returns the milliseconds until the next work falls due. */
  async #poll(): Promise<number> {
    const { store, tenant, workflows, queues, build, clock, wake } = this.#options;
    let nextMs = Number.POSITIVE_INFINITY;
    if (workflows !== undefined && clock.mono() >= this.#recoverAt) {
      this.#recoverAt = clock.mono() + recoverMs;
      wake("recovery");
    }
    for (const { reactor, dueInMs } of await store.read.agenda(tenant, workflows, queues, build())) {
      if (reactor === undefined) {
        nextMs = Math.min(nextMs, this.#expiry(dueInMs));
        continue;
      }
      if (dueInMs <= 0) wake(reactor);
      else nextMs = Math.min(nextMs, dueInMs);
      if (reactor !== "timers" || dueInMs <= 0) continue;
      // Recovery preloads the run shortly before its timer fires.
      if (dueInMs > preloadMs) nextMs = Math.min(nextMs, dueInMs - preloadMs);
      else wake("recovery");
    }
    return nextMs;
  }

  /**
   * A lease expires in `dueInMs`, or has expired. Processes that wait for it check at different moments. One that
   * finds no work then came too late: it pauses, unless something changes. Returns the milliseconds until its check.
   */
  #expiry(dueInMs: number): number {
    const { clock, random, takeover, idleMs, wake } = this.#options;
    if (dueInMs > 0) return dueInMs + (random?.float() ?? 0) * staleJitterMs;
    const restMs = this.#restUntil - clock.mono();
    if (restMs > 0) return restMs;
    wake(undefined);
    if (random !== undefined) {
      this.#restUntil = clock.mono() + Math.min(idleMs, backoffMs(++this.#lostRaces, takeover, random));
    }
    return Number.POSITIVE_INFINITY;
  }
}
