import { systemClock } from "../../src/base/clock.ts";
import type { Random } from "../../src/base/random.ts";
import type { Tape } from "../../src/host/tape.ts";
import { isTapeError } from "../../src/model/errors.ts";
import type { StartedRun } from "./judge.ts";
import { budgets, type Flow, yes } from "./program.ts";
import { persistently } from "./store-calls.ts";

/** Starts and answers of the loader. Kept by a process that no fault ends. */
export class LoadLog {
  readonly requested = new Map<string, StartedRun>();
  readonly acknowledged = new Set<string>();
  readonly answered = new Set<string>();

  note(entry: Entry): void {
    if (entry.type === "requested") this.requested.set(entry.run.id, entry.run);
    else this[entry.type].add(entry.id);
  }

  /** Every run whose start was acknowledged. */
  get started(): StartedRun[] {
    return [...this.requested.values()].filter(({ id }) => this.acknowledged.has(id));
  }

  /** Unfinished work of a killed loader: starts without acknowledgement, and gates without an answer. */
  get open(): StartedRun[] {
    return [...this.requested.values()].filter(
      ({ id, answer }) => !this.acknowledged.has(id) || (answer !== undefined && !this.answered.has(id)),
    );
  }
}

export type Entry =
  | { readonly type: "requested"; readonly run: StartedRun }
  | { readonly type: "acknowledged" | "answered"; readonly id: string };

export interface LoadOptions {
  readonly client: Tape;
  readonly flows: Readonly<Record<string, Flow>>;
  readonly random: Random;
  /** Live runs at a time: enough that every process always has some, few enough that all end soon after the faults. */
  readonly maxLive: number;
  /** Distinguishes the ids of one loader from those of the previous one. */
  readonly incarnation: number;
  readonly note: (entry: Entry) => void;
}

const liveStates = ["RUNNABLE", "RUNNING", "WAITING", "ENDING", "COMPENSATING"] as const;

export const liveRuns = async (client: Tape): Promise<number> =>
  (await client.runs.list({ status: liveStates, limit: 500 })).length;

/** Starts runs of every flow while faults are injected, and answers the gates that wait for an answer. */
export class Load {
  readonly #options: LoadOptions;
  readonly #answers = new Set<Promise<void>>();
  #failed: unknown;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** `open`: unfinished work of the previous loader; a start and an answer may be repeated. */
  async run(signal: AbortSignal, open: readonly StartedRun[] = []): Promise<void> {
    const { client, flows, maxLive, incarnation, random } = this.#options;
    for (const run of open) await this.#start(run);
    for (let round = 1; !signal.aborted; round++) {
      if ((await persistently(() => liveRuns(client))) < maxLive) {
        for (const flow of Object.keys(flows)) {
          const id = `${flow}-${incarnation}.${round}`;
          const answer = flow === "approval" ? { answer: `yes to ${id}` } : {};
          await this.#start({ id, flow, ms: 100 + random.int(1_500), ...answer });
        }
      }
      await systemClock.sleep(200, signal);
    }
    await Promise.all(this.#answers);
    if (this.#failed !== undefined) throw this.#failed;
  }

  async #start(run: StartedRun): Promise<void> {
    const { client, flows, note } = this.#options;
    const { id, flow, ms, answer } = run;
    const budget = budgets[flow];
    note({ type: "requested", run });
    const options = { id, ...(budget === undefined ? {} : { budget }) };
    await persistently(() => client.start(flows[flow]!, { run: id, ms }, options));
    note({ type: "acknowledged", id });
    if (answer !== undefined) this.#answer(id, answer);
  }

  /** Answers before the gate opens or while it is open, and sometimes twice: the gate takes one answer. */
  #answer(id: string, answer: string): void {
    const { client, random, note } = this.#options;
    const times = 1 + random.int(2);
    const answering = async (): Promise<void> => {
      for (let k = 0; k < times; k++) {
        await systemClock.sleep(random.int(600));
        await signalAnswer(client, id, answer);
        note({ type: "answered", id });
      }
    };
    const all = answering()
      .catch((error: unknown) => {
        this.#failed ??= error;
      })
      .finally(() => this.#answers.delete(all));
    this.#answers.add(all);
  }
}

/** Ignores a run that has ended, which was answered before, and one that is lost, which the judge finds. */
export async function signalAnswer(client: Tape, id: string, answer: string): Promise<void> {
  await persistently(() => client.signal(id, yes, answer, { key: id })).catch((error: unknown) => {
    if (!isTapeError(error, "TAPE_RUN_ENDED") && !isTapeError(error, "TAPE_RUN_NOT_FOUND")) throw error;
  });
}

/** Answers every run that still waits, after commits were lost. Returns their number. */
export async function resendSignals(client: Tape, started: readonly StartedRun[]): Promise<number> {
  let waiting = 0;
  for (const { id, answer } of started) {
    if (answer === undefined) continue;
    const run = await persistently(() => client.runs.get(id)).catch(() => undefined);
    if (run === undefined || run.endedAt !== null) continue;
    waiting++;
    await signalAnswer(client, id, answer);
  }
  return waiting;
}
