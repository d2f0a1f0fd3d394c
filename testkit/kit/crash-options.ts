import type { Clock } from "../../src/base/clock.ts";
import type { Random } from "../../src/base/random.ts";
import type { StartOptions } from "../../src/host/options.ts";
import type { GateDefinition } from "../../src/sdk/gate.ts";
import type { Runner, Workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import type { CrashRound } from "./round.ts";
import type { WorldLedger } from "./world.ts";

/**
 * How a round interrupts the process. `crash`: the process is gone. `zombie`: it is paused, another takes over, then it
 * resumes.
 *
 * @example
 * await crashAtEveryBoundary({ workflow, input, runner, modes: ["crash"] });
 */
export type CrashMode = "crash" | "zombie";

/**
 * The workflow that {@link crashAtEveryBoundary} runs, its surroundings, and what to check.
 *
 * @example
 * const options: CrashOptions<Order, Receipt> = { workflow: order, input: { id: "7" }, runner, ledger: bank };
 */
export interface CrashOptions<I, O> {
  /** The workflow to execute. */
  readonly workflow: Workflow<I, O>;
  /** Its input. */
  readonly input: I;
  /** A runner that has the workflow and its effects. */
  readonly runner: Runner;
  /** Options of the start. Default: none. */
  readonly start?: Omit<StartOptions, "id">;
  /**
   * Sent when the run or one of its children waits at a gate of this name: once each, or with `times: "always"` to every
   * such gate. A run that asks again after a crash needs the latter.
   */
  readonly signals?: readonly {
    readonly gate: GateDefinition<never> | { readonly name: string };
    readonly value: unknown;
    readonly times?: "always";
  }[];
  /** The fake upstream of the effects, if they have one: emptied before each round, checked after it. */
  readonly ledger?: WorldLedger;
  /** Called before each round, to reset anything else. */
  readonly fresh?: () => void | Promise<void>;
  /** Opens a store for each round, on this clock. Default: SQLite in memory. */
  readonly openStore?: (clock: Clock, random: Random) => Promise<Store>;
  /** true: the store has a real clock, so waits take real time. Default: virtual time. */
  readonly realTime?: boolean;
  /**
   * A zombie is paused for a tenth longer than this: effects should declare a `timeout` and `settleDelay` that outlast
   * it. Default 30 000.
   */
  readonly leaseTtlMs?: number;
  /** How rounds interrupt the process. Default: both. */
  readonly modes?: readonly CrashMode[];
  /** Selects boundaries, for stores on which each one takes real time. Default: every boundary in every mode. */
  readonly only?: (boundary: string, index: number) => boolean;
  /** The part of the outcome that must equal the one without a crash. Default: all of it. */
  readonly outcome?: (outcome: unknown) => unknown;
  /** Checks a round further while its store is open; throws on a fault. */
  readonly check?: (round: CrashRound) => void | Promise<void>;
}
