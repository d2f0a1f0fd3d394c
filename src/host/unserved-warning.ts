import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { ServedWorkflows } from "../engine/served.ts";
import type { Store } from "../store/contract/store.ts";

/** Whoever starts a thousand runs of a workflow that nobody has needs to hear it once. */
const againMs = 60_000;

/** Warns of runs that this app starts and no process is known to drive. Behind the start, which it never delays. */
export class UnservedWarning {
  readonly #deps: { readonly tenant: string; readonly clock: Clock; readonly log: Log };
  readonly #served: ServedWorkflows;
  readonly #here: () => readonly string[];
  readonly #warnedAt = new Map<string, number>();

  constructor(
    deps: { readonly store: Store; readonly tenant: string; readonly clock: Clock; readonly log: Log },
    here: () => readonly string[],
  ) {
    this.#deps = deps;
    this.#served = new ServedWorkflows(deps.store, deps.clock);
    this.#here = here;
  }

  warn(workflow: string, run: string): void {
    const { tenant, clock, log } = this.#deps;
    const before = this.#warnedAt.get(workflow);
    if (before !== undefined && clock.mono() - before < againMs) return;
    this.#warnedAt.set(workflow, clock.mono());
    const told = this.#served.hint(tenant, workflow, this.#here()).then((hint) => {
      if (hint !== undefined) log("warn", "run.unserved", { run, workflow, code: "TAPE_NO_WORKER", error: hint });
    });
    told.catch(() => {}); // a log of the user's that throws
  }
}
