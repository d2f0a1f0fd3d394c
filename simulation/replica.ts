import { seededRandom } from "../src/base/random.ts";
import type { RemoteStore } from "../src/client/remote.ts";
import { openRemote } from "../src/client/store.ts";
import { Tape, type TapeOptions } from "../src/host/tape.ts";
import { isTapeError } from "../src/model/errors.ts";
import type { Term } from "../src/model/lease.ts";
import type { WireRequest } from "../src/protocol/transport.ts";
import type { Store } from "../src/store/contract/store.ts";
import { type Boundary, type CrashPoint, TestProcess } from "../testkit/kit/process.ts";
import { runnerIn } from "../testkit/kit/runner.ts";
import { describeFault, type Fault, rightClock } from "./plan-faults.ts";
import { type Stage, tenant } from "./stage.ts";
import { sweeperName } from "./sweeper.ts";
import { WakeWatch } from "./wakes.ts";
import { wireTo } from "./wire.ts";
import { sinkName } from "./world-sink.ts";

/** One replica. After a crash it restarts as a new incarnation; after a pause it resumes. */
export class Replica {
  readonly #stage: Stage;
  readonly #index: number;
  #incarnation = 0;
  #process: TestProcess | undefined;
  #tape: Tape | undefined;
  #remote: RemoteStore | undefined;
  #wakes: WakeWatch | undefined;
  readonly #counts = new Map<string, number>();
  readonly #authorisations = new WeakSet<object>();

  constructor(stage: Stage, index: number) {
    this.#stage = stage;
    this.#index = index;
  }

  /** undefined while crashed, paused or not yet open. */
  get tape(): Tape | undefined {
    return this.#process?.state === "running" ? this.#tape : undefined;
  }

  get name(): string {
    return this.#process?.name ?? `${this.#index}`;
  }

  get alive(): boolean {
    return this.#process !== undefined && this.#process.state !== "crashed";
  }

  get connected(): boolean {
    return this.#stage.plan.remote[this.#index] === true;
  }

