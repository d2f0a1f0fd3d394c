import { systemClock } from "../../src/base/clock.ts";
import { seededRandom } from "../../src/base/random.ts";
import { Tape } from "../../src/host/tape.ts";
import type { RunView, Store } from "../../src/store/contract/store.ts";
import type { CrashMode, CrashOptions } from "./crash-options.ts";
import { type Boundary, TestProcess } from "./process.ts";
import { type CrashRound, roundFaults } from "./round.ts";
import { type BodyCall, runnerIn } from "./runner.ts";
import { isSettled, quietMs } from "./settle.ts";
import { openVirtualStore } from "./virtual-tape.ts";
import { VirtualTime } from "./virtual-time.ts";

/** Besides waits that are skipped: back-offs, settle delays and ten looks of the reconciler fit in. */
const virtualBoundMs = 3_600_000;
const realBoundMs = 60_000;
const defaultTtlMs = 30_000;
/** Looks at a run that does not move are made less and less often: each costs, and in virtual time nobody minds. */
const firstLookMs = 100;
const lastLookMs = 5_000;

/** One round: the workflow from its start to its end, with the first process struck where `strike` says so. */
export async function runRound<I, O>(
  options: CrashOptions<I, O>,
  tenant: string,
  strike: (boundary: Boundary) => CrashMode | undefined,
): Promise<CrashRound> {
  options.ledger?.clear();
  await options.fresh?.();
  const stage = await Stage.open(options, tenant);
  try {
    return await stage.play(options, strike);
  } finally {
    await stage.close();
  }
}

const runId = "run";

/** All but what is run. */
type StageOptions = Omit<CrashOptions<unknown, unknown>, "workflow" | "input">;

class Stage {
  readonly #options: StageOptions;
  readonly #tenant: string;
  readonly #time: VirtualTime | undefined;
  readonly #store: Store;
  readonly #watch: Watch;
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
    this.#watch = new Watch(store, tenant, options.signals ?? []);
    this.#until = this.#now + this.#boundMs;
  }

  static async open(options: StageOptions, tenant: string): Promise<Stage> {
    const time = options.realTime === true ? undefined : new VirtualTime();
    const random = seededRandom(tenant);
    const opening = options.openStore?.(time ?? systemClock, random) ?? openVirtualStore(time!, random);
    const store = await (time?.during(opening) ?? opening);
    return new Stage(options, tenant, store, time);
  }

  async play<I, O>(
    options: CrashOptions<I, O>,
    strike: (boundary: Boundary) => CrashMode | undefined,
  ): Promise<CrashRound> {
    const { workflow, input } = options;
    const start = { ...options.start, id: runId };
    let struck: CrashMode | undefined;
    let tellStruck = (): void => {};
    const beingStruck = new Promise<void>((resolve) => {
      tellStruck = resolve;
    });
    const first = this.#process("first", (boundary) => {
      if (struck !== undefined) return undefined;
      struck = strike(boundary);
      if (struck === undefined) return undefined;
      tellStruck();
      return struck === "crash" ? "crash" : "pause";
    });
    const tape = await this.#open(first);
    const starting = tape.start(workflow, input, start).then(() => {});
    await this.#during(Promise.race([starting, beingStruck]));
    let run = await this.#pass(() => struck !== undefined);
    if (struck !== undefined) {
      const wakesAt = this.#now + 1.1 * this.#ttlMs;
      const second = await this.#open(this.#process("second"));
      await this.#during(second.start(workflow, input, start)); // its client asks again, as clients do
      if (struck === "zombie") {
        await this.#pass(() => this.#now >= wakesAt, wakesAt);
        await this.#during(this.#clock.sleep(wakesAt - this.#now));
        first.resume();
      }
      run = await this.#pass(() => false);
      if (struck === "zombie") {
        await this.#during(this.#clock.sleep(this.#ttlMs)); // whatever harm it may still do
        run = await this.#during(this.#watch.look());
      }
    }
    const effects = await this.#during(this.#store.read.effects(this.#tenant));
    const round: CrashRound = {
      tenant: this.#tenant,
      store: this.#store,
      run: run!,
      effects,
      calls: this.#calls,
      struck: struck !== undefined,
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

  #process(name: string, strike?: (boundary: Boundary) => "crash" | "pause" | undefined): TestProcess {
    return new TestProcess({ name, clock: this.#clock, store: this.#store, ...(strike && { strike }) });
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
        report: false, // what is no truth is no boundary to crash at
      }),
    );
    this.#tapes.push({ process, tape });
    return tape;
  }

  /** Lets time pass until the run has settled, or waits for what never comes, or it is enough; never skips `wakesAt`. */
  async #pass(enough: () => boolean, wakesAt = Number.POSITIVE_INFINITY): Promise<RunView | undefined> {
    let before = "";
    let wasQuiet = false;
    for (let still = 0, lookMs = firstLookMs; ; ) {
      const run = await this.#during(this.#watch.look());
      if ((run !== undefined && isSettled(run)) || still > 1 || enough()) return run;
      if (this.#now > this.#until)
        throw new Error(`not settled after ${this.#boundMs} ms: ${run?.status ?? "not started"}`);
      const moved = `${run?.status} ${this.#watch.answered} ${this.#calls.length}`;
      lookMs = moved === before ? Math.min(lastLookMs, this.#ttlMs / 2, 2 * lookMs) : firstLookMs;
      before = moved;
      const quiet = await this.#during(quietMs(this.#store, this.#tenant));
      if (quiet === Number.POSITIVE_INFINITY) still++;
      else if (quiet > 1_000 && !wasQuiet) {
        wasQuiet = true; // a gate may have opened since we looked: whoever answers it must look once more
        lookMs = firstLookMs;
      } else if (quiet > 1_000 && this.#time !== undefined) {
        const skipped = Math.min(quiet - 1, Math.max(0, wakesAt - this.#now));
        this.#time.jump(skipped);
        this.#until += skipped;
        wasQuiet = false;
        lookMs = firstLookMs;
      } else wasQuiet = false;
      const rest = this.#time === undefined ? 10 : Math.min(lookMs, Math.max(1, wakesAt - this.#now));
      await this.#during(this.#clock.sleep(rest));
    }
  }
}

/** The world outside: looks at the run, and answers its gates. */
class Watch {
  readonly #store: Store;
  readonly #tenant: string;
  readonly #left: { readonly gate: { readonly name: string }; readonly value: unknown }[];
  answered = 0;

  constructor(store: Store, tenant: string, signals: NonNullable<StageOptions["signals"]>) {
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
      this.answered++;
    }
    return runs.find(({ id }) => id === runId);
  }
}
