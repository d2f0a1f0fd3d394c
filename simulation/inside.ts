import type { Clock } from "../src/base/clock.ts";
import type { TapeContext } from "../src/sdk/context.ts";

/** Work in a slot of a queue; the ledger has its beginning and its end. */
export interface InsideOp {
  readonly op: "inside";
  readonly queue: string;
  readonly key: string;
  /** The start that brought this input. */
  readonly mark: string;
  readonly ms: number;
}

/** A run goes inside or comes out, as the body itself notes it, not as a journal says. */
export interface InsideEvent {
  readonly what: "enter" | "leave";
  readonly run: string;
  readonly queue: string;
  readonly key: string;
  readonly mark: string;
  /** The token of the term in which the body was called. */
  readonly token: bigint;
  /** Wall time. */
  readonly at: number;
}

/** The bodies of one process. A process that dies inside never comes out. */
export class InsideWork {
  readonly #clock: Clock;
  readonly #time: Pick<Clock, "wall">;
  readonly #events: InsideEvent[];

  /** `time` is right, whatever the clock of the process. */
  constructor(clock: Clock, time: Pick<Clock, "wall">, events: InsideEvent[]) {
    this.#clock = clock;
    this.#time = time;
    this.#events = events;
  }

  stay(tape: TapeContext, { queue, key, mark, ms }: InsideOp): Promise<string> {
    const about = { run: tape.runId, queue, key, mark, token: tape.fence.token };
    return tape.step("inside", async () => {
      this.#events.push({ what: "enter", ...about, at: this.#time.wall() });
      await this.#clock.sleep(ms);
      this.#events.push({ what: "leave", ...about, at: this.#time.wall() });
      return mark;
    });
  }
}
