import type { Log } from "../../base/log.ts";
import { seededRandom } from "../../base/random.ts";
import { Tape } from "../../host/tape.ts";
import { isTapeError } from "../../model/errors.ts";
import type { Runner } from "../../sdk/workflow.ts";
import type { Store } from "../../store/contract.ts";
import { type Boundary, type Strike, TestProcess } from "../kit/process.ts";
import { type Call, runnerIn } from "../kit/runner.ts";
import type { VirtualTime } from "../kit/virtual-time.ts";
import { describeFault, type Fault, type Plan } from "./plan.ts";

export const tenant = "simulated";

/** A fault that has bitten. */
export interface Bite {
  readonly fault: Fault;
  readonly at: number;
  readonly boundary: string;
}

export interface Stage {
  readonly plan: Plan;
  readonly time: VirtualTime;
  readonly store: Store;
  readonly runner: Runner;
  readonly calls: Call[];
  readonly bites: Bite[];
  /** Codes with which the store refused somebody. */
  readonly refusals: Set<string>;
  readonly log: Log;
  healed: boolean;
}

/** One place where a process runs: crashed, it starts anew under another identity; paused, it goes on as it was. */
export class Replica {
  readonly #stage: Stage;
  readonly #index: number;
  #incarnation = 0;
  #process: TestProcess | undefined;
  #tape: Tape | undefined;
  readonly #counts = new Map<string, number>();

  constructor(stage: Stage, index: number) {
    this.#stage = stage;
    this.#index = index;
  }

  /** undefined while it is dead or not yet up. */
  get tape(): Tape | undefined {
    return this.#process?.state === "running" ? this.#tape : undefined;
  }

  get alive(): boolean {
    return this.#process !== undefined && this.#process.state !== "crashed";
  }

  async boot(): Promise<void> {
    const { plan, time, store, runner, calls, log } = this.#stage;
    const name = `${this.#index}.${++this.#incarnation}`;
    const hints = seededRandom(`hints ${plan.seed} ${name}`);
    const travel = seededRandom(`travel ${plan.seed} ${name}`);
    const process = new TestProcess({
      name,
      clock: time,
      store,
      strike: (boundary) => this.#strike(boundary),
      travelMs: () => (plan.travelMs === 0 ? 0 : travel.int(plan.travelMs)),
      hears: () => hints.float() >= plan.deafness,
    });
    this.#process = process;
    this.#tape = undefined;
    const random = seededRandom(`replica ${plan.seed} ${name}`);
    const options = { store: process.store, runner: runnerIn(process, runner, calls), clock: process.clock, random };
    this.#tape = await Tape.open({ ...options, tenant, leaseTtl: plan.ttlMs, log });
  }

  /** Nothing goes wrong any more. Whoever was dead for ever stays so, unless nobody else is left. */
  async heal(onlyHope: boolean): Promise<void> {
    this.#process?.resume();
    const forever = this.#process?.state === "crashed" && !onlyHope;
    if (!this.alive && !forever) await this.boot();
  }

  /** Cut off: nothing of it is heard of again. */
  cut(): void {
    this.#process?.crash();
  }

  async close(): Promise<void> {
    if (this.alive) await this.#tape?.close();
  }

  #strike(boundary: Boundary): Strike {
    const { plan, time, bites, healed } = this.#stage;
    if (isTapeError(boundary.answer)) this.#stage.refusals.add(boundary.answer.code);
    const at = kindOf(boundary);
    if (at === undefined) return undefined;
    const { edge } = boundary;
    const n = (this.#counts.get(`${at} ${edge}`) ?? 0) + 1;
    this.#counts.set(`${at} ${edge}`, n);
    if (healed) return undefined;
    const same = (fault: Fault) =>
      fault.replica === this.#index && fault.at === at && fault.edge === edge && fault.n === n;
    const fault = plan.faults.find(same);
    if (fault === undefined) return undefined;
    bites.push({ fault, at: time.now, boundary: `${edge} ${boundary.name}` });
    this.#stage.log("info", "simulation.fault", { fault: describeFault(fault), boundary: boundary.name });
    const process = this.#process!;
    if (fault.forMs !== undefined && fault.strike !== "fail") {
      time.after(fault.forMs, () => {
        if (process !== this.#process) return;
        if (process.state === "crashed") void this.boot();
        else process.resume();
      });
    }
    return fault.strike;
  }
}

/** Looks for work that find none, and renewals, are not worth a fault: they would eat most of them. */
function kindOf(boundary: Boundary): Fault["at"] | undefined {
  const { what, name, edge, answer } = boundary;
  if (what === "act") return "act";
  if (name === "fenced.append") return "append";
  if (name.startsWith("intake.")) return "intake";
  if (name === "claim.find") {
    return edge === "after" && Array.isArray(answer) && answer.length === 0 ? undefined : "claim";
  }
  return name === "read.journal" || name === "read.effects" || name === "read.run" ? "read" : undefined;
}
