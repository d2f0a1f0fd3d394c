import type { Clock } from "../base/clock.ts";
import { isTapeError } from "../model/errors.ts";
import type { Store } from "../store/contract/store.ts";

/** When a loop of reactors last finished a poll, and how often it polls at least. */
export interface LoopPulse {
  readonly polledAt: number;
  readonly pollEveryMs: number;
}

export type Liveness = "ok" | "wedged";
export type Readiness = "ok" | "draining" | "store_unreachable";

export interface ProcessHealthDeps {
  readonly store: Pick<Store, "health">;
  readonly clock: Clock;
  readonly pulses: () => readonly LoopPulse[];
  readonly isDraining: () => boolean;
}

/** Polls that a loop may miss, and time for one that takes long, before it counts as wedged. */
const missedPolls = 5;
const slowPollMs = 30_000;
/** A probe of a platform waits a second or two. */
const storeTimeoutMs = 1_500;

/**
 * Whether this process works. It is wedged if no reactor of a loop has finished a poll for long although the store
 * responds: such a process renews its leases and does nothing. While the store is away, a restart would not help.
 */
export class ProcessHealth {
  readonly #deps: ProcessHealthDeps;
  #pending: Promise<boolean> | undefined;

  constructor(deps: ProcessHealthDeps) {
    this.#deps = deps;
  }

  async live(): Promise<Liveness> {
    const { clock, pulses } = this.#deps;
    const now = clock.mono();
    const isLate = ({ polledAt, pollEveryMs }: LoopPulse): boolean =>
      now - polledAt > missedPolls * pollEveryMs + slowPollMs;
    if (!pulses().some(isLate)) return "ok";
    return (await this.reachesStore()) ? "wedged" : "ok";
  }

  async ready(): Promise<Readiness> {
    if (this.#deps.isDraining()) return "draining";
    return (await this.reachesStore()) ? "ok" : "store_unreachable";
  }

  /** One query of the store at a time, for all callers. */
  reachesStore(): Promise<boolean> {
    this.#pending ??= this.#query().finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  async #query(): Promise<boolean> {
    const { store, clock } = this.#deps;
    const answered = new AbortController();
    const health = store.health().then(
      () => true,
      (error: unknown) => {
        if (!isTapeError(error)) throw error;
        return false;
      },
    );
    try {
      return await Promise.race([health, clock.sleep(storeTimeoutMs, answered.signal).then(() => false)]);
    } finally {
      answered.abort();
    }
  }
}
