import { type Random, seededRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { StartOptions } from "../../src/host/options.ts";
import type { RunHandle } from "../../src/host/run-handle.ts";
import { Tape, type TapeOptions } from "../../src/host/tape.ts";
import type { GateDefinition } from "../../src/sdk/gate.ts";
import type { Runner, Workflow } from "../../src/sdk/workflow.ts";
import type { RunView, Store } from "../../src/store/contract/store.ts";
import { idleMs, settleRuns } from "./settle.ts";
import { VirtualTime } from "./virtual-time.ts";

/**
 * Options of {@link VirtualTape.open}: only `runner` is required.
 *
 * @example
 * const options: VirtualOptions = { runner: createRunner({ workflows: [reminder] }), seed: 7 };
 */
export interface VirtualOptions {
  /** The workflows and effects to execute. */
  readonly runner: Runner;
  /** Opens the store on this clock; default: SQLite in memory. */
  readonly openStore?: (clock: VirtualTime, random: Random) => Promise<Store>;
  /** The same seed gives the same execution. Default 1. */
  readonly seed?: number | string;
  readonly tenant?: string;
  /** How long leases last without a renewal. Default 30 s. */
  readonly leaseTtl?: TapeOptions["leaseTtl"];
  readonly log?: TapeOptions["log"];
}

/** Not counting skipped waits: runs that do not settle within an hour of activity never will. */
const defaultBoundMs = 3_600_000;

/**
 * A Tape in virtual time: a day of sleep takes a millisecond, and the same seed gives the same journal.
 *
 * @example
 * const tape = await VirtualTape.open({ runner: createRunner({ workflows: [reminder] }) });
 * const run = await tape.start(reminder, { in: "30d" });
 * assert.equal(await tape.result(run), "reminded");
 * await tape.close();
 */
export class VirtualTape {
  /** Its clock. */
  readonly time: VirtualTime;
  /** Its store. */
  readonly store: Store;
  /** The Tape itself. */
  readonly tape: Tape;

  private constructor(time: VirtualTime, store: Store, tape: Tape) {
    this.time = time;
    this.store = store;
    this.tape = tape;
  }

  /** Opens a Tape in virtual time. Nothing moves until the test waits for something. */
  static async open(options: VirtualOptions): Promise<VirtualTape> {
    const { runner, tenant, leaseTtl, log, seed = 1 } = options;
    const time = new VirtualTime();
    const random = seededRandom(seed);
    const store = await time.during((options.openStore ?? openVirtualStore)(time, random));
    const more = {
      ...(tenant === undefined ? {} : { tenant }),
      ...(leaseTtl === undefined ? {} : { leaseTtl }),
      ...(log === undefined ? {} : { log }),
    };
    const tape = await time.during(Tape.open({ store, runner, clock: time, random, report: false, ...more }));
    return new VirtualTape(time, store, tape);
  }

  /** Starts a run. */
  start<I, O>(workflow: Workflow<I, O>, input: I, options?: StartOptions): Promise<RunHandle<O>> {
    return this.time.during(this.tape.start(workflow, input, options));
  }

  /** Sends a value to a gate of a run. */
  signal<T>(run: string, gate: GateDefinition<T>, value: T, options?: { key?: string; by?: string }): Promise<void> {
    return this.time.during(this.tape.signal(run, gate, value, options));
  }

  /** Cancels a run. */
  cancel(run: string, reason = "requested by a test"): Promise<void> {
    return this.time.during(this.tape.cancel(run, { reason }));
  }

  /** Lets time pass until all runs have settled, then returns the result of this one. */
  async result<O>(run: RunHandle<O>): Promise<O> {
    await this.settle();
    return this.time.during(run.result());
  }

  /** Lets time pass until every run has ended, is STUCK, or waits for a client. */
  settle(boundMs = defaultBoundMs): Promise<RunView[]> {
    return settleRuns(this.time, this.store, this.tape.tenant, boundMs);
  }

  /** Lets this much time pass. Time in which nothing can happen is skipped, so that a month takes milliseconds, too. */
  async elapse(ms: number): Promise<void> {
    for (const until = this.time.now + ms; this.time.now < until; ) {
      const leftMs = until - this.time.now;
      const idleFor = await this.time.during(idleMs(this.store, this.tape.tenant));
      // A jump ends just before the next timer, which then fires on time and never early.
      // The last minute is not skipped: what waits in a queue has no timer.
      const farMs = leftMs - 60_000;
      if (farMs > 0 && idleFor > 1_000) this.time.jump(Math.min(idleFor, farMs) - 1);
      await this.time.elapse(Math.min(100, until - this.time.now));
    }
  }

  /** Closes the Tape and its store. */
  async close(): Promise<void> {
    await this.time.during(this.tape.close());
    await this.time.during(this.store.close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** The real SQLite store, in memory, on virtual time. */
export function openVirtualStore(clock: VirtualTime, random: Random): Promise<Store> {
  return openStore("sqlite::memory:", { clock, random });
}
