import { fingerprint } from "../../base/canonical.ts";
import { type Log, silentLog } from "../../base/log.ts";
import { seededRandom } from "../../base/random.ts";
import { openStore } from "../../host/open-store.ts";
import type { Tape } from "../../host/tape.ts";
import { isTapeError } from "../../model/errors.ts";
import { createRunner } from "../../sdk/workflow.ts";
import { quietMs } from "../kit/settle.ts";
import { VirtualTime } from "../kit/virtual-time.ts";
import type { WorldLedger } from "../kit/world.ts";
import { SimulatedEffects } from "./effects.ts";
import { type Evidence, gather, orphans } from "./evidence.ts";
import { Person } from "./person.ts";
import type { Plan, PlannedRun } from "./plan.ts";
import { programs } from "./program.ts";
import { Replica, type Stage, tenant } from "./replica.ts";

export interface SimulateOptions {
  readonly log?: Log;
}

/** After the last fault: ten looks of the reconciler with back-off, a few terms of dead holders, and room. */
const patienceMs = 1_200_000;
/** Longer than a drain. */
const closeMs = 60_000;

/** Plays a plan to its end in virtual time, on the real SQLite store in memory, and gathers what can be said about it. */
export async function simulate(plan: Plan, options: SimulateOptions = {}): Promise<Evidence> {
  const time = new VirtualTime();
  const effects = new SimulatedEffects(time);
  const { once, thrice } = programs(effects);
  const runner = createRunner({ workflows: [once, thrice], effects: effects.all });
  const random = seededRandom(`store ${plan.seed}`);
  const store = await openStore("sqlite::memory:", { clock: time, random });
  const log: Log = (level, event, fields) => options.log?.(level, event, { now: time.now, ...fields });
  const stage: Stage = {
    plan,
    time,
    store,
    runner,
    calls: [],
    bites: [],
    refusals: new Set(),
    log: options.log ? log : silentLog,
    healed: false,
  };
  const play = new Play(stage, { once, thrice }, effects.ledger);
  try {
    await time.during(play.run());
    return await time.during(gather(stage, effects.ledger, play));
  } finally {
    await store.close();
  }
}

/** The world around the replicas: clients, people at gates, and time. */
class Play {
  readonly acknowledged: { readonly what: "run" | "signal" | "cancel"; readonly run: string; readonly key?: string }[] =
    [];
  readonly results: { readonly run: string; readonly status: string; readonly outcome: string }[] = [];
  readonly faults: string[] = [];
  readonly #stage: Stage;
  readonly #replicas: Replica[];
  readonly #workflows: ReturnType<typeof programs>;
  readonly #random;
  readonly #person: Person;

  constructor(stage: Stage, workflows: ReturnType<typeof programs>, ledger: WorldLedger) {
    this.#stage = stage;
    this.#workflows = workflows;
    this.#replicas = Array.from({ length: stage.plan.replicas }, (_, k) => new Replica(stage, k));
    this.#random = seededRandom(`clients ${stage.plan.seed}`);
    this.#person = new Person(stage, ledger, () => this.#tapes);
  }

