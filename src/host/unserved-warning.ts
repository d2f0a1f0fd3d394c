import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { ServedWorkflows } from "../engine/served.ts";
import type { Store } from "../store/contract/store.ts";

/** A caller that starts a thousand runs of an unserved workflow needs one warning, not a thousand. */
const repeatAfterMs = 60_000;

/** Warns of runs that this app starts and no known process drives. The check follows the start and never delays it. */
export class UnservedWarning {
  readonly #deps: { readonly tenant: string; readonly clock: Clock; readonly log: Log };
  readonly #served: ServedWorkflows;
  readonly #servedHere: () => readonly string[];
  readonly #warnedAt = new Map<string, number>();

  constructor(
    deps: { readonly store: Store; readonly tenant: string; readonly clock: Clock; readonly log: Log },
    servedHere: () => readonly string[],
  ) {
    this.#deps = deps;
    this.#served = new ServedWorkflows(deps.store, deps.clock);
    this.#servedHere = servedHere;
  }

  warn(workflow: string, run: string): void {
    const { tenant, clock, log } = this.#deps;
    const before = this.#warnedAt.get(workflow);
    if (before !== undefined && clock.mono() - before < repeatAfterMs) return;
    this.#warnedAt.set(workflow, clock.mono());
    const logged = this.#served.hint(tenant, workflow, this.#servedHere()).then((hint) => {
      if (hint !== undefined) log("warn", "run.unserved", { run, workflow, code: "TAPE_NO_WORKER", error: hint });
    });
    logged.catch(() => {}); // the user's log may throw
  }
}
