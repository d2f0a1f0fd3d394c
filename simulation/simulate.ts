import { fingerprint } from "../src/base/canonical.ts";
import { type Log, silentLog } from "../src/base/log.ts";
import { seededRandom } from "../src/base/random.ts";
import type { Tape } from "../src/host/tape.ts";
import { isTapeError } from "../src/model/errors.ts";
import { createRunner, type Runner } from "../src/sdk/workflow.ts";
import type { TestProcess } from "../testkit/kit/process.ts";
import { VirtualTime } from "../testkit/kit/virtual-time.ts";
import type { WorldLedger } from "../testkit/kit/world.ts";
import { Clients } from "./clients.ts";
import { SimulatedEffects } from "./effects.ts";
import { type Evidence, gather, type Witnesses } from "./evidence.ts";
import { GuardedClients } from "./guarded.ts";
import { approver, guardedName } from "./guarded-gate.ts";
import { type Handed, LocalWork } from "./lanes.ts";
import { type OrphanReport, OrphanWatch } from "./lookout.ts";
import { Neighbours } from "./neighbours.ts";
import { SimulatedOperator } from "./operator.ts";
import { SimulatedResolver } from "./person.ts";
import type { Plan } from "./plan.ts";
import { programs } from "./program.ts";
import { Replica } from "./replica.ts";
import { Rewinder } from "./rewinder.ts";
import { ScheduleClients } from "./schedule-clients.ts";
import { SharedStore } from "./shared-store.ts";
import { type Stage, serverOn, tenant } from "./stage.ts";
import { steppedClock, unstepped } from "./stepped-clock.ts";
import { Strangers } from "./strangers.ts";
import { Sweeper } from "./sweeper.ts";
import { ValueClients } from "./value-clients.ts";
import { Walkers } from "./walkers.ts";

export interface SimulateOptions {
  readonly log?: Log;
  /** In a database of its own, not in one that others have used. */
  readonly fresh?: boolean;
}

/** After the last fault: ten looks of the reconciler with back-off, a few terms of dead holders, and room. */
const patienceMs = 1_200_000;
/** How often the tables are looked at while things go wrong. */
const inspectMs = 6_000;
/** How often they are looked at while all comes to rest, and people answer what waits for them. */
const settleMs = 2_500;
/** Longer than a drain. */
const closeMs = 60_000;

/** Plays a plan to its end in virtual time, on the real SQLite store in memory, and gathers what can be said about it. */
export async function simulate(plan: Plan, options: SimulateOptions = {}): Promise<Evidence> {
  const time = new VirtualTime();
  const effects = new SimulatedEffects(time);
  const handed: Handed[] = [];
  const programsOn = ({ name, clock }: Pick<TestProcess, "name" | "clock">): ReturnType<typeof programs> =>
    programs(effects, new LocalWork(name, clock, seededRandom(`local ${plan.seed} ${name}`), handed));
  const runnerOf = ({ once, thrice }: ReturnType<typeof programs>): Runner =>
    createRunner({ workflows: [once, thrice], effects: effects.all });
  const workflows = programsOn({ name: "server", clock: time });
  const runner = runnerOf(workflows);
  const fresh = options.fresh === true || plan.rewind !== undefined;
  const clock = steppedClock(time, plan.wallStep);
  const shared = await SharedStore.open(time, seededRandom(`store ${plan.seed}`), fresh, clock);
  const log: Log = (level, event, fields) => options.log?.(level, event, { now: time.now, ...fields });
  const deps = { plan, time, shared, runner };
  const stage: Stage = {
    ...deps,
    runnerOn: (process) => runnerOf(programsOn(process)),
    lookout: new OrphanWatch(shared, tenant, unstepped(plan.wallStep)),
    server: serverOn(deps),
    sweeper: new Sweeper(time, plan.seed),
    calls: [],
    bites: [],
    handed,
    refusals: new Map(),
    log: options.log ? log : silentLog,
    healed: false,
  };
  const play = new SimulationRun(stage, workflows, effects.ledger);
  try {
    await time.during(play.run());
    return await time.during(gather(stage, effects.ledger, play));
  } finally {
    await time.during(shared.close()); // what was under way when everybody was cut off is still written
  }
}

/** One simulation: the replicas, everybody around them, and time. */
class SimulationRun implements Witnesses {
  readonly clients: Clients;
  readonly operator: SimulatedOperator;
  readonly values: ValueClients;
  readonly schedules: ScheduleClients;
  readonly strangers: Strangers;
  readonly guarded: GuardedClients;
  readonly neighbours: Neighbours;
  readonly walkers: Walkers;
  readonly rewinder: Rewinder;
  readonly results: { readonly run: string; readonly status: string; readonly outcome: string }[] = [];
  readonly faults: string[] = [];
  /** When nothing went wrong any more, and when all had come to rest after that. */
  healedAt: number | undefined;
  settledAt: number | undefined;
  readonly #stage: Stage;
  readonly #replicas: Replica[];
  readonly #person: SimulatedResolver;
  #noted: OrphanReport | undefined;

