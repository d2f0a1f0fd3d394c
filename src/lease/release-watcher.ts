import type { Clock } from "../base/clock.ts";

/** What a store says to those who wait; more than leases concern is passed over. */
export interface WakeSource {
  onWake(listener: (wake: { readonly of: string; readonly journal?: number }) => void): () => void;
}

/**
 * Listens from its making on, for what may have freed a lease. Made before the store is asked, so that a release between
 * the answer and the sleep is not missed: once the journal is known, what was heard before counts too.
 */
export class ReleaseWatcher {
  readonly stop: () => void;
  readonly #heard = new Set<number | "any">();
  #journal: number | undefined;
  #woken: (() => void) | undefined;

  constructor(store: WakeSource) {
    this.stop = store.onWake((wake) => {
      if (wake.of === "any") this.#heard.add("any");
      else if (wake.of === "journal" && wake.journal !== undefined) this.#heard.add(wake.journal);
      else return;
      if (this.#concerns()) this.#woken?.();
    });
  }

  /** Until the journal's lease may be free, or `ms` have passed, or the signal aborts. */
  async wait(ms: number, journal: number | undefined, clock: Clock, signal: AbortSignal): Promise<void> {
    this.#journal = journal;
    if (this.#heard.size > 0 && this.#concerns()) return;
    const woken = new AbortController();
    this.#woken = () => woken.abort();
    await clock.sleep(ms, AbortSignal.any([signal, woken.signal]));
  }

  #concerns(): boolean {
    return this.#journal === undefined || this.#heard.has("any") || this.#heard.has(this.#journal);
  }
}
