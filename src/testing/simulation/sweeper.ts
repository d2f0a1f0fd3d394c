import type { SingletonBody } from "../../host/singleton-term.ts";
import { isTapeError } from "../../model/errors.ts";
import type { TestProcess } from "../kit/process.ts";
import type { PlannedSingleton } from "./plan-others.ts";

/** One thing that the singleton's body did, as the world saw it. */
export interface Sweep {
  readonly process: string;
  readonly token: bigint;
  readonly at: number;
  /** begin, end: of a body; swept: it was certain of its lease and acted; refused: the resource knew a newer token. */
  readonly what: "begin" | "swept" | "refused" | "end";
}

export const sweeperName = "sweeper";

/** A background job of which one replica at a time may do the work, and the resource that it works on. */
export class Sweeper {
  readonly sweeps: Sweep[] = [];
  /** The resource takes no token lower than the highest that it has seen. */
  #highest = -1n;
  #thrown = 0;

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
          if (throws && ++this.#thrown % 7 === 0) throw new Error("the sweeper trips");
        }
      } catch (error) {
        if (!isTapeError(error, "TAPE_LEASE_LOST")) throw error;
      } finally {
        note("end");
      }
    };
  }
}
