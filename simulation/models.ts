import { hash } from "node:crypto";
import type { Clock } from "../src/base/clock.ts";
import type { TapeContext } from "../src/sdk/context.ts";

/** A call of a model that is paid for, and whose answer is so long that it becomes a blob. */
export interface ModelOp {
  readonly op: "model";
  readonly name: string;
  readonly chars: number;
  readonly usd: number;
  readonly cost: number;
  readonly ms: number;
}

/** One call, as the model itself saw it. */
export interface ModelCall {
  readonly run: string;
  readonly op: ModelOp;
  readonly process: string;
  readonly answer: string;
}

/** An answer that the workflow received, live or by replay. */
export interface ModelAnswer {
  readonly run: string;
  readonly name: string;
  readonly answer: string;
}

/** What all processes of a simulation share about models. */
export interface ModelLedger {
  readonly calls: ModelCall[];
  readonly answers: ModelAnswer[];
}

export const digest = (text: string): string => hash("sha256", text, "hex");

/** Calls models in one process. */
export class ModelWork {
  readonly #process: string;
  readonly #clock: Clock;
  readonly #ledger: ModelLedger;

  constructor(process: string, clock: Clock, ledger: ModelLedger) {
    this.#process = process;
    this.#clock = clock;
    this.#ledger = ledger;
  }

  async run(tape: TapeContext, op: ModelOp): Promise<number> {
    const { name, usd, cost } = op;
    const run = tape.runId;
    const text = await tape.budget.spend({ usd }, async () => {
      const { value } = await tape.decide(name, async () => ({ value: await this.#call(run, op), at: op.ms }));
      return { cost: { usd: cost }, value };
    });
    this.#ledger.answers.push({ run, name, answer: digest(text) });
    return text.length;
  }

  async #call(run: string, op: ModelOp): Promise<string> {
    const text = `${op.name}, call ${this.#ledger.calls.length} `.repeat(op.chars / 10).slice(0, op.chars);
    this.#ledger.calls.push({ run, op, process: this.#process, answer: digest(text) });
    await this.#clock.sleep(op.ms);
    return text;
  }
}
