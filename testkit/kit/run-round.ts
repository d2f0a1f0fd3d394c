import { systemClock } from "../../src/base/clock.ts";
import { seededRandom } from "../../src/base/random.ts";
import { Tape } from "../../src/host/tape.ts";
import type { RunView, Store } from "../../src/store/contract/store.ts";
import type { CrashMode, CrashOptions } from "./crash-options.ts";
import { type Boundary, TestProcess } from "./process.ts";
import { type CrashRound, roundFaults } from "./round.ts";
import { type BodyCall, runnerIn } from "./runner.ts";
import { idleMs, isSettled } from "./settle.ts";
import { openVirtualStore } from "./virtual-tape.ts";
import { VirtualTime } from "./virtual-time.ts";

/** Not counting skipped waits: enough for back-offs, settle delays and ten observations of the reconciler. */
const virtualBoundMs = 3_600_000;
const realBoundMs = 60_000;
const defaultTtlMs = 30_000;
/** A run that does not change is polled less and less often: each poll costs real time, while virtual time is free. */
const minPollMs = 100;
const maxPollMs = 5_000;

/** One round: the workflow from start to end, with the first process interrupted where `crashPointAt` says so. */
export async function runRound<I, O>(
  options: CrashOptions<I, O>,
  tenant: string,
  crashPointAt: (boundary: Boundary) => CrashMode | undefined,
): Promise<CrashRound> {
  options.ledger?.clear();
  await options.fresh?.();
  const stage = await Stage.open(options, tenant);
  try {
    return await stage.run(options, crashPointAt);
  } finally {
    await stage.close();
  }
}

const runId = "run";

/** All options but the workflow and its input. */
type StageOptions = Omit<CrashOptions<unknown, unknown>, "workflow" | "input">;

class Stage {
  readonly #options: StageOptions;
  readonly #tenant: string;
  readonly #time: VirtualTime | undefined;
  readonly #store: Store;
  readonly #client: Client;
  readonly #tapes: { readonly process: TestProcess; readonly tape: Tape }[] = [];
  readonly #calls: BodyCall[] = [];
  readonly #ttlMs: number;
  #until: number;

  private constructor(options: StageOptions, tenant: string, store: Store, time?: VirtualTime) {
    this.#options = options;
    this.#tenant = tenant;
    this.#store = store;
    this.#time = time;
    this.#ttlMs = options.leaseTtlMs ?? defaultTtlMs;
    this.#client = new Client(store, tenant, options.signals ?? []);
    this.#until = this.#now + this.#boundMs;
  }

  static async open(options: StageOptions, tenant: string): Promise<Stage> {
    const time = options.realTime === true ? undefined : new VirtualTime();
    const random = seededRandom(tenant);
    const opening = options.openStore?.(time ?? systemClock, random) ?? openVirtualStore(time!, random);
    const store = await (time?.during(opening) ?? opening);
    return new Stage(options, tenant, store, time);
  }

