import type { WakeHint } from "./contract/store.ts";

/** Listeners of one store handle. A throwing listener affects neither the others nor the writer that woke it. */
export class WakeHub {
  readonly #listeners = new Set<(wake: WakeHint) => void>();
  readonly #onFault: (error: unknown) => void;

  constructor(onFault: (error: unknown) => void = () => {}) {
    this.#onFault = onFault;
  }

  get size(): number {
    return this.#listeners.size;
  }

  on(listener: (wake: WakeHint) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  emit(wake: WakeHint): void {
    for (const listener of this.#listeners) {
      try {
        listener(wake);
      } catch (error) {
        this.#onFault(error);
      }
    }
  }
}
