/** Somebody has asked the program to end: by a key, or by a signal. A second signal does not wait. */
export class Stop implements Disposable {
  readonly #asked = new AbortController();
  readonly #force: () => void;
  readonly #onSignal = (): void => {
    if (this.signal.aborted) {
      this.#force();
      process.exit(1); // somebody is impatient: leases run out by themselves
    }
    this.#asked.abort();
  };

  /** `force` ends the children at once; it is called too if this process ends in a way that nobody foresaw. */
  constructor(force: () => void) {
    this.#force = force;
    for (const name of signals) process.on(name, this.#onSignal);
    process.on("exit", force);
  }

  get signal(): AbortSignal {
    return this.#asked.signal;
  }

  ask(): void {
    this.#asked.abort();
  }

  [Symbol.dispose](): void {
    for (const name of signals) process.off(name, this.#onSignal);
    process.off("exit", this.#force);
  }
}

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
