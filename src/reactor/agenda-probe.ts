import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import { preloadMs } from "../engine/run-driver.ts";
import type { Store } from "../store/contract/store.ts";

export interface AgendaProbeOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly tenant: string | undefined;
  /** Whose runs can be driven here: others are nothing to do for us. */
  readonly workflows: readonly string[] | undefined;
  /** How long to rest after something has happened; doubles up to `idleMs`. */
  readonly intervalMs: number;
  readonly idleMs: number;
  /** Something is due for this reactor; undefined: for any of them. */
  readonly wake: (reactor: string | undefined) => void;
}

/** What nobody serves is on nobody's agenda: now and then recovery looks for it, so that it is told of. */
const recoverMs = 10_000;

/**
 * One look at the store's agenda on behalf of all reactors of a process: who has something to do, and when the next
 * thing is due, to the millisecond. Hints make it look at once; without any it looks less and less often. What is due
 * and stays due is not for us: it changes nothing about how long to rest, or looking for it would spin.
 */
export class AgendaProbe {
  readonly #options: AgendaProbeOptions;
  #again = false;
  #recoverAt: number;
  #restMs: number;
  #wakeUp = (): void => {};

  constructor(options: AgendaProbeOptions) {
    this.#options = options;
    this.#restMs = options.intervalMs;
    this.#recoverAt = options.clock.mono() + recoverMs;
  }

  /** The agenda may have changed. */
  recheck(): void {
    this.#again = true;
    this.#restMs = this.#options.intervalMs;
    this.#wakeUp();
  }

  async run(stopped: AbortSignal): Promise<void> {
    const { clock, log, idleMs } = this.#options;
    while (!stopped.aborted) {
      this.#again = false;
      let nextMs = Number.POSITIVE_INFINITY;
      try {
        nextMs = await this.#look();
      } catch (error) {
        log("warn", "reactor.agenda_failed", { ...errorFields(error) });
      }
      if (this.#again || stopped.aborted) continue;
      const rest = new AbortController();
      this.#wakeUp = () => rest.abort();
      await clock.sleep(Math.min(this.#restMs, nextMs), AbortSignal.any([rest.signal, stopped]));
      this.#wakeUp = () => {};
      if (!this.#again) this.#restMs = Math.min(idleMs, this.#restMs * 2);
    }
  }

  /** Milliseconds until the next thing is due. */
  async #look(): Promise<number> {
    const { store, tenant, workflows, clock, wake } = this.#options;
    let nextMs = Number.POSITIVE_INFINITY;
    if (clock.mono() >= this.#recoverAt) {
      this.#recoverAt = clock.mono() + recoverMs;
      wake("recovery");
    }
    for (const { reactor, dueInMs } of await store.read.agenda(tenant, workflows)) {
      if (dueInMs <= 0) wake(reactor);
      else nextMs = Math.min(nextMs, dueInMs);
      if (reactor !== "timers" || dueInMs <= 0) continue;
      // Who has to go on when it fires is made ready before.
      if (dueInMs > preloadMs) nextMs = Math.min(nextMs, dueInMs - preloadMs);
      else wake("recovery");
    }
    return nextMs;
  }
}
