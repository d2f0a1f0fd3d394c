import type { ErrorCode } from "../model/errors.ts";
import type { Driver } from "./driver.ts";

/** A body that runs for so long may be at work, or may never end: people are told which it is. */
const hungMs = 60_000;

interface Seen {
  readonly at: number;
  told: boolean;
}

/** Looks at drives now and then and names, once each, the bodies and the bare awaits that have not ended for long. */
export class HungWatch {
  readonly #seen = new WeakMap<object, Seen>();

  look(drive: Driver): void {
    if (!drive.hears) return;
    const { waits, journal } = drive;
    const { bodies } = drive.context;
    for (const [body, name] of bodies) this.#watch(drive, body, name);
    // Nothing runs, nothing is written, nothing is waited for: the code awaits something that the run does not know.
    if (bodies.size === 0 && drive.active === 0 && waits.empty && journal.idle) {
      this.#watch(drive, journal, "something that is no operation (an await of its own)");
    } else this.#seen.delete(journal);
  }

  #watch(drive: Driver, what: object, name: string): void {
    const { clock, log, runId } = drive.options;
    const now = clock.mono();
    const seen = this.#seen.get(what);
    if (seen === undefined) this.#seen.set(what, { at: now, told: false });
    else if (!seen.told && now - seen.at >= hungMs) {
      seen.told = true;
      const next = "If it hangs, cancel the run, or give the call inside a time-out; the run holds its slot meanwhile.";
      const code = "TAPE_HUNG" satisfies ErrorCode;
      log("warn", "run.hung", { run: runId, operation: name, forMs: Math.round(now - seen.at), code, next });
    }
  }
}
