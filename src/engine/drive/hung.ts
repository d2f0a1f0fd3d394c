import type { ErrorCode } from "../../model/errors.ts";
import type { DriveHandle } from "../core/handle.ts";

/** A body that runs for so long may be at work, or may never end: a person has to look which it is. */
const hungMs = 60_000;
/** The first of each name is named earlier: where code hangs at its first try, its author is still there. */
export const defaultSlowMs = 10_000;
/** Names that were named early; and at most one such line in this time, for code whose names differ from run to run. */
const mostNames = 1_000;
const spacingMs = 60_000;

interface Seen {
  readonly at: number;
  named: boolean;
}

/** Looks at drives now and then and names, once each, the bodies and the bare awaits that have not ended for long. */
export class HungWatch {
  readonly #slowMs: number;
  readonly #seen = new WeakMap<object, Seen>();
  readonly #slow = new Set<string>();
  #slowAt = Number.NEGATIVE_INFINITY;

  constructor(slowMs = defaultSlowMs) {
    this.#slowMs = slowMs;
  }

  look(drive: DriveHandle): void {
    if (!drive.acceptsNotes) return;
    const { waits, journal } = drive;
    const { bodies } = drive.context;
    for (const [body, name] of bodies) this.#watch(drive, body, name);
    // Nothing runs, nothing is written, nothing is waited for: the code awaits something that the run does not know.
    if (bodies.size === 0 && drive.activeBodies === 0 && waits.empty && journal.idle) {
      this.#watch(drive, journal, "something that is no operation (an await of its own)");
    } else this.#seen.delete(journal);
  }

  #watch(drive: DriveHandle, what: object, name: string): void {
    const now = drive.options.clock.mono();
    const seen = this.#seen.get(what) ?? { at: now, named: false };
    this.#seen.set(what, seen);
    const forMs = Math.round(now - seen.at);
    if (seen.named) return;
    if (forMs >= hungMs) {
      seen.named = true;
      const next = "If it hangs, cancel the run, or give the call inside a time-out; the run holds its slot meanwhile.";
      this.#report(drive, "run.hung", { operation: name, forMs, next });
    } else if (forMs >= this.#slowMs && !this.#slow.has(name) && now - this.#slowAt >= spacingMs) {
      this.#slowAt = now;
      if (this.#slow.size >= mostNames) this.#slow.clear();
      this.#slow.add(name);
      const next =
        "If it is at work, all is well: no other of this name is named before a minute. If it hangs, give the call inside a time-out.";
      this.#report(drive, "run.slow", { operation: name, forMs, next });
    }
  }

  #report({ options: { log, runId } }: DriveHandle, event: string, about: Readonly<Record<string, unknown>>): void {
    log("warn", event, { run: runId, ...about, code: "TAPE_HUNG" satisfies ErrorCode });
  }
}
