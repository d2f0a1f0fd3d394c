import type { ErrorCode } from "../../model/errors.ts";
import type { DriveHandle } from "../core/handle.ts";

/** A body that runs this long may be busy or may never end; an operator has to find out which. */
const hungMs = 60_000;
/** The first body of each name is logged earlier: if code hangs at its first use, its author is still there. */
export const defaultSlowMs = 10_000;
/** How many names are remembered; and at most one early line in this time, for code whose names differ per run. */
const maxNames = 1_000;
const spacingMs = 60_000;

interface Observation {
  readonly at: number;
  logged: boolean;
}

/** Checks drives now and then, and logs each body or bare await that has not ended for a long time, once. */
export class HungWatch {
  readonly #slowMs: number;
  readonly #seen = new WeakMap<object, Observation>();
  readonly #slow = new Set<string>();
  #slowAt = Number.NEGATIVE_INFINITY;

  constructor(slowMs = defaultSlowMs) {
    this.#slowMs = slowMs;
  }

  check(drive: DriveHandle): void {
    if (!drive.acceptsNotes) return;
    const { waits, journal } = drive;
    const { bodies } = drive.context;
    for (const [body, name] of bodies) this.#watch(drive, body, name);
    // Nothing runs, is written or waits: the code awaits something other than an operation.
    if (bodies.size === 0 && drive.activeBodies === 0 && waits.empty && journal.idle) {
      this.#watch(drive, journal, "an await of something other than an operation");
    } else this.#seen.delete(journal);
  }

  #watch(drive: DriveHandle, what: object, name: string): void {
    const now = drive.options.clock.mono();
    const seen = this.#seen.get(what) ?? { at: now, logged: false };
    this.#seen.set(what, seen);
    const forMs = Math.round(now - seen.at);
    if (seen.logged) return;
    if (forMs >= hungMs) {
      seen.logged = true;
      const next =
        "If it hangs, cancel the run, or give the call inside a time-out. Until then the run occupies a slot.";
      this.#report(drive, "run.hung", { operation: name, forMs, next });
    } else if (forMs >= this.#slowMs && !this.#slow.has(name) && now - this.#slowAt >= spacingMs) {
      this.#slowAt = now;
      if (this.#slow.size >= maxNames) this.#slow.clear();
      this.#slow.add(name);
      const next =
        "If it is busy, no action is needed: other bodies of this name are logged only after a minute. If it hangs, give the call inside a time-out.";
      this.#report(drive, "run.slow", { operation: name, forMs, next });
    }
  }

  #report({ options: { log, runId } }: DriveHandle, event: string, about: Readonly<Record<string, unknown>>): void {
    log("warn", event, { run: runId, ...about, code: "TAPE_HUNG" satisfies ErrorCode });
  }
}
