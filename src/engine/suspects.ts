import type { Clock } from "../base/clock.ts";
import { TapeError } from "../model/errors.ts";
import type { Driver, Suspicion } from "./driver.ts";

export interface SuspectsOptions {
  readonly clock: Clock;
  /** Drives besides the suspect that are under way. */
  readonly others: () => readonly Promise<unknown>[];
  /** A suspect is no longer alone: others may begin. */
  readonly onCompany: () => void;
}

/** Crashes of a process that drove nothing else, without progress in between, before a person must look. */
const mostCrashes = 5;
/** How long the others get to come to rest before a suspect is driven beside them, and then nothing is counted. */
const patienceMs = 30_000;
/** A suspect that lives so long alone gets company again. */
const aloneMs = 30_000;

/** Suspects driven beside each other until they have moved on: so many may have to be driven alone if one is poison. */
const together = 16;
/** What kills its process does so at once as a rule; a long body must not keep the others from being recovered. */
const besideMs = 5_000;

/**
 * Runs that were held by a process that vanished. A few at a time are driven until each has moved on; no more are even
 * acquired, so whoever kills its process has no other company. One that was recovered before and has not moved on since is
 * driven alone, nothing else beside it: only a crash then counts. A neighbour's crash never sticks an innocent run.
 */
export class Suspects {
  readonly #options: SuspectsOptions;
  /** Those that must be driven alone, one after the other. */
  #line: Promise<void> = Promise.resolve();
  #alone = 0;
  #under = 0;

  constructor(options: SuspectsOptions) {
    this.#options = options;
  }

  /** A suspect is being driven alone, or about to be: nothing else may begin. */
  get alone(): boolean {
    return this.#alone > 0;
  }

  /** How many more may be acquired now. */
  get room(): number {
    return Math.max(0, together - this.#under);
  }

  /** One has been acquired. */
  next(): Suspicion {
    this.#under++;
    let leave = (): void => {
      leave = () => {};
      stopWaiting();
      this.#under--;
      this.#options.onCompany();
    };
    // Whoever lives so long is at work: others need not wait until it has something to show for it.
    const stopWaiting = this.#options.clock.after(besideMs, () => leave());
    let company = (): void => {};
    let leaveLine = (): void => {};
    const lifted = (): void => {
      company();
      leaveLine();
      leave();
    };
    const raised = async (drive: Driver): Promise<boolean> => {
      const { recoveries, crashes } = drive.history;
      if (recoveries < 2) return false;
      const count = crashes === undefined ? 0 : crashes + 1;
      if (count >= mostCrashes) {
        const { workflow, id } = drive.history.created;
        const message = `the process died ${count} times while it drove nothing but this run of ${workflow}, without progress since record ${drive.history.progressAt}`;
        await drive.stick(new TapeError("TAPE_RUN_STUCK", message, { run: id, crashes: count }));
        return true;
      }
      suspicion.apart = true;
      this.#alone++;
      let counted = true;
      company = () => {
        if (!counted) return;
        counted = false;
        this.#alone--;
        this.#options.onCompany();
      };
      const before = this.#line;
      this.#line = new Promise((resolve) => {
        leaveLine = resolve;
      });
      await before;
      if (drive.over) return true; // its lease ran out in the line, or the process is draining
      if (!(await this.#quiet())) {
        company();
        return false;
      }
      await drive.journal.writeNow([{ kind: "run.suspected", data: { crashes: count } }]);
      this.#options.clock.after(aloneMs, () => {
        if (!counted || drive.over) return;
        company(); // a crash from now on may be a neighbour's: it must not count
        drive.journal.write([{ kind: "run.suspected", data: { crashes: 0 } }], leaveLine, () => {});
      });
      return false;
    };
    const suspicion: Suspicion = { raised, lifted, apart: false };
    return suspicion;
  }

  async #quiet(): Promise<boolean> {
    const enough = new AbortController();
    let late = false;
    const patience = this.#options.clock.sleep(patienceMs, enough.signal).then(() => {
      late = true;
    });
    for (;;) {
      const others = this.#options.others();
      if (others.length === 0 || late) break;
      await Promise.race([Promise.race(others), patience]);
    }
    enough.abort();
    return !late || this.#options.others().length === 0;
  }
}
