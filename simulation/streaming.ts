import type { Clock } from "../src/base/clock.ts";
import type { StepContext, TapeContext } from "../src/sdk/context.ts";
import { stream } from "../src/sdk/stream.ts";

/** A body that streams: its chunks, with pauses between them. */
export interface StreamOp {
  readonly op: "stream";
  readonly name: string;
  readonly chunks: number;
  readonly gapMs: number;
  /** A decision instead of a step. */
  readonly decides: boolean;
}

/** One call of such a body, as the body itself saw it. */
export interface StreamCall {
  readonly op: StreamOp;
  readonly process: string;
  /** Its result, and the beginning of each of its chunks. */
  readonly id: string;
  readonly written: string[];
}

export const tokens = stream<string>("tokens");

/** Executes streaming bodies in one process. */
export class StreamWork {
  readonly #process: string;
  readonly #clock: Clock;
  readonly #calls: StreamCall[];

  constructor(process: string, clock: Clock, calls: StreamCall[]) {
    this.#process = process;
    this.#clock = clock;
    this.#calls = calls;
  }

  run(tape: TapeContext, op: StreamOp): Promise<string> {
    const body = (context: StepContext): Promise<string> => this.#call(op, context);
    return op.decides ? tape.decide(op.name, body) : tape.step(op.name, body);
  }

  async #call(op: StreamOp, context: StepContext): Promise<string> {
    const id = `${op.name}/${this.#calls.length}`;
    const call: StreamCall = { op, process: this.#process, id, written: [] };
    this.#calls.push(call);
    const out = context.stream(tokens);
    for (let k = 0; k < op.chunks; k++) {
      if (op.gapMs > 0) await this.#clock.sleep(op.gapMs);
      const text = `${id} ${k}`;
      await out.write(text);
      call.written.push(text);
    }
    return id;
  }
}
