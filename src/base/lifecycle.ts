/**
 * The lifecycle of every background component:
 *
 *   new ──start──▶ running ──stop──▶ stopping ──▶ stopped
 *    └──────────────stop───────────────────────────▲
 *
 * - `start` twice is one start; the second call waits for the first.
 * - `stop` twice is one stop; `stop` without `start` goes straight to stopped.
 * - `start` after `stop` is refused: create a new one. (A half-dead object that restarts is how zombies are born.)
 * - `stop` during `start` waits for the start, then stops.
 */
export class Lifecycle {
  readonly #begin: () => void | Promise<void>;
  readonly #end: () => void | Promise<void>;
  #state: "new" | "running" | "stopping" | "stopped" = "new";
  #starting: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;

  constructor(begin: () => void | Promise<void>, end: () => void | Promise<void>) {
    this.#begin = begin;
    this.#end = end;
  }

  get state(): "new" | "running" | "stopping" | "stopped" {
    return this.#state;
  }

  start(): Promise<void> {
    if (this.#state === "stopping" || this.#state === "stopped") {
      return Promise.reject(new Error("stopped and cannot restart; create a new one"));
    }
    if (this.#starting !== undefined) return this.#starting;
    this.#state = "running";
    this.#starting = Promise.resolve().then(this.#begin);
    return this.#starting;
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stopOnce();
    return this.#stopping;
  }

  async #stopOnce(): Promise<void> {
    const started = this.#starting;
    this.#state = "stopping";
    try {
      if (started !== undefined) {
        await started.catch(() => {});
        await this.#end();
      }
    } finally {
      this.#state = "stopped";
    }
  }
}
