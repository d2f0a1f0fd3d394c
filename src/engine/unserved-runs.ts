import type { Clock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import type { Log } from "../base/log.ts";
import type { BuildClaim } from "../model/build.ts";
import { errorTable } from "../model/errors.ts";
import type { Store } from "../store/contract/store.ts";

/** Another process may be about to claim them, so only runs that wait longer than this are reported. */
const unservedAfterMs = 10_000;
/** How often unserved runs are reported. */
const reportEveryMs = 60_000;

/** Reports runs that no process claims, at most once a minute. */
export class UnservedRuns {
  readonly #deps: { readonly store: Store; readonly tenant: string; readonly clock: Clock; readonly log: Log };
  #nextReportAt = Number.NEGATIVE_INFINITY;

  constructor(deps: { readonly store: Store; readonly tenant: string; readonly clock: Clock; readonly log: Log }) {
    this.#deps = deps;
  }

  /** Of other workflows than these, and of other builds. Returns how many it has logged. */
  async report(workflows: readonly string[], claim: BuildClaim | undefined): Promise<number> {
    const { store, tenant, clock, log } = this.#deps;
    if (clock.mono() < this.#nextReportAt) return 0;
    this.#nextReportAt = clock.mono() + unservedAfterMs;
    const found = await store.read.unserved(workflows, unservedAfterMs, tenant, claim);
    if (found.length > 0) this.#nextReportAt = clock.mono() + reportEveryMs;
    for (const { workflow, build, runs, lagMs } of found) {
      const code = build === undefined ? "TAPE_NO_WORKER" : "TAPE_RUN_PINNED";
      const missing = build === undefined ? `workflow ${workflow}` : `workflow ${workflow} of build ${build}`;
      const about = {
        nextReactor: "recovery",
        workflow,
        ...defined({ build }),
        runs,
        lagMs: Math.round(lagMs),
        missing,
      };
      const { next } = errorTable[code];
      log("warn", "reactor.no_handler", { ...about, code, next: `${next} Or cancel the runs.` });
    }
    return found.reduce((sum, { runs }) => sum + runs, 0);
  }
}
