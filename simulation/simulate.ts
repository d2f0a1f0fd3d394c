import { fingerprint } from "../src/base/canonical.ts";
import type { Clock } from "../src/base/clock.ts";
import { type Log, silentLog } from "../src/base/log.ts";
import { seededRandom } from "../src/base/random.ts";
import type { Tape } from "../src/host/tape.ts";
import { isTapeError } from "../src/model/errors.ts";
import { createRunner, type Runner } from "../src/sdk/workflow.ts";
import { sealedStore } from "../src/seal/sealed-store.ts";
import type { TestProcess } from "../testkit/kit/process.ts";
import { VirtualTime } from "../testkit/kit/virtual-time.ts";
import type { WorldLedger } from "../testkit/kit/world.ts";
import { AlarmService } from "./alarm-service.ts";
import { BuildClients } from "./build-clients.ts";
import { CallerClients } from "./caller-clients.ts";
import { Clients } from "./clients.ts";
import { WorldCodec } from "./codec.ts";
import { SimulatedEffects } from "./effects.ts";
import { collectEvidence, type Evidence, type Witnesses } from "./evidence.ts";
import { GuardedClients } from "./guarded-clients.ts";
import { approver, guardedName } from "./guarded-gate.ts";
import { type InsideEvent, InsideWork } from "./inside.ts";
import { type LaneResult, LaneWork } from "./lanes.ts";
import { type ModelLedger, ModelWork } from "./models.ts";
import { Neighbours } from "./neighbours.ts";
import { ObjectClients } from "./object-clients.ts";
import { roster } from "./objects.ts";
import { SimulatedOperator } from "./operator.ts";
import { type OrphanReport, OrphanWatch } from "./orphan-watch.ts";
import { pinnedIn } from "./pinned.ts";
import type { Plan } from "./plan.ts";
import type { BuildName } from "./plan-builds.ts";
import { usesObjects } from "./plan-objects.ts";
import { programs } from "./program.ts";
import { QueueClients, queuesOf } from "./queue-clients.ts";
import { Replica } from "./replica.ts";
import { SimulatedResolver } from "./resolver.ts";
import { Retainers } from "./retainers.ts";
import { Rewinder } from "./rewinder.ts";
import { ScheduleClients } from "./schedule-clients.ts";
import { type ScopeSight, ScopeWork } from "./scope-work.ts";
import { ShardClients } from "./shard-clients.ts";
import { SharedStore } from "./shared-store.ts";
import { callsAtRest, restOf, sinkCaughtUp } from "./sink-rest.ts";
import { type FaultHit, type Stage, serverOn, tenant } from "./stage.ts";
import { steppedClock, unstepped } from "./stepped-clock.ts";
import { Strangers } from "./strangers.ts";
import { StreamReader } from "./stream-reader.ts";
import { type StreamCall, StreamWork } from "./streaming.ts";
import { Sweeper } from "./sweeper.ts";
import { TalkClients } from "./talk-clients.ts";
import { TrialLedger, TrialWork } from "./trials.ts";
import { ValueClients } from "./value-clients.ts";
import { Walkers } from "./walkers.ts";
import { WorldSink } from "./world-sink.ts";

export interface SimulateOptions {
  readonly log?: Log;
  /** Uses a new database instead of a reused one. */
  readonly fresh?: boolean;
}

/**
 * After the last fault: ten observations of the reconciler with back-off, a few terms of dead holders, and a margin.
 */
const settleTimeoutMs = 1_200_000;
/** Interval between checks of the tables while faults happen. */
const checkEveryMs = 6_000;
/** Interval between checks while everything settles and operators act. */
const settleMs = 2_500;
/** Longer than a drain. */
const closeMs = 60_000;

