import { systemClock } from "../../src/base/clock.ts";
import type { Random } from "../../src/base/random.ts";
import type { Tape } from "../../src/host/tape.ts";
import { isTapeError } from "../../src/model/errors.ts";
import type { Started } from "./judge.ts";
import { budgets, type Flow, yes } from "./program.ts";
import { persistently } from "./store-calls.ts";

/** What whoever starts runs has done: kept by somebody whom no fault ends. */
export class Book {
  readonly asked = new Map<string, Started>();
  readonly acked = new Set<string>();
  readonly answered = new Set<string>();

  note(entry: Entry): void {
    if (entry.of === "asked") this.asked.set(entry.run.id, entry.run);
    else this[entry.of].add(entry.id);
  }

  /** Every run whose start was acknowledged. */
  get started(): Started[] {
    return [...this.asked.values()].filter(({ id }) => this.acked.has(id));
  }

  /** What a loader left behind when it was killed: asked and not acknowledged, or not answered yet. */
  get open(): Started[] {
    return [...this.asked.values()].filter(
      ({ id, said }) => !this.acked.has(id) || (said !== undefined && !this.answered.has(id)),
    );
  }
}

export type Entry =
  | { readonly of: "asked"; readonly run: Started }
  | { readonly of: "acked" | "answered"; readonly id: string };

export interface LoadOptions {
  readonly client: Tape;
  readonly flows: Readonly<Record<string, Flow>>;
  readonly random: Random;
  /** Live runs at a time: enough that every process always has some, few enough that all end soon after the faults. */
  readonly most: number;
  /** Distinguishes the ids of one loader from those of the one before. */
  readonly incarnation: number;
  readonly note: (entry: Entry) => void;
}

const liveStates = ["RUNNABLE", "RUNNING", "WAITING", "ENDING", "COMPENSATING"] as const;

export const liveRuns = async (client: Tape): Promise<number> =>
  (await client.runs.list({ status: liveStates, limit: 500 })).length;

/** Starts runs of every flow while the faults last, and answers the gates that ask. */
export class Load {
  readonly #options: LoadOptions;
  readonly #answers = new Set<Promise<void>>();
  #failed: unknown;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** `open`: what a loader before left behind; a start and an answer may be repeated. */
  async go(signal: AbortSignal, open: readonly Started[] = []): Promise<void> {
    const { client, flows, most, incarnation, random } = this.#options;
    for (const run of open) await this.#start(run);
    for (let round = 1; !signal.aborted; round++) {
      if ((await persistently(() => liveRuns(client))) < most) {
        for (const flow of Object.keys(flows)) {
          const id = `${flow}-${incarnation}.${round}`;
          const said = flow === "asked" ? { said: `yes to ${id}` } : {};
          await this.#start({ id, flow, ms: 100 + random.int(1_500), ...said });
        }
      }
      await systemClock.sleep(200, signal);
    }
    await Promise.all(this.#answers);
    if (this.#failed !== undefined) throw this.#failed;
  }

  async #start(run: Started): Promise<void> {
    const { client, flows, note } = this.#options;
    const { id, flow, ms, said } = run;
    const budget = budgets[flow];
    note({ of: "asked", run });
    const options = { id, ...(budget === undefined ? {} : { budget }) };
    await persistently(() => client.start(flows[flow]!, { run: id, ms }, options));
    note({ of: "acked", id });
    if (said !== undefined) this.#answer(id, said);
  }

  /** Before the gate opens, while it stands open, and sometimes twice: one answer counts. */
  #answer(id: string, said: string): void {
    const { client, random, note } = this.#options;
    const times = 1 + random.int(2);
    const answering = async (): Promise<void> => {
      for (let k = 0; k < times; k++) {
        await systemClock.sleep(random.int(600));
        await answer(client, id, said);
        note({ of: "answered", id });
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

/** A run that has ended has been answered before; one that is gone although its start was acknowledged, the judge finds. */
async function answer(client: Tape, id: string, said: string): Promise<void> {
  await persistently(() => client.signal(id, yes, said, { key: id })).catch((error: unknown) => {
    if (!isTapeError(error, "TAPE_RUN_ENDED") && !isTapeError(error, "TAPE_RUN_NOT_FOUND")) throw error;
  });
}

/** After commits were lost: answers again whoever still waits. How many they were. */
export async function remind(client: Tape, started: readonly Started[]): Promise<number> {
  let waiting = 0;
  for (const { id, said } of started) {
    if (said === undefined) continue;
    const run = await persistently(() => client.runs.get(id)).catch(() => undefined);
    if (run === undefined || run.endedAt !== null) continue;
    waiting++;
    await answer(client, id, said);
  }
  return waiting;
}
