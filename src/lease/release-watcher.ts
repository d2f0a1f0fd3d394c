import type { Clock } from "../base/clock.ts";

/** A store's wake hints; those that do not concern leases are ignored. */
export interface WakeSource {
  onWake(listener: (wake: { readonly of: string; readonly journal?: number }) => void): () => void;
}

/**
 * Watches for releases of one lease. Create it *before* the acquire request: hints that arrive before the lease's journal
 * is known are kept, so that a release between the response and the sleep is not missed.
 */
export class ReleaseWatcher {
  readonly stop: () => void;
  readonly #hinted = new Set<number | "any">();
  #journal: number | undefined;
  #woken: (() => void) | undefined;

  constructor(store: WakeSource) {
    this.stop = store.onWake((wake) => {
      if (wake.of === "any") this.#hinted.add("any");
      else if (wake.of === "journal" && wake.journal !== undefined) this.#hinted.add(wake.journal);
      else return;
      if (this.#concerns()) this.#woken?.();
    });
  }

  /** Resolves when the journal's lease may be free, when `ms` have passed, or when the signal aborts. */
  async wait(ms: number, journal: number | undefined, clock: Clock, signal: AbortSignal): Promise<void> {
    this.#journal = journal;
    if (this.#hinted.size > 0 && this.#concerns()) return;
    const woken = new AbortController();
    this.#woken = () => woken.abort();
    await clock.sleep(ms, AbortSignal.any([signal, woken.signal]));
  }

  #concerns(): boolean {
    return this.#journal === undefined || this.#hinted.has("any") || this.#hinted.has(this.#journal);
  }
}