/** Simulates a plan in virtual time, on the real SQLite store in memory, and collects the evidence. */
export async function simulate(plan: Plan, options: SimulateOptions = {}): Promise<Evidence> {
  const time = new VirtualTime();
  const effects = new SimulatedEffects(time);
  const laneResults: LaneResult[] = [];
  const tokens: string[] = [];
  const onToken = (token: string): void => {
    if (!tokens.includes(token)) tokens.push(token);
  };
  const trials = new TrialLedger(time);
  const insideEvents: InsideEvent[] = [];
  const streamCalls: StreamCall[] = [];
  const models: ModelLedger = { calls: [], answers: [] };
  const scopeSights: ScopeSight[] = [];
  const programsOn = ({ name, clock }: Pick<TestProcess, "name" | "clock">): ReturnType<typeof programs> =>
    programs(
      effects,
      new LaneWork(name, clock, seededRandom(`local ${plan.seed} ${name}`), laneResults),
      onToken,
      new TrialWork(name, clock, trials),
      worksOn({ name, clock }, time, { insideEvents, streamCalls, models, scopeSights }),
    );
  const runnerOf = runnersOf(plan, effects);
  const workflows = programsOn({ name: "server", clock: time });
  const runner = runnerOf(workflows);
  const fresh = options.fresh === true || plan.rewind !== undefined;
  const clock = steppedClock(time, plan.wallStep);
  const shared = await SharedStore.open(time, seededRandom(`store ${plan.seed}`), fresh, clock);
  const log: Log = (level, event, fields) => options.log?.(level, event, { now: time.now, ...fields });
  const deps = { plan, time, shared, runner };
  const { serverless, shards } = plan;
  const alarmService = serverless && new AlarmService({ ...deps, plan: { ...plan, serverless } });
  if (alarmService !== undefined) shared.store = alarmService.armed(shared.bare);
  const codec = codecFor(plan, shared);
  const faultHits: FaultHit[] = [];
  const builds = plan.builds && new BuildClients(plan.builds, time);
  const stage: Stage = {
    ...deps,
    shards:
      shards && new ShardClients({ plan: { ...plan, shards }, time, faultHits, log: options.log ? log : silentLog }),
    alarmService,
    codec,
    builds,
    runnerOn: (process, replica) =>
      runnerOf(programsOn(process), builds && { build: builds.buildOf(replica), clock: process.clock }),
    orphanWatch: new OrphanWatch(shared, tenant, unstepped(plan.wallStep)),
    server: serverOn(deps),
    sweeper: new Sweeper(time, plan.seed),
    sink: plan.sink && new WorldSink(plan.sink, time, plan.seed),
    calls: [],
    faultHits,
    laneResults,
    tokens,
    trialCalls: trials.calls,
    insideEvents,
    streamCalls,
    models,
    ...{ scopeSights, wakes: [] },
    refusals: new Map(),
    log: options.log ? log : silentLog,
    healed: false,
    storeCalls: 0,
  };
  const simulation = new SimulationRun(stage, workflows, effects.ledger);
  try {
    await time.during(simulation.run());
    return await time.during(collectEvidence(stage, effects.ledger, simulation));
  } finally {
    await time.during(shared.close()); // writes in flight at the cut-off are still committed
  }
}

/** The runner of a process with these workflows. */
const runnersOf =
  (plan: Plan, effects: SimulatedEffects) =>
  (
    { once, thrice, limited }: ReturnType<typeof programs>,
    builds?: { readonly build: BuildName; readonly clock: Clock },
  ): Runner =>
    createRunner({
      ...(builds !== undefined && { build: builds.build }),
      workflows: [once, thrice, limited, ...(builds === undefined ? [] : [pinnedIn(builds.build, builds.clock)])],
      effects: effects.all,
      queues: queuesOf(plan.queues),
      objects: usesObjects(plan) ? [roster] : [],
    });

/** The bodies of one process, each with the ledger that it fills. */
function worksOn(
  { name, clock }: Pick<TestProcess, "name" | "clock">,
  time: VirtualTime,
  ledgers: {
    insideEvents: InsideEvent[];
    streamCalls: StreamCall[];
    models: ModelLedger;
    scopeSights: ScopeSight[];
  },
): readonly [InsideWork, StreamWork, ModelWork, ScopeWork] {
  const { insideEvents, streamCalls, models, scopeSights } = ledgers;
  return [
    new InsideWork(clock, time, insideEvents),
    new StreamWork(name, clock, streamCalls),
    new ModelWork(name, clock, models),
    new ScopeWork(name, scopeSights),
  ];
}

