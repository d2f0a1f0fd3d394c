import { seededRandom } from "../src/base/random.ts";
import type { RemoteStore } from "../src/client/remote.ts";
import { openRemote } from "../src/client/store.ts";
import { Tape } from "../src/host/tape.ts";
import { isTapeError } from "../src/model/errors.ts";
import type { WireRequest } from "../src/protocol/transport.ts";
import { type Boundary, type CrashPoint, TestProcess } from "../testkit/kit/process.ts";
import { runnerIn } from "../testkit/kit/runner.ts";
import { describeFault, type Fault, rightClock } from "./plan-faults.ts";
import { type Stage, tenant } from "./stage.ts";
import { sweeperName } from "./sweeper.ts";
import { wireTo } from "./wire.ts";

/** One place where a process runs: crashed, it starts anew under another identity; paused, it goes on as it was. */
export class Replica {
  readonly #stage: Stage;
  readonly #index: number;
  #incarnation = 0;
  #process: TestProcess | undefined;
  #tape: Tape | undefined;
  #remote: RemoteStore | undefined;
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

  get connected(): boolean {
    return this.#stage.plan.remote[this.#index] === true;
  }

  /** Begins anew. Whoever crashes on the way never comes up, so nobody waits for it. */
  boot(): void {
    const { plan, time, shared } = this.#stage;
    const name = `${this.#index}.${++this.#incarnation}`;
    const hints = seededRandom(`hints ${plan.seed} ${name}`);
    const process = new TestProcess({
      name,
      clock: time,
      store: shared.store,
      strike: (boundary) => this.#strike(boundary),
      wallOffMs: () => this.#wallOffMs(),
      travelMs: this.connected ? () => 0 : this.#travel(name),
      hears: () => hints.float() >= plan.deafness,
    });
    this.#process = process;
    this.#tape = undefined;
    this.#remote = undefined;
    void this.#come(process);
  }

  /** Nothing goes wrong any more. Whoever was dead for ever stays so, unless nobody else is left. */
  heal(onlyHope: boolean): void {
    this.#process?.resume();
    const forever = this.#process?.state === "crashed" && !onlyHope;
    if (!this.alive && !forever) this.boot();
  }

  /** Cut off: nothing of it is heard of again. */
  cut(): void {
    this.#process?.crash();
  }

  async close(): Promise<void> {
    if (!this.alive) return;
    await this.#tape?.close();
    await this.#remote?.close();
  }

  async #come(process: TestProcess): Promise<void> {
    const { plan, runnerOn, calls, log, sweeper } = this.#stage;
    const random = seededRandom(`replica ${plan.seed} ${process.name}`);
    const store = this.connected ? await this.#connect(process) : process.store;
    const options = { store, runner: runnerIn(process, runnerOn(process), calls), clock: process.clock, random };
    const tape = await Tape.open({ ...options, tenant, leaseTtl: plan.ttlMs, log, report: false });
    this.#tape = tape;
    if (plan.singleton === undefined) return;
    for (;;) {
      try {
        await tape.singleton(sweeperName, sweeper.body(process, plan.singleton), { backoff: { cap: "4s" } });
        return;
      } catch (error) {
        if (!isTapeError(error)) throw error;
        await process.clock.sleep(500); // the store was away
      }
    }
  }

  async #connect(process: TestProcess): Promise<RemoteStore> {
    const { plan, server, time, log } = this.#stage;
    const { name, clock } = process;
    const random = seededRandom(`remote ${plan.seed} ${name}`);
    const wire = wireTo({
      exchange: server.exchange,
      time,
      travelMs: this.#travel(name),
      fate: (request) => this.#fate(request),
    });
    for (;;) {
      try {
        const remote = await openRemote("http://127.0.0.1:1", { clock, random, log, exchange: process.exchange(wire) });
        this.#remote = remote;
        return process.inside(remote);
      } catch (error) {
        if (!isTapeError(error)) throw error;
        await clock.sleep(500);
      }
    }
  }

  #travel(name: string): () => number {
    const { plan } = this.#stage;
    const travel = seededRandom(`travel ${plan.seed} ${name}`);
    return () => (plan.travelMs === 0 ? 0 : travel.int(plan.travelMs));
  }

  #wallOffMs(): number {
    const { plan, time } = this.#stage;
    const { offMs, drift, steps } = plan.clocks[this.#index] ?? rightClock;
    const stepped = steps.reduce((sum, { atMs, byMs }) => (atMs <= time.now ? sum + byMs : sum), 0);
    return offMs + Math.round((drift * time.now) / 1_000) + stepped;
  }

  #strike(boundary: Boundary): CrashPoint {
    const { refusals, time } = this.#stage;
    const { answer } = boundary;
    if (isTapeError(answer)) refusals.set(answer.code, (refusals.get(answer.code) ?? 0) + 1);
    const at = kindOf(boundary);
    const fault = at === undefined ? undefined : this.#due(at, boundary.edge, boundary.name);
    if (fault === undefined) return undefined;
    const { strike, forMs } = fault;
    const process = this.#process!;
    if (forMs !== undefined && (strike === "crash" || strike === "pause")) {
      time.after(forMs, () => {
        if (process !== this.#process) return;
        if (process.state === "crashed") this.boot();
        else process.resume();
      });
    }
    if (strike === "hang") return { hangMs: forMs ?? 0 };
    return strike === "crash" || strike === "pause" || strike === "fail" || strike === "busy" ? strike : undefined;
  }

  #fate(request: WireRequest): Fault | undefined {
    if (request.url === "/v1/store/wake-hints") return undefined; // hints are lost by themselves
    const asked = /\/(signals|cancel)$|^\/v1\/(runs|values)/.test(request.url) && request.method !== "GET";
    for (const edge of ["before", "after"] as const) {
      const fault = (asked ? this.#due("ask", edge, request.url) : undefined) ?? this.#due("wire", edge, request.url);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  /** The fault that the plan has for this place, where it has one. */
  #due(at: Fault["at"], edge: Fault["edge"], boundary: string): Fault | undefined {
    const { plan, time, bites, healed, log } = this.#stage;
    const n = (this.#counts.get(`${at} ${edge}`) ?? 0) + 1;
    this.#counts.set(`${at} ${edge}`, n);
    if (healed) return undefined;
    const fault = plan.faults.find(
      (one) => one.replica === this.#index && one.at === at && one.edge === edge && one.n === n,
    );
    if (fault === undefined) return undefined;
    bites.push({ fault, at: time.now, boundary: `${edge} ${boundary}` });
    log("info", "simulation.fault", { fault: describeFault(fault), boundary });
    return fault;
  }
}

/** Looks for work that find none are not worth a fault: they would eat most of them. */
function kindOf(boundary: Boundary): Fault["at"] | undefined {
  const { what, name, edge, answer } = boundary;
  if (what === "act") return "act";
  if (name === "fenced.append") return "append";
  if (name.startsWith("intake.")) return "intake";
  if (name === "claim.renew") return "renew";
  if (name === "claim.find" || name === "claim.acquire") {
    return edge === "after" && Array.isArray(answer) && answer.length === 0 ? undefined : "claim";
  }
  return name === "read.journal" || name === "read.effects" || name === "read.run" ? "read" : undefined;
}