  constructor(stage: Stage, workflows: ReturnType<typeof programs>, ledger: WorldLedger) {
    this.#stage = stage;
    this.#replicas = Array.from({ length: stage.plan.replicas }, (_, k) => new Replica(stage, k));
    this.clients = new Clients(stage, workflows, () => this.#tapes);
    this.operator = new SimulatedOperator(stage, this.clients);
    this.values = new ValueClients(stage, this.clients);
    this.schedules = new ScheduleClients(stage, this.clients, workflows);
    this.strangers = new Strangers(stage);
    this.guarded = new GuardedClients(stage);
    this.neighbours = new Neighbours(stage);
    this.walkers = new Walkers(stage);
    this.rewinder = new Rewinder(stage);
    this.#person = new SimulatedResolver(stage, ledger, this.operator);
  }

  get #tapes(): readonly Tape[] {
    return this.#replicas.flatMap(({ tape }) => tape ?? []);
  }

  async run(): Promise<void> {
    await this.#play();
    this.faults.push(...this.clients.faults, ...this.operator.faults);
  }

  async #play(): Promise<void> {
    const { plan, time, bites } = this.#stage;
    for (const replica of this.#replicas) replica.boot();
    let waiting = true;
    const everybody = Promise.all([
      this.clients.everybody(),
      this.operator.everything(),
      this.values.everything(),
      this.schedules.everything(),
      this.strangers.everything(),
      this.guarded.everything(),
      this.neighbours.everything(),
      this.walkers.everything(),
      this.rewinder.everything(),
    ]).then(() => {
      waiting = false;
    });
    while (time.now < plan.healAtMs) {
      await time.sleep(inspectMs);
      await this.#inspect();
      const busy = await this.#person.round();
      if (!waiting && !busy && (await this.#stage.lookout.quiet())) break;
    }
    if (!plan.heals) {
      for (const replica of this.#replicas) replica.cut();
      return;
    }
    this.#stage.healed = true;
    this.healedAt = time.wall();
    for (const replica of this.#replicas) replica.heal(!this.#replicas.some(({ alive }) => alive));
    await everybody;
    if (!(await this.#settle())) return;
    this.settledAt = time.wall();
    // Whoever was stopped, cut off or delayed may come late, or be missed late.
    if (bites.some(({ fault }) => fault.strike !== "fail" && fault.strike !== "busy") || plan.rewind !== undefined) {
      await time.sleep(2 * plan.ttlMs);
      if (!(await this.#settle())) return;
    }
    const closing = Promise.all(this.#replicas.map((replica) => replica.close())).then(() => true);
    const closed = await Promise.race([closing, time.sleep(closeMs).then(() => false)]);
    if (!closed) this.faults.push(`a replica did not close within ${closeMs} ms`);
  }

  /** Until nothing can happen any more. People answer whatever still waits for them. */
  async #settle(): Promise<boolean> {
    const { time, lookout } = this.#stage;
    for (const until = time.now + patienceMs; time.now < until; ) {
      await this.#answer();
      await this.#clear();
      await this.clients.cancelAgain();
      const busy = await this.#person.round();
      await this.#note();
      if (!busy && (await lookout.quiet())) return true;
      await time.sleep(settleMs);
    }
    this.faults.push(`not settled ${patienceMs} ms after the last fault`);
    return false;
  }

  /** A schedule that somebody made late, when it had been deleted already, would go on for ever. */
  async #clear(): Promise<void> {
    const { lookout, shared } = this.#stage;
    const { schedules } = await lookout.look();
    for (const { id } of schedules) await shared.store.intake.deleteSchedule(tenant, id);
  }

  /** What a client would have been told by now. */
  async #note(): Promise<void> {
    const sight = await this.#stage.lookout.look();
    if (sight === this.#noted) return;
    this.#noted = sight;
    for (const { id, endedAt, status, outcome } of sight.runs) {
      if (endedAt !== null) this.results.push({ run: id, status, outcome: fingerprint(outcome) });
    }
  }

  async #answer(): Promise<void> {
    const { lookout, shared, time } = this.#stage;
    const { gates, runs } = await lookout.look();
    for (const { run, pos, name } of gates) {
      const id = runs.find(({ journal }) => journal === run)!.id;
      const key = `answer ${pos}`;
      try {
        const answer = name === guardedName ? { value: pos, by: approver } : { value: { key } };
        await shared.store.intake.signal(tenant, id, { name, ...answer, key });
        this.clients.acknowledge({ what: "signal", run: id, key, asked: time.wall() });
      } catch (error) {
        if (!isTapeError(error, "TAPE_RUN_ENDED")) throw error;
      }
    }
  }

  async #inspect(): Promise<void> {
    const found = await this.#stage.lookout.orphans();
    this.faults.push(...found.map((fault) => `at ${this.#stage.time.now}: ${fault}`));
  }
}