/** With a codec, clients and judges see payloads through it, as the replicas do. */
function codecFor({ codec: encrypts, seed }: Plan, shared: SharedStore): WorldCodec | undefined {
  if (!encrypts) return undefined;
  const codec = new WorldCodec();
  shared.store = sealedStore(shared.bare, { codec: codec.of(0, seededRandom(`codec of clients ${seed}`)) });
  return codec;
}

/** One simulation: the replicas, the clients around them, and time. */
class SimulationRun implements Witnesses {
  readonly clients: Clients;
  readonly operator: SimulatedOperator;
  readonly values: ValueClients;
  readonly schedules: ScheduleClients;
  readonly queues: QueueClients;
  readonly objects: ObjectClients;
  readonly strangers: Strangers;
  readonly guarded: GuardedClients;
  readonly talk: TalkClients;
  readonly callers: CallerClients;
  readonly streamReader: StreamReader;
  readonly neighbours: Neighbours;
  readonly walkers: Walkers;
  readonly rewinder: Rewinder;
  readonly retainers: Retainers;
  readonly results: { readonly run: string; readonly status: string; readonly outcome: string }[] = [];
  readonly faults: string[] = [];
  /** When the last fault was healed, and when everything had settled after that. */
  healedAt: number | undefined;
  settledAt: number | undefined;
  callsAtRest: number | undefined;
  readonly #stage: Stage;
  readonly #replicas: Replica[];
  readonly #resolver: SimulatedResolver;
  #lastRecorded: OrphanReport | undefined;

  constructor(stage: Stage, workflows: ReturnType<typeof programs>, ledger: WorldLedger) {
    this.#stage = stage;
    this.#replicas = Array.from({ length: stage.plan.replicas }, (_, k) => new Replica(stage, k));
    if (stage.shards !== undefined) stage.shards.replicas = this.#replicas;
    if (stage.builds !== undefined) stage.builds.replicas = this.#replicas;
    if (stage.alarmService !== undefined) {
      stage.alarmService.replicas = () => this.#replicas.flatMap(({ name, tape }) => (tape ? [{ name, tape }] : []));
    }
    this.clients = new Clients(stage, workflows, () => this.#tapes);
    this.operator = new SimulatedOperator(stage, this.clients);
    this.values = new ValueClients(stage, this.clients);
    this.schedules = new ScheduleClients(stage, this.clients, workflows);
    this.queues = new QueueClients(stage, this.clients, workflows);
    this.objects = new ObjectClients(stage, this.clients);
    this.strangers = new Strangers(stage);
    this.guarded = new GuardedClients(stage);
    this.talk = new TalkClients(stage, this.clients, workflows);
    this.callers = new CallerClients(stage);
    this.streamReader = new StreamReader(stage);
    this.neighbours = new Neighbours(stage);
    this.walkers = new Walkers(stage);
    this.rewinder = new Rewinder(stage);
    this.retainers = new Retainers(stage);
    this.#resolver = new SimulatedResolver(stage, ledger, this.operator);
  }

  get #tapes(): readonly Tape[] {
    return this.#replicas.flatMap(({ tape }) => tape ?? []);
  }

  async run(): Promise<void> {
    await this.#run();
    this.faults.push(...this.clients.faults, ...this.operator.faults);
  }