  get #tapes(): readonly Tape[] {
    return this.#replicas.flatMap(({ tape }) => tape ?? []);
  }

  async run(): Promise<void> {
    await this.#play();
    this.faults.push(...this.#person.faults);
  }

  async #play(): Promise<void> {
    const { plan, time } = this.#stage;
    for (const replica of this.#replicas) await replica.boot();
    const clients = [
      ...plan.runs.map((run) => this.#start(run)),
      ...plan.runs.map((run) => this.#cancel(run)),
      ...plan.signals.map((signal) => this.#signal(signal.run, signal.gate, signal.atMs, signal.key)),
    ];
    while (time.now < plan.healAtMs) {
      await time.sleep(4_000);
      await this.#inspect();
      await this.#person.round();
    }
    if (!plan.heals) {
      for (const replica of this.#replicas) replica.cut();
      return;
    }
    this.#stage.healed = true;
    for (const replica of this.#replicas) await replica.heal(!this.#replicas.some(({ alive }) => alive));
    await Promise.all(clients);
    if (!(await this.#settle())) return;
    await time.sleep(2 * plan.ttlMs); // whoever comes late has come
    if (!(await this.#settle())) return;
    const closing = Promise.all(this.#replicas.map((replica) => replica.close())).then(() => true);
    const closed = await Promise.race([closing, time.sleep(closeMs).then(() => false)]);
    if (!closed) this.faults.push(`a replica did not close within ${closeMs} ms`);
  }

  /** Until nothing can happen any more. People answer whatever still waits for them. */
  async #settle(): Promise<boolean> {
    const { time, store } = this.#stage;
    for (const until = time.now + patienceMs; time.now < until; ) {
      await this.#answer();
      const busy = await this.#person.round();
      const runs = await store.read.runs(tenant);
      const quiet = await quietMs(store, tenant);
      if (quiet === Number.POSITIVE_INFINITY && !busy) return true;
      for (const { id, endedAt, status, outcome } of runs) {
        if (endedAt !== null) this.results.push({ run: id, status, outcome: fingerprint(outcome) });
      }
      await time.sleep(2_500);
    }
    this.faults.push(`not settled ${patienceMs} ms after the last fault`);
    return false;
  }

  async #answer(): Promise<void> {
    const { store } = this.#stage;
    const gates = await store.read.gates(tenant, { open: true });
    const runs = gates.length === 0 ? [] : await store.read.runs(tenant);
    for (const { run, pos, name } of gates) {
      const id = runs.find(({ journal }) => journal === run)!.id;
      await this.#signal(id, name, 0, `answer ${pos}`);
    }
  }

  async #inspect(): Promise<void> {
    const found = await orphans(this.#stage.store);
    this.faults.push(...found.map((fault) => `at ${this.#stage.time.now}: ${fault}`));
  }

  /** A client that insists: the same id again, by way of whoever is there, until somebody says yes. */
  async #start(run: PlannedRun): Promise<void> {
    const { time } = this.#stage;
    await time.sleep(run.atMs);
    for (;;) {
      const up = this.#tapes;
      const tape = up[this.#random.int(Math.max(1, up.length))];
      const options = { id: run.id, ...(run.usd === undefined ? {} : { budget: { usd: run.usd } }) };
      const trying = tape?.start(this.#workflows[run.workflow], run.program, options).then(
        () => true,
        (error: unknown) => this.#transient(error),
      );
      if (await Promise.race([trying ?? false, time.sleep(3_000).then(() => false)])) break;
      await time.sleep(500);
    }
    this.acknowledged.push({ what: "run", run: run.id });
  }

  #transient(error: unknown): false {
    const fine = ["TAPE_STORE_UNREACHABLE", "TAPE_OUTCOME_UNKNOWN", "TAPE_STORE_CLOSED"];
    if (!isTapeError(error) || !fine.includes(error.code)) this.faults.push(`a client was told: ${String(error)}`);
    return false;
  }

  async #signal(run: string, gate: string, atMs: number, key: string): Promise<void> {
    const { time, store } = this.#stage;
    await time.sleep(atMs);
    await this.#insist(run, async () => {
      await store.intake.signal(tenant, run, { name: gate, value: { key }, key });
      this.acknowledged.push({ what: "signal", run, key });
    });
  }

  async #cancel(run: PlannedRun): Promise<void> {
    if (run.cancelAtMs === undefined) return;
    const { time, store } = this.#stage;
    await time.sleep(run.cancelAtMs);
    await this.#insist(run.id, async () => {
      await store.intake.cancel(tenant, run.id, { reason: "the plan says so" });
      this.acknowledged.push({ what: "cancel", run: run.id });
    });
  }

  async #insist(_run: string, work: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (isTapeError(error, "TAPE_RUN_ENDED")) return;
        if (!isTapeError(error, "TAPE_RUN_UNKNOWN")) throw error;
        await this.#stage.time.sleep(1_000); // not started yet
      }
    }
  }
}

export type { Play };
