import { isRemote } from "../src/client/remote.ts";
import type { Tape } from "../src/host/tape.ts";
import { isTapeError } from "../src/model/errors.ts";
import type { Clients } from "./clients.ts";
import type { PlannedAction } from "./plan-others.ts";
import type { Stage } from "./stage.ts";
import { sweeperName } from "./sweeper.ts";

/** A manual action as whoever took it knows it. */
export interface OperatorAction {
  readonly who: string;
  readonly what: string;
  /** Wall time at which it was told, and at which it was acknowledged; undefined: it was refused, or nobody knows. */
  readonly asked: number;
  at: number | undefined;
  /** The code of its refusal. */
  refused?: string;
  /** Whoever was asked is connected to a server: a request whose answer gets lost is sent again on the way. */
  remote?: boolean;
}

/** Refusals that people meet where others act beside them, or where there is nothing to act on. */
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
  "TAPE_BAD_FORK_POINT", // it is being undone since the look at the plan
  "TAPE_FORK_REPEATS", // it happened between the look at the plan and the word
]);

const pauseMs = 3_000;

/** Does by hand what the plan says, and keeps a list of it. */
export class SimulatedOperator {
  readonly deeds: OperatorAction[] = [];
  readonly faults: string[] = [];
  readonly #stage: Stage;
  readonly #clients: Clients;

  constructor(stage: Stage, clients: Clients) {
    this.#stage = stage;
    this.#clients = clients;
  }

  everything(): Promise<unknown> {
    return Promise.all(this.#stage.plan.deeds.map((deed, k) => this.#do(deed, `operator ${k}`)));
  }

  /** Tells one deed, and remembers what became of it. Also used by those who settle doubts. */
  async tell(who: string, what: string, work: (tape: Tape) => Promise<unknown>): Promise<boolean> {
    const deed: OperatorAction = { who, what, asked: this.#stage.time.wall(), at: undefined };
    this.deeds.push(deed);
    const told = await this.#clients.ask((tape) => {
      deed.remote = isRemote(tape.store);
      return work(tape);
    });
    if (told === undefined) return false;
    if ("value" in told) {
      deed.at = this.#stage.time.wall();
      return true;
    }
    const { error } = told;
    if (isTapeError(error)) deed.refused = error.code;
    if (!this.#clients.isTransient(error) && !(isTapeError(error) && fine.has(error.code))) {
      this.faults.push(`${who} was told about "${what}": ${String(error)}`);
    }
    return false;
  }

  async #isStuck(run: string): Promise<boolean> {
    const { runs } = await this.#stage.lookout.look();
    return runs.some(({ id, status }) => id === run && status === "STUCK");
  }

  async #do({ atMs, what, run }: PlannedAction, by: string): Promise<void> {
    const { time } = this.#stage;
    await time.sleep(atMs);
    const act = { by, reason: "the plan says so" };
    switch (what) {
      case "take over":
        await this.tell(by, what, (tape) => tape.leases.preempt({ run }, act));
        return;
      case "take over if stale":
        await this.tell(by, what, (tape) => tape.leases.preempt({ run }, { ...act, onlyStale: true }));
        return;
      case "redrive":
        for (let tries = 0; tries < 20 && !(await this.#isStuck(run)); tries++) await time.sleep(1_000);
        await this.tell(by, what, (tape) => tape.redrive(run, act));
        return;
      case "fork":
        await this.tell(by, what, async (tape) => {
          const { at, happened, undone } = await tape.forkPlan(run);
          const again = happened.map(({ pos }) => pos);
          const keepCompensated = undone.map(({ pos }) => pos);
          await tape.fork(run, { ...act, at, id: `${run} as ${by}`, again, keepCompensated });
        });
        return;
      case "fork unnamed":
        for (let tries = 0; tries < 8; tries++) {
          const who = `${by}, try ${tries}`;
          const done = await this.tell(who, what, async (tape) => {
            const { happened } = await tape.forkPlan(run);
            const again = happened.map(({ pos }) => pos);
            await tape.fork(run, { by: who, reason: act.reason, id: `${run} as ${who}`, again });
          });
          if (done || this.deeds.some((one) => one.who === who && fine.has(one.refused ?? ""))) return;
          await time.sleep(1_000);
        }
        return;
      case "take the singleton":
        await this.tell(by, what, (tape) => tape.leases.preempt(sweeperName, act));
        return;
      case "pause the singleton":
        await this.tell(by, what, (tape) => tape.leases.pause(sweeperName, act));
        await time.sleep(pauseMs);
        // Whoever paused it is responsible for its going on.
        await this.#clients.insist((tape) => tape.leases.resume(sweeperName, { ...act, by: `${by} again` }));
    }
  }
}
