import { seededRandom } from "../src/base/random.ts";
import { type GuardTable, memoryGuardTable } from "../src/guard/guard-table.ts";
import { fenceHeaders, RequestFence } from "../src/guard/request-fence.ts";
import type { SingletonBody } from "../src/host/singleton/term.ts";
import { isTapeError } from "../src/model/errors.ts";
import type { TestProcess } from "../testkit/kit/process.ts";
import type { VirtualTime } from "../testkit/kit/virtual-time.ts";
import { chance } from "./draw.ts";
import type { PlannedSingleton } from "./plan-actions.ts";

/** One event of the singleton's body, as an outside observer sees it. */
export interface Sweep {
  readonly process: string;
  readonly token: bigint;
  readonly at: number;
  /** start, end: of a body; swept: it asserted its lease and wrote; refused: the resource had seen a newer token. */
  readonly what: "start" | "swept" | "refused" | "end";
}

/** An event of the service's request fence, in order. */
export interface FenceEvent {
  readonly token: bigint;
  /** arrived; admitted, done: its work started and ended; refused: by its token; failed: the guard table failed. */
  readonly what: "arrived" | "admitted" | "done" | "refused" | "failed";
}

export const sweeperName = "sweeper";

/** Share of a holder's rounds that send a request, and the longest travel and work times of a request. */
const requestShare = 0.5;
const travelMs = 6_000;
const workMs = 1_500;

/** A background job that one replica at a time may do, with the resource and the service that it works on. */
export class Sweeper {
  readonly sweeps: Sweep[] = [];
  readonly fenceEvents: FenceEvent[] = [];
  readonly #time: VirtualTime;
  readonly #random;
  readonly #fence: RequestFence;
  /** The resource accepts no token below the highest it has seen. */
  #highest = -1n;
  #thrown = 0;

  constructor(time: VirtualTime, seed: number | string) {
    this.#time = time;
    this.#random = seededRandom(`door ${seed}`);
    this.#fence = new RequestFence(this.#guardTable());
  }

  body(process: TestProcess, { everyMs, throws }: PlannedSingleton): SingletonBody {
    return async ({ token, abortSignal, assert, sleep }) => {
      const note = (what: Sweep["what"]): void =>
        void this.sweeps.push({ process: process.name, token, at: process.at, what });
      note("start");
      try {
        for (; !abortSignal.aborted; await sleep(everyMs)) {
          assert();
          const stale = token < this.#highest;
          if (!stale) this.#highest = token;
          note(stale ? "refused" : "swept");
          if (chance(this.#random, requestShare)) void this.#sendRequest(token);
          if (throws && ++this.#thrown % 7 === 0) throw new Error("the sweeper trips");
        }
      } catch (error) {
        if (!isTapeError(error, "TAPE_LEASE_LOST")) throw error;
      } finally {
        note("end");
      }
    };
  }

  /** A sent request arrives, whatever becomes of its sender. */
  async #sendRequest(token: bigint): Promise<void> {
    const time = this.#time;
    const note = (what: FenceEvent["what"]): void => void this.fenceEvents.push({ token, what });
    const headers = fenceHeaders({ name: sweeperName, token });
    const [travels, works] = [this.#random.int(travelMs), this.#random.int(workMs)];
    await time.sleep(travels);
    note("arrived");
    try {
      await this.#fence.run(
        (name) => headers[name],
        async () => {
          note("admitted");
          await time.sleep(works);
          note("done");
        },
      );
    } catch (error) {
      note(isTapeError(error, "TAPE_FENCED") ? "refused" : "failed");
    }
  }

  /** A slow guard table that sometimes fails, before or after it has written. */
  #guardTable(): GuardTable {
    const table = memoryGuardTable();
    return {
      raise: async (scope, token) => {
        const [before, after] = [chance(this.#random, 0.04), chance(this.#random, 0.04)];
        await this.#time.sleep(this.#random.int(200));
        if (before) throw new Error("the guard table is unreachable");
        const highest = await table.raise(scope, token);
        if (after) throw new Error("the guard table's response was lost");
        return highest;
      },
    };
  }
}