  /** Starts a new incarnation. It may crash before it is open, so the caller does not wait for it. */
  boot(): void {
    const { plan, time, shared, builds } = this.#stage;
    if (builds?.isStopped(this.#index)) return;
    const name = `${this.#index}.${++this.#incarnation}`;
    this.#wakes = new WakeWatch(name, this.#stage.wakes);
    const hints = seededRandom(`hints ${plan.seed} ${name}`);
    const process = new TestProcess({
      name,
      clock: time,
      store: this.#noting(shared.bare),
      crashPointAt: (boundary) => this.#crashPointAt(boundary),
      wallOffMs: () => this.#wallOffMs(),
      travelMs: this.connected ? () => 0 : this.#travel(name),
      receivesHint: () => hints.float() >= plan.hintLoss,
    });
    this.#process = process;
    this.#tape = undefined;
    this.#remote = undefined;
    void this.#open(process);
  }

  /** Resumes or restarts it. A replica that crashed without restart stays down, unless no other is left. */
  heal(noneAlive: boolean): void {
    this.#process?.resume();
    const staysDown = this.#process?.state === "crashed" && !noneAlive;
    if (!this.alive && !staysDown) this.boot();
  }

  /** Cuts it off for good. */
  cut(): void {
    this.#process?.crash();
  }

  /** Crashes or pauses it now, until it is back after `forMs`. */
  interrupt(what: "crash" | "pause", forMs: number | undefined): void {
    const process = this.#process;
    if (process === undefined || process.state !== "running") return;
    if (what === "pause") process.pause();
    else this.#die(process);
    this.#bringBack(process, forMs);
  }

  async close(): Promise<void> {
    if (!this.alive) return;
    await this.#tape?.close();
    await this.#remote?.close();
  }

  async #open(process: TestProcess): Promise<void> {
    const { plan, runnerOn, calls, sweeper, alarmService, shards, codec } = this.#stage;
    const log = shards?.logOf(process) ?? this.#stage.log;
    const random = seededRandom(`replica ${plan.seed} ${process.name}`);
    const store = this.connected ? await this.#connect(process) : process.store;
    const options = {
      store,
      runner: runnerIn(process, runnerOn(process, this.#index), calls),
      clock: process.clock,
      random,
    };
    const serverless = alarmService && { serverless: alarmService.optionsOf(process) };
    const sealing = codec && { codec: codec.of(this.#incarnation, seededRandom(`codec ${plan.seed} ${process.name}`)) };
    const more = { tenant, leaseTtl: plan.ttlMs, log, report: shards !== undefined, ...serverless, ...sealing };
    const tape = await this.#opened(process, { ...options, ...more });
    this.#tape = tape;
    this.#sendEvents(process, tape);
    void shards?.join(this.#index, process, tape);
    if (plan.singleton === undefined) return;
    for (;;) {
      try {
        await tape.singleton(sweeperName, sweeper.body(process, plan.singleton), { backoff: { cap: "4s" } });
        return;
      } catch (error) {
        if (!isTapeError(error)) throw error;
        await process.clock.sleep(500); // the store was unreachable
      }
    }
  }

  #sendEvents(process: TestProcess, tape: Tape): void {
    const { sink } = this.#stage;
    if (sink === undefined) return;
    const { from, lanes, window } = sink.plan;
    tape.fanouts.start({ name: sinkName, sink: sink.on(process), filter: { kinds: ["all"] }, from, lanes, window });
  }

  /** An app defines its queues when it opens; the store may be unreachable then. */
  async #opened({ clock }: TestProcess, options: TapeOptions): Promise<Tape> {
    for (;;) {
      try {
        return await Tape.open(options);
      } catch (error) {
        if (!isTapeError(error)) throw error;
        await clock.sleep(500);
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
      faultOf: (request) => this.#wireFault(request),
    });
    for (;;) {
      try {
        const remote = await openRemote("http://127.0.0.1:1", { clock, random, log, exchange: process.exchange(wire) });
        this.#remote = remote;
        return process.inside(this.#noting(remote));
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

  #crashPointAt(boundary: Boundary): CrashPoint {
    const { refusals } = this.#stage;
    const { result } = boundary;
    if (boundary.what === "store" && boundary.edge === "before") this.#stage.storeCalls++;
    if (boundary.name === "claim.find" && Array.isArray(result)) {
      this.#stage.alarmService?.noteTerms(this.#process!.name, result);
    }
    if (boundary.edge === "after") {
      const terms = termsIn(boundary);
      this.#wakes?.noteTerms(terms);
      this.#stage.builds?.noteTerms(this.#index, terms);
    }
    if (isTapeError(result)) refusals.set(result.code, (refusals.get(result.code) ?? 0) + 1);
    const at = kindOf(boundary);
    const special = this.#specialAppend(boundary);
    const due = (place: Fault["at"]): Fault | undefined => this.#due(place, boundary.edge, boundary.name);
    const fault = (at === undefined ? undefined : due(at)) ?? (special === undefined ? undefined : due(special));
    if (fault === undefined) return undefined;
    const { kind, forMs } = fault;
    const process = this.#process!;
    if (kind === "crash") this.#die(process);
    if (kind === "crash" || kind === "pause") this.#bringBack(process, forMs);
    if (kind === "hang") return { hangMs: forMs ?? 0 };
    return kind === "crash" || kind === "pause" || kind === "fail" || kind === "busy" ? kind : undefined;
  }

  #die(process: TestProcess): void {
    this.#stage.shards?.noteDeath(process.name);
    process.crash();
  }

  #bringBack(process: TestProcess, forMs: number | undefined): void {
    if (forMs === undefined) return;
    this.#stage.time.after(forMs, () => {
      if (process !== this.#process) return;
      if (process.state === "crashed") this.boot();
      else process.resume();
    });
  }

  #specialAppend({ name, result }: Boundary): "dispatch" | "commit" | undefined {
    if (name === "within.commit") return "commit";
    return typeof result === "object" && result !== null && this.#authorisations.has(result) ? "dispatch" : undefined;
  }

  /** The same store; notes the results of appends that authorise an effect, and what is read of journals. */
  #noting<S extends Store>(store: S): S {
    const { fenced, read } = store;
    const wakes = this.#wakes!;
    const append: Store["fenced"]["append"] = async (fence, entry) => {
      const appended = await fenced.append(fence, entry);
      if (entry.records.some(({ kind }) => kind === "effect.dispatched")) this.#authorisations.add(appended);
      wakes.noteAppend(fence, entry);
      return appended;
    };
    const journal: Store["read"]["journal"] = async (of, target, page) => {
      const found = await read.journal(of, target, page);
      if ("journal" in target && page?.inbox !== true) wakes.noteRead(target.journal, found.length);
      return found;
    };
    return {
      ...store,
      fenced: new Proxy(fenced, { get: (of, key) => (key === "append" ? append : Reflect.get(of, key)) }),
      read: new Proxy(read, { get: (of, key) => (key === "journal" ? journal : Reflect.get(of, key)) }),
    };
  }

  #wireFault(request: WireRequest): Fault | undefined {
    if (request.url === "/v1/store/wake-hints") return undefined; // hints have a loss rate of their own
    const fromClient = /\/(signals|cancel)$|^\/v1\/(runs|values)/.test(request.url) && request.method !== "GET";
    for (const edge of ["before", "after"] as const) {
      const fault =
        (fromClient ? this.#due("client", edge, request.url) : undefined) ?? this.#due("wire", edge, request.url);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  /** The planned fault at this boundary, if any. */
  #due(at: Fault["at"], edge: Fault["edge"], boundary: string): Fault | undefined {
    const { plan, time, faultHits, healed, log } = this.#stage;
    const n = (this.#counts.get(`${at} ${edge}`) ?? 0) + 1;
    this.#counts.set(`${at} ${edge}`, n);
    if (healed) return undefined;
    const fault = plan.faults.find(
      (one) => one.replica === this.#index && one.at === at && one.edge === edge && one.n === n,
    );
    if (fault === undefined) return undefined;
    faultHits.push({ fault, at: time.now, boundary: `${edge} ${boundary}` });
    log("info", "simulation.fault", { fault: describeFault(fault), boundary });
    return fault;
  }
}

/** Terms that the process gets with this response. */
function termsIn({ name, result }: Boundary): Term[] {
  if (!Array.isArray(result)) return [];
  if (name === "claim.find") return result as Term[];
  if (name !== "intake.createRuns") return [];
  return (result as Awaited<ReturnType<Store["intake"]["createRuns"]>>).flatMap((one) =>
    one.ok && one.term !== undefined ? [one.term] : [],
  );
}

/** Polls that find no work are not counted: they would use up most faults. */
function kindOf(boundary: Boundary): Fault["at"] | undefined {
  const { what, name, edge, result } = boundary;
  if (what === "effect") return "effect";
  if (name === "fenced.append" || name === "within.commit" || name === "fenced.checkpoint" || name === "fenced.putBlob")
    return "append";
  if (name === "fenced.appendChunks") return "chunks";
  if (name.startsWith("intake.")) return "intake";
  if (name === "claim.renew") return "renew";
  if (name === "claim.find" || name === "claim.acquire") {
    return edge === "after" && Array.isArray(result) && result.length === 0 ? undefined : "claim";
  }
  return name === "read.journal" || name === "read.effects" || name === "read.run" ? "read" : undefined;
}
