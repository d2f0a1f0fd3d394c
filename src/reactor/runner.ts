import { aborted } from "../base/abort.ts";
import type { BackoffOptions } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { errorFields } from "../base/reason.ts";
import { takeoverBackoff } from "../lease/keeper.ts";
import type { Handoff } from "../lease/release-journal.ts";
import type { OnItemDone, Reactor, ReactorCounts, ReactorRound } from "./reactor.ts";

export interface ReactorTuning {
  /** Maximum number of items that one poll claims. */
  readonly batch?: number;
  /** Items worked on at once; default: twice the batch. A reactor with its own `capacity` ignores it. */
  readonly concurrency?: number;
  /** Of these, items of one connector, or of one effect without a connector; default: half of them. */
  readonly perConnector?: number;
  /** Pause after a poll that found nothing; doubles up to `idleMs`. */
  readonly intervalMs?: number;
  readonly idleMs?: number;
  /** Pauses before it is woken again for an expired lease that another process was faster to take over. Default 1–10 s. */
  readonly takeover?: BackoffOptions;
}

/** Counters of a reactor since its start. */
export interface ReactorStats extends ReactorCounts {
  /** Queries for work. */
  readonly polls: number;
  /** Polls that failed as a whole, because the store was unreachable. */
  readonly faults: number;
  /** Items under way now. */
  readonly busy: number;
  /** How often it met work that this process cannot do. */
  readonly unserved: number;
}

export interface RunnerOptions extends ReactorTuning {
  readonly clock: Clock;
  /** For jitter; absent: none. */
  readonly random?: Random | undefined;
  readonly log: Log;
}

const defaultIntervalMs = 100;
export const defaultIdleMs = 5_000;

/** A tenth less at most: processes that started together do not poll together, and none polls less often than it says. */
export const jittered = (pauseMs: number, random: Random | undefined): number =>
  random === undefined ? pauseMs : pauseMs * (1 - random.float() / 10);

/** What one reactor's loop needs from the loop of all. */
export interface LoopHooks {
  readonly stopped: AbortSignal;
  readonly hint: (next: Handoff) => void;
  /** The agenda may have changed. */
  readonly recheck: () => void;
  /** A poll is over, whether it succeeded or not. */
  readonly polled: () => void;
}

/** The loop of one reactor. */
export class ReactorRunner {
  readonly name: string;
  readonly onAgenda: boolean;
  readonly intervalMs: number;
  readonly idleMs: number;
  readonly takeover: BackoffOptions;
  readonly #reactor: Reactor;
  readonly #options: RunnerOptions;
  readonly #hooks: LoopHooks;
  readonly #rounds = new Set<Promise<void>>();
  #stats = { polls: 0, faults: 0, found: 0, done: 0, failed: 0, lagMs: 0, unserved: 0 };
  #busy = 0;
  /** The last poll was skipped or cut because no capacity was left. */
  #full = false;
  /** Why to poll; undefined: there is no reason yet. `slot`: only an item that others had waited for is done. */
  #woken: "work" | "slot" | undefined = "work";
  #wakeUp = () => {};

  constructor(reactor: Reactor, options: RunnerOptions, hooks: LoopHooks) {
    this.name = reactor.name;
    this.onAgenda = reactor.onAgenda === true;
    this.#reactor = reactor;
    this.#options = options;
    this.intervalMs = options.intervalMs ?? defaultIntervalMs;
    this.idleMs = options.idleMs ?? defaultIdleMs;
    this.takeover = options.takeover ?? takeoverBackoff;
    this.#hooks = hooks;
  }

  get stats(): ReactorStats {
    return { ...this.#stats, busy: this.#busy };
  }

  wake(of: "work" | "slot" = "work"): void {
    if (this.#woken !== "work") this.#woken = of;
    this.#wakeUp();
  }

  async drained(): Promise<void> {
    while (this.#rounds.size > 0) await Promise.all(this.#rounds);
  }

  async run(): Promise<void> {
    const { intervalMs, idleMs } = this;
    const { log, random } = this.#options;
    const { stopped, recheck, polled } = this.#hooks;
    let pauseMs = intervalMs;
    while (!stopped.aborted) {
      // A poll after the usual pause is for all work, too.
      const onlyWaited = this.#woken === "slot";
      this.#woken = undefined;
      let progress = false;
      let failed = false;
      try {
        const { found, more } = await this.#poll(onlyWaited);
        progress = more ?? found > 0;
        if (found > 0 && more === undefined) recheck(); // the finished work may have made other work due
      } catch (error) {
        failed = true;
        this.#stats.faults++;
        log("warn", "reactor.failed", { reactor: this.name, ...errorFields(error) });
      }
      polled();
      if (progress && !this.#full) {
        if (onlyWaited) this.wake("slot");
        continue;
      }
      pauseMs = progress || this.#full || this.#woken ? intervalMs : Math.min(idleMs, pauseMs * 2);
      const isWokenByProbe = this.onAgenda && !failed && !this.#full;
      const dueInMs = this.#reactor.dueInMs?.() ?? 0;
      const restMs = dueInMs > 0 ? dueInMs : jittered(pauseMs, random);
      const probedMs = dueInMs > 0 ? dueInMs : Number.POSITIVE_INFINITY;
      if (!this.#woken) await this.#pause(isWokenByProbe ? probedMs : restMs);
    }
  }

  async #poll(onlyWaited: boolean): Promise<Pick<ReactorRound, "found" | "more">> {
    const { batch = this.#reactor.batch ?? 50, concurrency = 2 * batch } = this.#options;
    const { perConnector = Math.ceil(concurrency / 2) } = this.#options;
    const limit = Math.min(batch, this.#reactor.capacity?.() ?? concurrency - this.#busy);
    this.#full = limit <= 0;
    if (this.#full) return { found: 0 };
    this.#stats.polls++;
    if (this.#reactor.poll === undefined) {
      const counts = await this.#reactor.runOnce(limit);
      this.#count(counts);
      return { found: counts.done }; // found but not done: polling again at once would busy-loop
    }
    const onItemDone: OnItemDone = (next, waited = false) => {
      this.#busy--;
      if (this.#full) this.wake();
      else if (waited) this.wake("slot");
      if (next !== undefined) this.#hooks.hint(next);
    };
    const { found, more, done } = await this.#reactor.poll(limit, onItemDone, perConnector, onlyWaited);
    this.#busy += found;
    const round = done.then(
      (counts) => this.#count(counts),
      (error: unknown) => this.#options.log("error", "reactor.failed", { reactor: this.name, ...errorFields(error) }),
    );
    this.#rounds.add(round);
    void round.finally(() => this.#rounds.delete(round));
    return { found, ...(more !== undefined && { more }) };
  }

  #count({ found, done, failed, lagMs, unserved = 0 }: ReactorCounts): void {
    const stats = this.#stats;
    stats.found += found;
    stats.done += done;
    stats.failed += failed;
    stats.unserved += unserved;
    if (found > 0) stats.lagMs = lagMs; // of the last round that found something
  }

  async #pause(pauseMs: number): Promise<void> {
    const pause = new AbortController();
    this.#wakeUp = () => pause.abort();
    const signal = AbortSignal.any([pause.signal, this.#hooks.stopped]);
    if (pauseMs === Number.POSITIVE_INFINITY) await aborted(signal);
    else await this.#options.clock.sleep(pauseMs, signal);
    this.#wakeUp = () => {};
  }
}