  async #run(): Promise<void> {
    const { plan, time, faultHits } = this.#stage;
    for (const replica of this.#replicas) replica.boot();
    let clientsBusy = true;
    const allClients = Promise.all([
      this.clients.run(),
      this.operator.run(),
      this.values.run(),
      this.schedules.run(),
      this.queues.run(),
      this.objects.run(),
      this.strangers.run(),
      this.guarded.run(),
      this.talk.run(),
      this.callers.run(),
      this.streamReader.run(),
      this.neighbours.run(),
      this.walkers.run(),
      this.rewinder.run(),
      this.retainers.run(),
      this.#stage.shards?.run(),
      this.#stage.builds?.run(this.clients, this.operator),
    ]).then(() => {
      clientsBusy = false;
    });
    while (time.now < plan.healAtMs) {
      await time.sleep(checkEveryMs);
      await this.#checkOrphans();
      const busy = await this.#resolver.round();
      if (!clientsBusy && !busy && (await this.#stage.orphanWatch.quiet())) break;
    }
    if (!plan.heals) {
      for (const replica of this.#replicas) replica.cut();
      return;
    }
    this.#stage.healed = true;
    this.healedAt = time.wall();
    this.#stage.shards?.noteHeal();
    for (const replica of this.#replicas) replica.heal(!this.#replicas.some(({ alive }) => alive));
    this.#stage.builds?.heal();
    await allClients;
    if (!(await this.#waitUntilSettled())) return;
    this.settledAt = time.wall();
    // A paused or delayed process may act late.
    if (faultHits.some(({ fault }) => fault.kind !== "fail" && fault.kind !== "busy") || plan.rewind !== undefined) {
      await time.sleep(2 * plan.ttlMs);
      if (!(await this.#waitUntilSettled())) return;
    }
    await this.#letSinkRest();
    // The holder of a singleton renews, and a watcher of values polls.
    if (plan.singleton === undefined && plan.values.length === 0)
      this.callsAtRest = await callsAtRest(this.#stage, settleTimeoutMs);
    const closing = Promise.all(this.#replicas.map((replica) => replica.close())).then(() => true);
    const closed = await Promise.race([closing, time.sleep(closeMs).then(() => false)]);
    if (!closed) this.faults.push(`a replica did not close within ${closeMs} ms`);
  }

  /** Waits until nothing can happen any more. Clients answer the gates that are still open. */
  async #waitUntilSettled(): Promise<boolean> {
    const { time, orphanWatch } = this.#stage;
    for (const until = time.now + settleTimeoutMs; time.now < until; ) {
      await this.#answerGates();
      await this.#deleteSchedules();
      await this.clients.cancelAgain();
      const busy = await this.#resolver.round();
      await this.#recordResults();
      if (!busy && (await orphanWatch.quiet())) return true;
      await time.sleep(settleMs);
    }
    this.faults.push(`not settled ${settleTimeoutMs} ms after the last fault`);
    return false;
  }

  /** The sink gets all events; then nothing writes a record any more. */
  async #letSinkRest(): Promise<void> {
    const { sink } = this.#stage;
    if (sink === undefined) return;
    if (!(await sinkCaughtUp(this.#stage, settleTimeoutMs))) this.faults.push("the sink did not catch up");
    else await restOf(this.#stage, sink);
  }

  /** A schedule created late, after its deletion, would fire forever. */
  async #deleteSchedules(): Promise<void> {
    const { orphanWatch, shared } = this.#stage;
    const { schedules } = await orphanWatch.read();
    for (const { id } of schedules) await shared.store.intake.deleteSchedule(tenant, id);
  }

  /** Records the results that a client would have received by now. */
  async #recordResults(): Promise<void> {
    const report = await this.#stage.orphanWatch.read();
    if (report === this.#lastRecorded) return;
    this.#lastRecorded = report;
    for (const { id, endedAt, status, outcome } of report.runs) {
      if (endedAt !== null) this.results.push({ run: id, status, outcome: fingerprint(outcome) });
    }
  }

  async #answerGates(): Promise<void> {
    const { orphanWatch, shared, time, tokens } = this.#stage;
    const { gates, runs } = await orphanWatch.read();
    for (const { run, pos, name, callback } of gates) {
      const id = runs.find(({ journal }) => journal === run)!.id;
      const key = `answer ${pos}`;
      try {
        if (callback !== undefined) {
          const token = tokens.find((one) => one.startsWith(`${run}.${pos}.`));
          if (token !== undefined) await shared.store.intake.deliver(tenant, token, { value: { key } });
          continue;
        }
        const answer = name === guardedName ? { value: pos, by: approver } : { value: { key } };
        await shared.store.intake.signal(tenant, id, { name, ...answer, key });
        this.clients.acknowledge({ what: "signal", run: id, key, requestedAt: time.wall() });
      } catch (error) {
        if (!isTapeError(error, "TAPE_RUN_ENDED")) throw error;
      }
    }
  }

  async #checkOrphans(): Promise<void> {
    const found = await this.#stage.orphanWatch.orphans();
    this.faults.push(...found.map((fault) => `at ${this.#stage.time.now}: ${fault}`));
  }
}
