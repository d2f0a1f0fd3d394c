import type { Clock } from "../src/base/clock.ts";
import type { Random } from "../src/base/random.ts";
import type { TapeContext } from "../src/sdk/context.ts";

/** Branches side by side, each in its lane, that wait for something of their own before they ask. */
export interface LanesOp {
  readonly op: "lanes";
  readonly lanes: readonly {
    readonly name: string;
    /** How often it asks. */
    readonly turns: number;
    /** Its own work takes up to so long, each time another time. */
    readonly workMs: number;
  }[];
  /** Each sleeps so long after its first turn, under the same position in its own lane. */
  readonly restMs: number | undefined;
}

/** What a branch was handed, as the branch itself saw it: no journal is asked. */
export interface Handed {
  readonly run: string;
  /** In which process, and which execution of branches there. */
  readonly visit: string;
  readonly lane: string;
  readonly turn: number;
  /** Its place among all questions of this process. */
  readonly asked: number;
  readonly answer: unknown;
  /** The body was called in this execution; false: the answer was recorded before. */
  readonly called: boolean;
}

/** What the branches of one process do between operations: it takes time and chance that no journal knows. */
export class LocalWork {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #handed: Handed[];

  #visits = 0;
  #asked = 0;

  constructor(name: string, clock: Clock, random: Random, handed: Handed[]) {
    this.#name = name;
    this.#clock = clock;
    this.#random = random;
    this.#handed = handed;
  }

  sideBySide(tape: TapeContext, { lanes, restMs }: LanesOp): Promise<unknown[]> {
    const visit = `${this.#name} ${++this.#visits}`;
    return Promise.all(
      lanes.map(({ name, turns, workMs }) =>
        tape.lane(name, async (lane) => {
          const answers: unknown[] = [];
          for (let turn = 0; turn < turns; turn++) {
            await this.#clock.sleep(this.#random.int(workMs));
            answers.push(await this.#ask(lane, { visit, lane: name, turn }));
            if (turn === 0 && restMs !== undefined) await lane.sleep(restMs);
          }
          return answers;
        }),
      ),
    );
  }

  /** Under the same name in every lane: only the lane tells whose answer it is. */
  async #ask(tape: TapeContext, who: Pick<Handed, "visit" | "lane" | "turn">): Promise<unknown> {
    const asked = ++this.#asked;
    let called = false;
    const body = (): { lane: string; turn: number } => {
      called = true;
      return { lane: who.lane, turn: who.turn };
    };
    const answer = await (who.turn % 2 === 0 ? tape.step("ask", body) : tape.decide("ask", body));
    this.#handed.push({ ...who, run: tape.runId, asked, answer, called });
    return answer;
  }
}

/** The branches asked in another order than in an earlier execution, and were handed what was recorded then. */
export function reordered(handed: readonly Handed[]): boolean {
  const question = ({ lane, turn }: Handed): string => `${lane} ${turn}`;
  const orders = new Map<string, string[]>();
  for (const visit of Map.groupBy(handed, ({ run, visit }) => `${run} ${visit}`).values()) {
    const { run } = visit[0]!;
    const asked = [...visit].sort((a, b) => a.asked - b.asked);
    const replayed = new Set(asked.filter(({ called }) => !called).map(question));
    const before = orders.get(run)?.filter((one) => replayed.has(one)) ?? [];
    const now = asked.map(question).filter((one) => before.includes(one));
    if (before.join() !== now.join()) return true;
    orders.set(run, asked.map(question));
  }
  return false;
}
