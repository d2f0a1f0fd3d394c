/** Listeners who are told of everything in the order in which it happened, also when one of them causes the next thing. */
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
    // Inside a listener: those after it must hear of what it reacted to before they hear of its reaction.
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
      // An async listener's rejection has no other catcher, and an uncaught one would end the process.
      if (answer instanceof Promise) answer.catch(this.#onFault);
    } catch (error) {
      this.#onFault(error);
    }
  }
}
