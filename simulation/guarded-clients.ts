import { isTapeError } from "../src/model/errors.ts";
import { guardedName } from "./guarded-gate.ts";
import type { GuardedSignal } from "./plan-visitors.ts";
import { type Stage, tenant } from "./stage.ts";

/** A signal to a guarded gate, and its result. */
export interface GuardedCall extends GuardedSignal {
  /** "sent", or the code of the refusal. */
  readonly result: string;
}

/** Sends signals to a guarded gate, from approvers and others. */
export class GuardedClients {
  readonly signals: GuardedCall[] = [];
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  run(): Promise<unknown> {
    return Promise.all(this.#stage.plan.guarded.map((signal) => this.#send(signal)));
  }

  async #send(signal: GuardedSignal): Promise<void> {
    const { time, shared } = this.#stage;
    const { run, atMs, by, value, key } = signal;
    await time.sleep(atMs);
    const result = await shared.store.intake
      .signal(tenant, run, { name: guardedName, value, key, ...(by === undefined ? {} : { by }) })
      .then(
        () => "sent",
        (error: unknown) => (isTapeError(error) ? error.code : String(error)),
      );
    this.signals.push({ ...signal, result });
  }
}
