import { systemClock } from "../../base/clock.ts";
import { seededRandom } from "../../base/random.ts";
import { type StartOptions, Tape } from "../../host/tape.ts";
import type { GateDefinition } from "../../sdk/gate.ts";
import type { Runner, Workflow } from "../../sdk/workflow.ts";
import type { RunView, Store } from "../../store/contract.ts";
import { type Boundary, TestProcess } from "./process.ts";
import { type Round, roundFaults } from "./round.ts";
import { type Call, runnerIn } from "./runner.ts";
import { isSettled, quietMs } from "./settle.ts";
import { openVirtualStore } from "./virtual-tape.ts";
import { VirtualTime } from "./virtual-time.ts";
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
  /** A store of its own for each round, in real time. Default: SQLite in memory, in virtual time. */
  readonly openStore?: () => Promise<Store>;
  readonly leaseTtlMs?: number;
  readonly modes?: readonly CrashMode[];
  /** Leaves boundaries out, where each of them costs real time. */
  readonly only?: (boundary: string, index: number) => boolean;
  /** What of the outcome must be as in the uncrashed run; default all of it. */
  readonly outcome?: (outcome: unknown) => unknown;
  /** More to check after each round; throws. */
  readonly check?: (round: Round) => void | Promise<void>;
}

export interface CrashReport {
  readonly boundaries: readonly string[];
  readonly rounds: number;
  /** Rounds in which the boundary was reached: all of them in virtual time. */
  readonly struck: number;
  /** How the runs ended, by status. */
  readonly statuses: Readonly<Record<string, number>>;
}

/** Besides waits that are skipped: back-offs, settle delays and ten looks of the reconciler fit in. */
const virtualBoundMs = 3_600_000;
const realBoundMs = 60_000;

/**
 * Runs a workflow once and counts its store calls and acts; then again for every one of them, with the process crashed
 * (and, in another round, stopped and resumed too late) just before and just after it. A second process takes over. After
 * each round: no non-idempotent act twice, none lost, the outcome as without the crash, or failed for an act that surely
 * did not happen and all of it undone, or stuck with a doubt that nobody can settle; and the projection is the fold of
 * the records. Throws with the list of boundaries where that does not hold.
 *
 * @example
 * await crashAtEveryBoundary({ workflow: treasury, input: { invoice: "7" }, runner, ledger: bank });
 */
export async function crashAtEveryBoundary<I, O>(options: CrashOptions<I, O>): Promise<CrashReport> {
  const first = new BoundaryCount();
  const calm = await playRound(options, "calm", undefined, first);
  const faults = (await roundFaults(calm, calm, options.outcome)).map((fault) => `without a crash: ${fault}`);
  const statuses: Record<string, number> = {};
  let rounds = 0;
  let struck = 0;
  for (const mode of faults.length > 0 ? [] : (options.modes ?? (["crash", "zombie"] as const))) {
    for (const [index, boundary] of first.all.entries()) {
      if (options.only?.(boundary, index) === false) continue;
      rounds++;
      try {
        const round = await playRound(options, `${mode}-${index}`, { mode, boundary }, new BoundaryCount());
        if (round.struck) struck++;
        const { status } = round.run;
        statuses[status] = (statuses[status] ?? 0) + 1;
        for (const fault of await roundFaults(round, calm, options.outcome))
          faults.push(`${mode} ${boundary}: ${fault}`);
        await options.check?.(round);
      } catch (error) {
        faults.push(`${mode} ${boundary}: ${(error as Error).message}`);
      }
    }
  }
  if (faults.length > 0)
    throw new Error(`${faults.length} faults in ${rounds} rounds:\n${faults.slice(0, 20).join("\n")}`);
  return { boundaries: first.all, rounds, struck, statuses };
}

/** Names the boundaries that matter: a look for work that finds none is not one. */
class BoundaryCount {
  readonly all: string[] = [];
  readonly #counts = new Map<string, number>();

