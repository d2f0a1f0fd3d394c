import { isRemote } from "../src/client/remote.ts";
import type { Tape } from "../src/host/tape.ts";
import { isTapeError } from "../src/model/errors.ts";
import type { Clients } from "./clients.ts";
import type { PlannedAction } from "./plan-actions.ts";
import type { Stage } from "./stage.ts";
import { sweeperName } from "./sweeper.ts";

/** An operator action as its operator knows it. */
export interface OperatorAction {
  readonly who: string;
  readonly what: string;
  /**
   * Wall time of the request and of the acknowledgement. `at` is undefined if it was refused or its outcome is unknown.
   */
  readonly requestedAt: number;
  at: number | undefined;
  /** The code of its refusal. */
  refused?: string;
  /** The called replica is connected to a server: a request whose response is lost is repeated on the way. */
  remote?: boolean;
}

/** Refusals to expect where other operators act too, or where nothing can be acted on. */
const fine: ReadonlySet<string> = new Set([
  "TAPE_RUN_NOT_FOUND",
  "TAPE_RUN_ENDED",
  "TAPE_NOT_FOUND",
  "TAPE_LEASE_NOT_FOUND",
  "TAPE_LEASE_HELD",
  "TAPE_LEASE_LOST",
  "TAPE_LEASE_PAUSED",
  "TAPE_FENCED",
  "TAPE_NOT_HEAD",
  "TAPE_NOTES_PENDING",
  "TAPE_ILLEGAL_TRANSITION",
  "TAPE_BAD_INPUT",
  "TAPE_BAD_FORK_POINT", // a compensation started since the fork plan was read
  "TAPE_FORK_REPEATS", // an effect happened since the fork plan was read
]);

const pauseMs = 3_000;

/** Performs the planned operator actions and records them. */
export class SimulatedOperator {
  readonly actions: OperatorAction[] = [];
  readonly faults: string[] = [];
  readonly #stage: Stage;
  readonly #clients: Clients;

  constructor(stage: Stage, clients: Clients) {
    this.#stage = stage;
    this.#clients = clients;
  }

  run(): Promise<unknown> {
    return Promise.all(this.#stage.plan.actions.map((action, k) => this.#perform(action, `operator ${k}`)));
  }

  /** Performs one action and records its result. The resolver uses it too. */
  async perform(who: string, what: string, work: (tape: Tape) => Promise<unknown>): Promise<boolean> {
    const action: OperatorAction = { who, what, requestedAt: this.#stage.time.wall(), at: undefined };
    this.actions.push(action);
    const response = await this.#clients.call((tape) => {
      action.remote = isRemote(tape.store);
      return work(tape);
    });
    if (response === undefined) return false;
    if ("value" in response) {
      action.at = this.#stage.time.wall();
      return true;
    }
    const { error } = response;
    if (isTapeError(error)) action.refused = error.code;
    if (!this.#clients.isTransient(error) && !(isTapeError(error) && fine.has(error.code))) {
      this.faults.push(`${who} got for "${what}": ${String(error)}`);
    }
    return false;
  }

  async #isStuck(run: string): Promise<boolean> {
    const { runs } = await this.#stage.orphanWatch.read();
    return runs.some(({ id, status }) => id === run && status === "STUCK");
  }

  async #perform({ atMs, what, run }: PlannedAction, by: string): Promise<void> {
    const { time } = this.#stage;
    await time.sleep(atMs);
    const audit = { by, reason: "the plan says so" };
    switch (what) {
      case "take over":
        await this.perform(by, what, (tape) => tape.leases.preempt({ run }, audit));
        return;
      case "take over if stale":
        await this.perform(by, what, (tape) => tape.leases.preempt({ run }, { ...audit, onlyStale: true }));
        return;
      case "redrive":
        for (let tries = 0; tries < 20 && !(await this.#isStuck(run)); tries++) await time.sleep(1_000);
        await this.perform(by, what, (tape) => tape.redrive(run, audit));
        return;
      case "fork":
        await this.perform(by, what, async (tape) => {
          const { at, alreadyHappened, compensated } = await tape.forkPlan(run);
          const repeat = alreadyHappened.map(({ pos }) => pos);
          const keepCompensated = compensated.map(({ pos }) => pos);
          await tape.fork(run, { ...audit, at, id: `${run} as ${by}`, repeat, keepCompensated });
        });
        return;
      case "fork unnamed":
        for (let tries = 0; tries < 8; tries++) {
          const who = `${by}, try ${tries}`;
          const done = await this.perform(who, what, async (tape) => {
            const { alreadyHappened } = await tape.forkPlan(run);
            const repeat = alreadyHappened.map(({ pos }) => pos);
            await tape.fork(run, { by: who, reason: audit.reason, id: `${run} as ${who}`, repeat });
          });
          if (done || this.actions.some((one) => one.who === who && fine.has(one.refused ?? ""))) return;
          await time.sleep(1_000);
        }
        return;
      case "take the singleton":
        await this.perform(by, what, (tape) => tape.leases.preempt(sweeperName, audit));
        return;
      case "pause the singleton":
        await this.perform(by, what, (tape) => tape.leases.pause(sweeperName, audit));
        await time.sleep(pauseMs);
        // The operator who paused it also resumes it.
        await this.#clients.retry((tape) => tape.leases.resume(sweeperName, { ...audit, by: `${by} again` }));
    }
  }
}
