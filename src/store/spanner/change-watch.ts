import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { errorFields } from "../../base/reason.ts";

export interface ChangeWatchOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly everyMs: number;
  /** Changes when a process has committed a record. */
  readonly version: () => Promise<unknown>;
  readonly onCommit: () => void;
}

/**
 * Other processes cannot notify this one of their commits: while it has listeners, the end of the feed is read from time
 * to time. Hints within a process do not wait for that.
 */
export class ChangeWatch {
  readonly #options: ChangeWatchOptions;
  #listeners = 0;
  #cancel: (() => void) | undefined;
  #seen: unknown;

  constructor(options: ChangeWatchOptions) {
    this.#options = options;
  }

  /** Watches until the returned function is called, once for each listener. */
  enter(): () => void {
    if (this.#listeners++ === 0) this.#schedule();
    let left = false;
    return () => {
      if (left) return;
      left = true;
      if (--this.#listeners === 0) this.close();
    };
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #schedule(): void {
    this.#cancel = this.#options.clock.after(this.#options.everyMs, () => void this.#check());
  }

  async #check(): Promise<void> {
    const { version, onCommit, log } = this.#options;
    const cancel = this.#cancel;
    try {
      const found = await version();
      const changed = this.#seen !== undefined && found !== this.#seen;
      this.#seen = found;
      if (changed && this.#listeners > 0) onCommit();
    } catch (error) {
      if (this.#cancel === cancel && cancel !== undefined)
        log("warn", "store.watch_failed", {
          ...errorFields(error),
          next: "Polling finds what it would have announced.",
        });
    }
    if (this.#cancel === cancel && this.#listeners > 0) this.#schedule();
  }
}
