import type { Log } from "../../base/log.ts";
import { TapeError } from "../../model/errors.ts";
import { ignoreRejection } from "../replay/stored-value.ts";

/**
 * Operations that a workflow did not await before its function ended, or requests after that. An effect is finished all
 * the same; the result of any other operation is lost, and that is logged.
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

  /** `expected`: a race was won or the run failed, so open operations are normal. */
  leftOpen(open: readonly string[], expected: boolean): void {
    if (open.length === 0) return;
    const error = `TAPE_RUN_ENDED: the workflow ended without awaiting ${open.join(", ")}: the result is lost`;
    const next = "Await it, or pass it to tape.race or tape.any if it may lose.";
    this.#log(expected ? "debug" : "warn", "run.not_awaited", { run: this.#run, open, error, next });
  }

  /** Rejects once the run has ended. If the run is driven again instead, the promise stays pending. */
  reject(what: string, expected: boolean): Promise<never> {
    const late = this.#error(what);
    const { message: error } = late;
    const next = "Await every operation before the workflow returns.";
    this.#log(expected ? "debug" : "warn", "run.operation_too_late", { run: this.#run, operation: what, error, next });
    if (this.#ended) return ignoreRejection(Promise.reject(late));
    return ignoreRejection(new Promise<never>((_, reject) => this.#waiting.push(() => reject(late))));
  }

  /** The run has ended: rejects the pending requests. */
  end(): void {
    this.#ended = true;
    for (const refuse of this.#waiting.splice(0)) refuse();
  }

  #error(what: string): TapeError {
    const message = `${what} was requested after the workflow of run ${this.#run} had ended and was not executed`;
    return new TapeError("TAPE_RUN_ENDED", message, { run: this.#run, operation: what });
  }
}
