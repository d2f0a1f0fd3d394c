import type { Clock } from "../../src/base/clock.ts";
import type { Random } from "../../src/base/random.ts";
import type { StartOptions } from "../../src/host/tape.ts";
import type { GateDefinition } from "../../src/sdk/gate.ts";
import type { Runner, Workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import type { CrashRound } from "./round.ts";
import type { WorldLedger } from "./world.ts";

/** `crash`: the process is gone. `zombie`: it is stopped, another takes over, then it goes on where it was. */
export type CrashMode = "crash" | "zombie";

export interface CrashOptions<I, O> {
  readonly workflow: Workflow<I, O>;
  readonly input: I;
  readonly runner: Runner;
  readonly start?: Omit<StartOptions, "id">;
  /** Sent, once each, when the run or one of its children waits for a gate of this name. */
  readonly signals?: readonly {
    readonly gate: GateDefinition<never> | { readonly name: string };
    readonly value: unknown;
  }[];
  /** The world of the effects, if they act on one: emptied before each round, judged after it. */
  readonly ledger?: WorldLedger;
  /** Called before each round: whatever else must begin anew. */
  readonly fresh?: () => void | Promise<void>;
  /** A store of its own for each round, on this clock. Default: SQLite in memory. */
  readonly openStore?: (clock: Clock, random: Random) => Promise<Store>;
  /** true: the store goes by a clock of its own, so waits take as long as they do. Default: virtual time. */
  readonly realTime?: boolean;
  /** A zombie is stopped for a tenth longer than this: effects should declare a `timeout` and `settle` that outlast it. */
  readonly leaseTtlMs?: number;
  readonly modes?: readonly CrashMode[];
  /** Leaves boundaries out, where each of them costs real time. Default: every one is visited, in every mode. */
  readonly only?: (boundary: string, index: number) => boolean;
  /** What of the outcome must be as in the uncrashed run; default all of it. */
  readonly outcome?: (outcome: unknown) => unknown;
  /** More to check after each round, while its store is open; throws. */
  readonly check?: (round: CrashRound) => void | Promise<void>;
}
