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

/**
 * Runs that were held by a process that vanished. They are driven one after the other until each has moved on, so that
 * one which kills its process takes no other with it twice. One that was recovered before and has not moved on since is
 * driven alone, nothing else beside it: only a crash then counts. A neighbour's crash never sticks an innocent run.
 */
export class Suspects {
  readonly #options: SuspectsOptions;
  #line: Promise<void> = Promise.resolve();
  #alone = 0;

  constructor(options: SuspectsOptions) {
    this.#options = options;
  }

  /** A suspect is being driven alone, or about to be: nothing else may begin. */
  get alone(): boolean {
    return this.#alone > 0;
  }

  /** Waits for its turn. */
  async next(): Promise<Suspicion> {
    const before = this.#line;
    let leave = (): void => {};
    this.#line = new Promise((resolve) => {
      leave = resolve;
    });
    await before;
    return this.#suspicion(leave);
  }

  #suspicion(leave: () => void): Suspicion {
    let company = (): void => {};
    const lifted = (): void => {
      company();
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
      this.#alone++;
      let counted = true;
      company = () => {
        if (!counted) return;
        counted = false;
        this.#alone--;
        this.#options.onCompany();
      };
      if (!(await this.#quiet())) {
        company();
        return false;
      }
      await drive.journal.writeNow([{ kind: "run.suspected", data: { crashes: count } }]);
      this.#options.clock.after(aloneMs, () => {
        if (!counted || drive.over) return;
        company(); // a crash from now on may be a neighbour's: it must not count
        drive.journal.write([{ kind: "run.suspected", data: { crashes: 0 } }], leave, () => {});
      });
      return false;
    };
    return { raised, lifted };
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
