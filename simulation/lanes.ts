import type { Clock } from "../src/base/clock.ts";
import type { Random } from "../src/base/random.ts";
import type { TapeContext } from "../src/sdk/context.ts";

/** Parallel branches, each in its lane, that do work of their own before each operation. */
export interface LanesOp {
  readonly op: "lanes";
  readonly lanes: readonly {
    readonly name: string;
    /** Number of operations. */
    readonly turns: number;
    /** Longest duration of its own work, drawn again each time. */
    readonly workMs: number;
  }[];
  /** Each lane sleeps this long after its first turn, at the same position of its own lane. */
  readonly restMs: number | undefined;
}

/** A result as the branch itself received it, not as a journal says. */
export interface LaneResult {
  readonly run: string;
  /** The process and the execution of the lanes within it. */
  readonly visit: string;
  readonly lane: string;
  readonly turn: number;
  /** Its number among all operations of this process. */
  readonly order: number;
  readonly result: unknown;
  /** The body was called in this execution; false: the result was replayed. */
  readonly called: boolean;
}

/** Work of a process between operations: it takes time and randomness that no journal records. */
export class LaneWork {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #laneResults: LaneResult[];

  #visits = 0;
  #calls = 0;

  constructor(name: string, clock: Clock, random: Random, laneResults: LaneResult[]) {
    this.#name = name;
    this.#clock = clock;
    this.#random = random;
    this.#laneResults = laneResults;
  }

  runLanes(tape: TapeContext, { lanes, restMs }: LanesOp): Promise<unknown[]> {
    const visit = `${this.#name} ${++this.#visits}`;
    return Promise.all(
      lanes.map(({ name, turns, workMs }) =>
        tape.lane(name, async (lane) => {
          const results: unknown[] = [];
          for (let turn = 0; turn < turns; turn++) {
            await this.#clock.sleep(this.#random.int(workMs));
            results.push(await this.#call(lane, { visit, lane: name, turn }));
            if (turn === 0 && restMs !== undefined) await lane.sleep(restMs);
          }
          return results;
        }),
      ),
    );
  }

  /** The operation has the same name in every lane: only the lane identifies its result. */
  async #call(tape: TapeContext, who: Pick<LaneResult, "visit" | "lane" | "turn">): Promise<unknown> {
    const order = ++this.#calls;
    let called = false;
    const body = (): { lane: string; turn: number } => {
      called = true;
      return { lane: who.lane, turn: who.turn };
    };
    const result = await (who.turn % 2 === 0 ? tape.step("ask", body) : tape.decide("ask", body));
    this.#laneResults.push({ ...who, run: tape.runId, order, result, called });
    return result;
  }
}

/** The branches ran in another order than in an earlier execution, and got the results recorded then. */
export function reordered(laneResults: readonly LaneResult[]): boolean {
  const question = ({ lane, turn }: LaneResult): string => `${lane} ${turn}`;
  const orders = new Map<string, string[]>();
  for (const visit of Map.groupBy(laneResults, ({ run, visit }) => `${run} ${visit}`).values()) {
    const { run } = visit[0]!;
    const order = [...visit].sort((a, b) => a.order - b.order);
    const replayed = new Set(order.filter(({ called }) => !called).map(question));
    const before = orders.get(run)?.filter((one) => replayed.has(one)) ?? [];
    const now = order.map(question).filter((one) => before.includes(one));
    if (before.join() !== now.join()) return true;
    orders.set(run, order.map(question));
  }
  return false;
}
