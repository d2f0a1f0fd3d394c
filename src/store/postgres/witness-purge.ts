import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { errorFields } from "../../base/reason.ts";
import type { Connections } from "./connections.ts";

/** Witnesses are checked within seconds; after ten minutes they are useless. */
const witnessMs = 600_000;
const purgeEveryMs = 60_000;

/**
 * Deletes old witnesses once a minute, and only beside writes: they are what creates witnesses, and a store without
 * writes must not be asked anything.
 */
export class WitnessPurge {
  readonly #connections: Connections;
  readonly #clock: Clock;
  readonly #log: Log;
  #lastAt: number;

  constructor(connections: Connections, clock: Clock, log: Log) {
    this.#connections = connections;
    this.#clock = clock;
    this.#log = log;
    this.#lastAt = clock.mono();
  }

  /** Called with each write, which does not wait for it. */
  beforeWrite(): void {
    const now = this.#clock.mono();
    if (now - this.#lastAt < purgeEveryMs) return;
    this.#lastAt = now;
    this.#connections.ask("witness.purge", { olderMs: witnessMs }).catch((error: unknown) => {
      this.#log("warn", "store.purge_failed", { ...errorFields(error), next: "A write in a minute repeats it." });
    });
  }
}
