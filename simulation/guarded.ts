import { isTapeError } from "../src/model/errors.ts";
import { guardedName } from "./guarded-gate.ts";
import type { GuardedSignal } from "./plan-visitors.ts";
import { type Stage, tenant } from "./stage.ts";

/** What somebody was told about a signal to a guarded gate. */
export interface GuardedStory extends GuardedSignal {
  /** "sent", or the code of the refusal. */
  readonly told: string;
}

/** Those who signal a guarded gate, whether they may or not. */
export class GuardedClients {
  readonly stories: GuardedStory[] = [];
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  everything(): Promise<unknown> {
    return Promise.all(this.#stage.plan.guarded.map((signal) => this.#send(signal)));
  }

  async #send(signal: GuardedSignal): Promise<void> {
    const { time, shared } = this.#stage;
    const { run, atMs, by, value, key } = signal;
    await time.sleep(atMs);
    const told = await shared.store.intake
      .signal(tenant, run, { name: guardedName, value, key, ...(by === undefined ? {} : { by }) })
      .then(
        () => "sent",
        (error: unknown) => (isTapeError(error) ? error.code : String(error)),
      );
    this.stories.push({ ...signal, told });
  }
}
