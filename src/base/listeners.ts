/** Delivers events to listeners in the order in which they happened, even if a listener causes the next event. */
export class OrderedListeners<T> {
  readonly #listeners = new Set<(what: T) => unknown>();
  readonly #onFault: (error: unknown) => void;
  readonly #queue: T[] = [];
  #emitting = false;

  constructor(onFault: (error: unknown) => void) {
    this.#onFault = onFault;
  }

  on(listener: (what: T) => unknown): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  emit(what: T): void {
    this.#queue.push(what);
    // Emitted inside a listener: the listeners after it must first receive the event that it reacted to.
    if (this.#emitting) return;
    this.#emitting = true;
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      for (const listener of this.#listeners) this.#emitTo(listener, next);
    }
    this.#emitting = false;
  }

  #emitTo(listener: (what: T) => unknown, what: T): void {
    try {
      const answer = listener(what);
      // No other code catches an async listener's rejection, and an unhandled one would end the process.
      if (answer instanceof Promise) answer.catch(this.#onFault);
    } catch (error) {
      this.#onFault(error);
    }
  }
}
