import type { PlannedCallerStart } from "./plan-transactions.ts";
import type { Program } from "./program.ts";
import { type Stage, tenant } from "./stage.ts";

const program: Program = { ops: [{ op: "step", fails: false }], attempts: 1 };

/** A caller that starts runs in transactions of its own, and dies right after some of them, as it were. */
export class CallerClients {
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  run(): Promise<unknown> {
    return Promise.all(this.#stage.plan.callers.map((start) => this.#start(start)));
  }

  async #start({ id, atMs, commits }: PlannedCallerStart): Promise<void> {
    const { time, shared } = this.#stage;
    await time.sleep(atMs);
    while (shared.away) await time.sleep(500);
    await shared.startInTransaction(tenant, { id, workflow: "once", input: program }, commits);
  }
}