  async run<I, O>(
    options: CrashOptions<I, O>,
    crashPointAt: (boundary: Boundary) => CrashMode | undefined,
  ): Promise<CrashRound> {
    const { workflow, input } = options;
    const start = { ...options.start, id: runId };
    let mode: CrashMode | undefined;
    let notifyReached = (): void => {};
    const boundaryReached = new Promise<void>((resolve) => {
      notifyReached = resolve;
    });
    const first = this.#process("first", (boundary) => {
      if (mode !== undefined) return undefined;
      mode = crashPointAt(boundary);
      if (mode === undefined) return undefined;
      notifyReached();
      return mode === "crash" ? "crash" : "pause";
    });
    const tape = await this.#open(first);
    const starting = tape.start(workflow, input, start).then(() => {});
    await this.#during(Promise.race([starting, boundaryReached]));
    let run = await this.#advance(() => mode !== undefined);
    if (mode !== undefined) {
      const resumeAt = this.#now + 1.1 * this.#ttlMs;
      const second = await this.#open(this.#process("second"));
      await this.#during(second.start(workflow, input, start)); // its client repeats the start, as clients do
      if (mode === "zombie") {
        await this.#advance(() => this.#now >= resumeAt, resumeAt);
        await this.#during(this.#clock.sleep(resumeAt - this.#now));
        first.resume();
      }
      run = await this.#advance(() => false);
      if (mode === "zombie") {
        await this.#during(this.#clock.sleep(this.#ttlMs)); // time for any harm the zombie may still do
        run = await this.#during(this.#client.poll());
      }
    }
    const effects = await this.#during(this.#store.read.effects(this.#tenant));
    const round: CrashRound = {
      tenant: this.#tenant,
      store: this.#store,
      run: run!,
      effects,
      calls: this.#calls,
      reached: mode !== undefined,
      ledger: options.ledger,
    };
    const faults = await this.#during(roundFaults(round, undefined, options.outcome));
    await this.#during(Promise.resolve(options.check?.(round)));
    return { ...round, faults };
  }

  async close(): Promise<void> {
    for (const { process, tape } of this.#tapes) if (process.state !== "crashed") await this.#during(tape.close());
    await this.#during(this.#store.close());
  }

  get #clock() {
    return this.#time ?? systemClock;
  }

  get #now(): number {
    return this.#clock.mono();
  }

  get #boundMs(): number {
    return this.#time === undefined ? realBoundMs : virtualBoundMs;
  }

  #during<T>(work: Promise<T>): Promise<T> {
    return this.#time?.during(work) ?? work;
  }

  #process(name: string, crashPointAt?: (boundary: Boundary) => "crash" | "pause" | undefined): TestProcess {
    return new TestProcess({ name, clock: this.#clock, store: this.#store, ...(crashPointAt && { crashPointAt }) });
  }

  async #open(process: TestProcess): Promise<Tape> {
    const tape = await this.#during(
      Tape.open({
        store: process.store,
        runner: runnerIn(process, this.#options.runner, this.#calls),
        tenant: this.#tenant,
        leaseTtl: this.#ttlMs,
        random: seededRandom(`${this.#tenant} ${process.name}`),
        clock: process.clock,
        report: false, // process reports are no truth, so they are no boundary to crash at
      }),
    );
    this.#tapes.push({ process, tape });
    return tape;
  }

  /**
   * Lets time pass until the run has settled, waits for something that never comes, or `enough` is true. Never skips
   * past `resumeAt`.
   */
  async #advance(enough: () => boolean, resumeAt = Number.POSITIVE_INFINITY): Promise<RunView | undefined> {
    let before = "";
    let wasIdle = false;
    for (let idlePolls = 0, pollMs = minPollMs; ; ) {
      const run = await this.#during(this.#client.poll());
      if ((run !== undefined && isSettled(run)) || idlePolls > 1 || enough()) return run;
      if (this.#now > this.#until)
        throw new Error(`not settled after ${this.#boundMs} ms: ${run?.status ?? "not started"}`);
      const moved = `${run?.status} ${this.#client.signalsSent} ${this.#calls.length}`;
      pollMs = moved === before ? Math.min(maxPollMs, this.#ttlMs / 2, 2 * pollMs) : minPollMs;
      before = moved;
      const idleFor = await this.#during(idleMs(this.#store, this.#tenant));
      if (idleFor === Number.POSITIVE_INFINITY) idlePolls++;
      else if (idleFor > 1_000 && !wasIdle) {
        wasIdle = true; // a gate may have opened since the last poll, so poll once more before skipping
        pollMs = minPollMs;
      } else if (idleFor > 1_000 && this.#time !== undefined) {
        const skipped = Math.min(idleFor - 1, Math.max(0, resumeAt - this.#now));
        this.#time.jump(skipped);
        this.#until += skipped;
        wasIdle = false;
        pollMs = minPollMs;
      } else wasIdle = false;
      const waitMs = this.#time === undefined ? 10 : Math.min(pollMs, Math.max(1, resumeAt - this.#now));
      await this.#during(this.#clock.sleep(waitMs));
    }
  }
}

/** The run's surroundings: polls the run and answers its gates. */
class Client {
  readonly #store: Store;
  readonly #tenant: string;
  readonly #left: NonNullable<StageOptions["signals"]>[number][];
  signalsSent = 0;

  constructor(store: Store, tenant: string, signals: NonNullable<StageOptions["signals"]>) {
    this.#store = store;
    this.#tenant = tenant;
    this.#left = [...signals];
  }

  async poll(): Promise<RunView | undefined> {
    const { read, intake } = this.#store;
    const runs = await read.runs(this.#tenant);
    for (const { run, pos, name } of this.#left.length === 0 ? [] : await read.gates(this.#tenant, { open: true })) {
      const k = this.#left.findIndex(({ gate }) => gate.name === name);
      const view = runs.find(({ journal }) => journal === run);
      if (k < 0 || view === undefined) continue;
      const { value, times } = this.#left[k]!;
      if (times === undefined) this.#left.splice(k, 1);
      const key = times === undefined ? `signal ${this.#left.length}` : `signal to gate ${pos}`;
      const { duplicate } = await intake.signal(this.#tenant, view.id, { name, value, key });
      if (!duplicate) this.signalsSent++;
    }
    return runs.find(({ id }) => id === runId);
  }
}
