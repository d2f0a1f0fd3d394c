/** A request to end the program, by a key or a signal. A second signal forces the exit. */
export class Stop implements Disposable {
  readonly #requested = new AbortController();
  readonly #force: () => void;
  readonly #onSignal = (): void => {
    if (this.signal.aborted) {
      this.#force();
      process.exit(1); // the second signal forces an exit: the leases expire
    }
    this.#requested.abort();
  };

  /** `force` ends the children immediately; it also runs if this process exits unexpectedly. */
  constructor(force: () => void) {
    this.#force = force;
    for (const name of signals) process.on(name, this.#onSignal);
    process.on("exit", force);
  }

  get signal(): AbortSignal {
    return this.#requested.signal;
  }

  request(): void {
    this.#requested.abort();
  }

  [Symbol.dispose](): void {
    for (const name of signals) process.off(name, this.#onSignal);
    process.off("exit", this.#force);
  }
}

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