  take(boundary: Boundary): string | undefined {
    const { what, name, edge, answer } = boundary;
    if (what === "store" && idle.has(name)) return undefined;
    if (name === "claim.find" && !(edge === "after" && Array.isArray(answer) && answer.length > 0)) return undefined;
    const k = (this.#counts.get(`${name} ${edge}`) ?? 0) + 1;
    this.#counts.set(`${name} ${edge}`, k);
    const text = `${edge} ${what === "act" ? "act " : ""}${name} #${k}`;
    this.all.push(text);
    return text;
  }
}

const idle = new Set(["claim.renew", "read.now", "read.nextTimerMs", "read.dueTimers", "read.runs"]);

async function playRound<I, O>(
  options: CrashOptions<I, O>,
  tenant: string,
  target: { readonly mode: CrashMode; readonly boundary: string } | undefined,
  count: BoundaryCount,
): Promise<Round> {
  const { workflow, input, runner, openStore } = options;
  options.ledger?.clear();
  await options.fresh?.();
  const time = openStore === undefined ? new VirtualTime() : undefined;
  const clock = time ?? systemClock;
  const during = <T>(work: Promise<T>): Promise<T> => time?.during(work) ?? work;
  const store = await (openStore?.() ?? during(openVirtualStore(time!, seededRandom(tenant))));
  const calls: Call[] = [];
  const tapes: Tape[] = [];
  let struck = false;
  let tellStruck = (): void => {};
  const beingStruck = new Promise<void>((resolve) => {
    tellStruck = resolve;
  });
  const open = async (process: TestProcess): Promise<Tape> => {
    const leaseTtl = options.leaseTtlMs ?? 30_000;
    const random = seededRandom(`${tenant} ${process.name}`);
    const inside = runnerIn(process, runner, calls);
    const more = { runner: inside, tenant, leaseTtl, random, clock: process.clock };
    const tape = await during(Tape.open({ store: process.store, ...more }));
    tapes.push(tape);
    return tape;
  };
  const process = new TestProcess({
    name: "first",
    clock,
    store,
    strike: (boundary) => {
      if (struck || count.take(boundary) !== target?.boundary || target === undefined) return undefined;
      struck = true;
      tellStruck();
      return target.mode === "crash" ? "crash" : "pause";
    },
  });
  const watch = new Watch(store, tenant, options.signals ?? []);
  const boundMs = time === undefined ? realBoundMs : virtualBoundMs;
  let until = clock.mono() + boundMs;
  /** Lets time pass until the run has settled, or the first process has been struck. */
  const pass = async (done: () => boolean): Promise<RunView | undefined> => {
    for (let still = 0; ; ) {
      const run = await during(watch.look());
      if ((run !== undefined && isSettled(run)) || still > 1 || done()) return run;
      if (clock.mono() > until) throw new Error(`not settled after ${boundMs} ms: ${run?.status ?? "not started"}`);
      const quiet = await during(quietMs(store, tenant));
      if (quiet === Number.POSITIVE_INFINITY) still++;
      else if (quiet > 1_000 && time !== undefined) {
        time.jump(quiet - 1);
        until += quiet;
      }
      await during(clock.sleep(time === undefined ? 10 : 100));
    }
  };
  try {
    const start = { ...options.start, id: runId };
    const tape = await open(process);
    const starting = tape.start(workflow, input, start).then(() => {});
    await during(Promise.race([starting, beingStruck]));
    let run = await pass(() => struck);
    if (struck) {
      const second = await open(new TestProcess({ name: "second", clock, store }));
      await during(second.start(workflow, input, start)); // its client asks again, as clients do
      if (target?.mode === "zombie") {
        await during(clock.sleep(1.1 * (options.leaseTtlMs ?? 30_000)));
        process.resume();
      }
      run = await pass(() => false);
      if (target?.mode === "zombie") await during(clock.sleep(options.leaseTtlMs ?? 30_000));
    }
    const effects = await during(store.read.effects(tenant));
    const round = { tenant, store, run: run!, effects, calls, struck, ledger: options.ledger };
    const more = await roundFaults(round, undefined, options.outcome);
    return { ...round, faults: more };
  } finally {
    for (const tape of process.state === "crashed" ? tapes.slice(1) : tapes) await during(tape.close());
    await during(store.close());
  }
}

const runId = "run";

/** The world outside: looks at the run, and answers its gates. */
class Watch {
  readonly #store: Store;
  readonly #tenant: string;
  readonly #left: { readonly gate: { readonly name: string }; readonly value: unknown }[];

  constructor(store: Store, tenant: string, signals: NonNullable<CrashOptions<never, never>["signals"]>) {
    this.#store = store;
    this.#tenant = tenant;
    this.#left = [...signals];
  }

  async look(): Promise<RunView | undefined> {
    const { read, intake } = this.#store;
    const runs = await read.runs(this.#tenant);
    for (const { run, name } of this.#left.length === 0 ? [] : await read.gates(this.#tenant, { open: true })) {
      const k = this.#left.findIndex(({ gate }) => gate.name === name);
      const view = runs.find(({ journal }) => journal === run);
      if (k < 0 || view === undefined) continue;
      const [signal] = this.#left.splice(k, 1);
      await intake.signal(this.#tenant, view.id, { name, value: signal!.value, key: `signal ${this.#left.length}` });
    }
    return runs.find(({ id }) => id === runId);
  }
}
