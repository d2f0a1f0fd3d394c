import type { Clock } from "../src/base/clock.ts";
import { isTapeError } from "../src/model/errors.ts";
import type { StepContext, TapeContext } from "../src/sdk/context.ts";
import type { VirtualTime } from "../testkit/kit/virtual-time.ts";

/** A step with a retry and a time-out, whose first attempts hang or fail. */
export interface TrialOp {
  readonly op: "trial";
  readonly name: string;
  /** Attempts up to this one throw. */
  readonly fails: number;
  /** Attempts up to this one take `hangMs` first. */
  readonly hangs: number;
  readonly hangMs: number;
  readonly timeoutMs: number | undefined;
  readonly attempts: number;
  readonly baseMs: number;
  /** The process that calls it first is wedged for this long: it renews, but none of its bodies returns. */
  readonly wedgeMs: number | undefined;
  /** How long its outage may last; undefined: it may not outlast its attempts. */
  readonly giveUpAfterMs?: number;
  /** The body never returns, in no process. */
  readonly endless?: true;
}

/** One call of a trial's body, as the body itself saw it. Wall times. */
export interface TrialCall {
  readonly run: string;
  readonly trial: TrialOp;
  readonly process: string;
  readonly attempt: number;
  readonly at: number;
  /** Its result; each call returns a value of its own. */
  readonly value: string;
  /** undefined: it has not returned. */
  endedAt: number | undefined;
  /** Its time-out was over when it returned, as its signal shows. */
  late: boolean;
}

/** The workflow of trials has this limit. It is longer than the heartbeat of every TTL that a plan draws. */
export const trialStallMs = 15_000;

/** Everything that the processes of a simulation share about trials. */
export class TrialLedger {
  readonly calls: TrialCall[] = [];
  readonly time: VirtualTime;
  wedged: { readonly process: string; readonly until: number } | undefined;

  constructor(time: VirtualTime) {
    this.time = time;
  }
}

/** Executes trials in one process. */
export class TrialWork {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #ledger: TrialLedger;

  constructor(name: string, clock: Clock, ledger: TrialLedger) {
    this.#name = name;
    this.#clock = clock;
    this.#ledger = ledger;
  }

  run(tape: TapeContext, trial: TrialOp): Promise<unknown> {
    const { attempts, baseMs, timeoutMs, giveUpAfterMs, name } = trial;
    const options = {
      retry: { attempts, base: baseMs, ...(giveUpAfterMs !== undefined && { giveUpAfter: giveUpAfterMs }) },
      ...(timeoutMs !== undefined && { timeout: timeoutMs }),
    };
    const body = (context: StepContext): Promise<string> => this.#call(tape.runId, trial, context);
    return attempts % 2 === 0 ? tape.step(name, body, options) : tape.decide(name, body, options);
  }

  async #call(run: string, trial: TrialOp, context: StepContext): Promise<string> {
    const { calls, time } = this.#ledger;
    const { attempt } = context;
    const value = `${trial.name}, call ${calls.length}`;
    const about = { run, trial, process: this.#name, attempt };
    const call: TrialCall = { ...about, at: time.wall(), value, endedAt: undefined, late: false };
    calls.push(call);
    const { wedgeMs } = trial;
    if (wedgeMs !== undefined) this.#ledger.wedged ??= { process: this.#name, until: time.now + wedgeMs };
    const { wedged } = this.#ledger;
    if (wedged?.process === this.#name) await this.#clock.sleep(wedged.until - time.now);
    if (attempt <= trial.hangs) await this.#clock.sleep(trial.hangMs);
    if (trial.endless) await new Promise(() => {});
    call.endedAt = time.wall();
    call.late = isTapeError(context.abortSignal.reason, "TAPE_TIMEOUT");
    if (attempt <= trial.fails) throw new Error(`${value} failed`);
    return value;
  }
}
