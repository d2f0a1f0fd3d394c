import { seededRandom } from "../src/base/random.ts";
import { type GuardTable, memoryGuardTable } from "../src/guard/guard-table.ts";
import { fenceHeaders, RequestFence } from "../src/guard/request-fence.ts";
import type { SingletonBody } from "../src/host/singleton/term.ts";
import { isTapeError } from "../src/model/errors.ts";
import type { TestProcess } from "../testkit/kit/process.ts";
import type { VirtualTime } from "../testkit/kit/virtual-time.ts";
import { chance } from "./draw.ts";
import type { PlannedSingleton } from "./plan-others.ts";

/** One thing that the singleton's body did, as the world saw it. */
export interface Sweep {
  readonly process: string;
  readonly token: bigint;
  readonly at: number;
  /** begin, end: of a body; swept: it was certain of its lease and acted; refused: the resource knew a newer token. */
  readonly what: "begin" | "swept" | "refused" | "end";
}

/** A request at the service's door, as the service saw it, in this order. */
export interface Knock {
  readonly token: bigint;
  /** came: it arrived; in, out: its work began and ended; refused: by its token; failed: the guard table did. */
  readonly what: "came" | "in" | "out" | "refused" | "failed";
}

export const sweeperName = "sweeper";

/** Of a holder's rounds, those that send the service a request; a request travels and is worked on for so long at most. */
const knockShare = 0.5;
const travelMs = 6_000;
const workMs = 1_500;

/** A background job of which one replica at a time may do the work, and the resource and the service that it works on. */
export class Sweeper {
  readonly sweeps: Sweep[] = [];
  readonly knocks: Knock[] = [];
  readonly #time: VirtualTime;
  readonly #random;
  readonly #door: RequestFence;
  /** The resource takes no token lower than the highest that it has seen. */
  #highest = -1n;
  #thrown = 0;

  constructor(time: VirtualTime, seed: number | string) {
    this.#time = time;
    this.#random = seededRandom(`door ${seed}`);
    this.#door = new RequestFence(this.#guards());
  }

  body(process: TestProcess, { everyMs, throws }: PlannedSingleton): SingletonBody {
    return async ({ token, abortSignal, assert, sleep }) => {
      const note = (what: Sweep["what"]): void =>
        void this.sweeps.push({ process: process.name, token, at: process.at, what });
      note("begin");
      try {
        for (; !abortSignal.aborted; await sleep(everyMs)) {
          assert();
          const stale = token < this.#highest;
          if (!stale) this.#highest = token;
          note(stale ? "refused" : "swept");
          if (chance(this.#random, knockShare)) void this.#arrive(token);
          if (throws && ++this.#thrown % 7 === 0) throw new Error("the sweeper trips");
        }
      } catch (error) {
        if (!isTapeError(error, "TAPE_LEASE_LOST")) throw error;
      } finally {
        note("end");
      }
    };
  }

  /** A request that was sent is on its way, whatever becomes of its sender. */
  async #arrive(token: bigint): Promise<void> {
    const time = this.#time;
    const note = (what: Knock["what"]): void => void this.knocks.push({ token, what });
    const headers = fenceHeaders({ name: sweeperName, token });
    const [travels, works] = [this.#random.int(travelMs), this.#random.int(workMs)];
    await time.sleep(travels);
    note("came");
    try {
      await this.#door.run(
        (name) => headers[name],
        async () => {
          note("in");
          await time.sleep(works);
          note("out");
        },
      );
    } catch (error) {
      note(isTapeError(error, "TAPE_FENCED") ? "refused" : "failed");
    }
  }

  /** Takes its time, and fails now and then: before it has written, or after. */
  #guards(): GuardTable {
    const table = memoryGuardTable();
    return {
      raise: async (scope, token) => {
        const [before, after] = [chance(this.#random, 0.04), chance(this.#random, 0.04)];
        await this.#time.sleep(this.#random.int(200));
        if (before) throw new Error("the guard table is away");
        const highest = await table.raise(scope, token);
        if (after) throw new Error("the guard table's answer was lost");
        return highest;
      },
    };
  }
}
