import type { Log } from "../../base/log.ts";
import { TapeError } from "../../model/errors.ts";
import { ignoreRejection } from "../replay/stored-value.ts";

/**
 * What a workflow left behind when its function ended: operations that it did not await, and calls that come afterwards.
 * An effect is finished all the same; anything else is lost with the run, and that is said.
 */
export class Latecomers {
  readonly #run: string;
  readonly #log: Log;
  readonly #waiting: (() => void)[] = [];
  #ended = false;

  constructor(run: string, log: Log) {
    this.#run = run;
    this.#log = log;
  }

  /** `expected`: a race was won, or the run failed; then it is usual that something is left. */
  leftOpen(open: readonly string[], expected: boolean): void {
    if (open.length === 0) return;
    const error = `TAPE_RUN_ENDED: the workflow ended without awaiting ${open.join(", ")}: what comes of that is lost`;
    const next = "Await it, or hand it to tape.race or tape.any if it may lose.";
    this.#log(expected ? "debug" : "warn", "run.not_awaited", { run: this.#run, open, error, next });
  }

  /** Refused once the run has ended. If it is driven again instead, nobody hears of it: that drive asks for it in time. */
  ask(what: string, expected: boolean): Promise<never> {
    const late = this.#error(what);
    const { message: error } = late;
    const next = "Await everything that the workflow asks for before it returns.";
    this.#log(expected ? "debug" : "warn", "run.asked_too_late", { run: this.#run, operation: what, error, next });
    if (this.#ended) return ignoreRejection(Promise.reject(late));
    return ignoreRejection(new Promise<never>((_, reject) => this.#waiting.push(() => reject(late))));
  }

  /** The run has ended. */
  end(): void {
    this.#ended = true;
    for (const refuse of this.#waiting.splice(0)) refuse();
  }

  #error(what: string): TapeError {
    const message = `${what} was asked for after the workflow of run ${this.#run} had ended: nothing of it was done`;
    return new TapeError("TAPE_RUN_ENDED", message, { run: this.#run, operation: what });
  }
}
