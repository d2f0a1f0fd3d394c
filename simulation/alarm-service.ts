import { AlarmKeeper } from "../src/alarm/alarm-keeper.ts";
import { type Alarms, boundOf, maxAheadBounds } from "../src/alarm/alarms.ts";
import { armedStore } from "../src/alarm/armed-store.ts";
import { cloudTasksAlarms } from "../src/alarm/cloud-tasks.ts";
import type { Clock } from "../src/base/clock.ts";
import { silentLog } from "../src/base/log.ts";
import { type Random, seededRandom } from "../src/base/random.ts";
import type { ServerlessOptions } from "../src/host/serverless.ts";
import type { Tape } from "../src/host/tape.ts";
import type { Runner } from "../src/sdk/workflow.ts";
import type { AgendaItem, Store } from "../src/store/contract/store.ts";
import { FakeCloudTasks } from "../testkit/kit/fake-cloud-tasks.ts";
import type { TestProcess } from "../testkit/kit/process.ts";
import type { VirtualTime } from "../testkit/kit/virtual-time.ts";
import { chance } from "./draw.ts";
import type { PlannedServerless } from "./plan-serverless.ts";
import type { SharedStore } from "./shared-store.ts";
import { tenant } from "./tenants.ts";

/** The agenda at one moment, and the alarms that were set then. */
export interface AgendaCheck {
  /** Wall time. */
  readonly at: number;
  /** When the next work is due, from now. */
  readonly dueInMs: number;
  /** How long the oldest work has been due. */
  readonly lateMs: number;
  /** When the next alarm fires, from now; Infinity: none is set. */
  readonly alarmInMs: number;
  /** Whether the service was calling a replica about an alarm. */
  readonly boundMs: number;
}

const checkEveryMs = 1_000;
/** A service gives a call up and repeats it, as Cloud Tasks does after its dispatch deadline. */
const dispatchMs = 60_000;
const sweepMs = 20_000;

interface AlarmServiceDeps {
  readonly plan: { readonly seed: number | string; readonly serverless: PlannedServerless };
  readonly time: VirtualTime;
  readonly shared: SharedStore;
  readonly runner: Runner;
}

/** The service that calls replicas of a serverless world: at the times of their alarms, and for wake-ups. */
export class AlarmService {
  readonly checks: AgendaCheck[] = [];
  /** Calls that found the agenda empty or not due yet, and those that were made twice because a name was taken. */
  readonly tasks: FakeCloudTasks;
  /** Replicas that are up. */
  tapes: () => readonly Tape[] = () => [];
  readonly #deps: AlarmServiceDeps;
  readonly #random: Random;
  readonly #boundMs: number;

  constructor(deps: AlarmServiceDeps) {
    const { plan, time, shared } = deps;
    this.#deps = deps;
    this.#random = seededRandom(`alarm service ${plan.seed}`);
    this.#boundMs = boundOf(shared.bare.transactionBoundMs);
    const { clockOffMs, refused, lost } = plan.serverless;
    this.tasks = new FakeCloudTasks({
      clock: time,
      clockOffMs,
      maxBackoffMs: 10_000,
      dispatch: () => this.#sweep(),
      fault: () => (chance(this.#random, refused) ? "refuse" : chance(this.#random, lost) ? "lost" : undefined),
    });
    this.#watch();
  }

  /** What a replica opens its app with. */
  optionsOf(process: TestProcess): ServerlessOptions {
    const fetch = (url: string, init: RequestInit): Promise<Response> =>
      process.callUpstream("alarm", () => this.tasks.fetch(url, init));
    return { alarms: this.#alarms(process.clock, fetch), waker: { wake: (reactor) => this.#wake(reactor) } };
  }

  /** The same store for clients that write without a replica. */
  armed(store: Store): Store {
    const { time } = this.#deps;
    const alarms = this.#alarms(time, this.tasks.fetch);
    const options = { tenant, clock: time, log: silentLog, transactionBoundMs: store.transactionBoundMs };
    const patient: Alarms = { ...alarms, set: (alarm) => untilDone(() => alarms.set(alarm)) };
    return armedStore(store, new AlarmKeeper({ ...options, alarms: patient }));
  }

  #alarms(clock: Clock, fetch: (url: string, init: RequestInit) => Promise<Response>): Alarms {
    const queue = "projects/p/locations/l/queues/q";
    return cloudTasksAlarms({ queue, url: "https://app.example/sweep", token: async () => "t", clock, fetch });
  }

  #replica(): Tape {
    const up = this.tapes();
    const tape = up[this.#random.int(Math.max(1, up.length))];
    if (tape === undefined) throw new Error("no replica is up");
    return tape;
  }

  async #sweep(): Promise<number> {
    const { time } = this.#deps;
    const swept = this.#replica()
      .sweep({ within: sweepMs })
      .then(
        () => 204,
        () => 503,
      );
    return Promise.race([swept, time.sleep(dispatchMs).then(() => 504)]);
  }

  /** A wake-up may be lost, doubled or late. Its sender never learns. */
  async #wake(reactor: string): Promise<void> {
    const { time, plan } = this.#deps;
    const { wakeLoss, wakeDouble, wakeDelayMs } = plan.serverless;
    if (chance(this.#random, wakeLoss)) return;
    const deliver = (): void => {
      time.after(this.#random.int(wakeDelayMs + 1), () => void this.#react(reactor).catch(() => {}));
    };
    deliver();
    if (chance(this.#random, wakeDouble)) deliver();
  }

  /** What a push handler does: rounds until nothing is found. */
  async #react(reactor: string): Promise<void> {
    const tape = this.#replica();
    for (let rounds = 0; rounds < 20; rounds++) {
      const { found } = await tape.react(reactor, { limit: 10, within: sweepMs });
      if (found === 0) return;
    }
  }

  /** Compares the agenda with the alarms, every second. */
  #watch(): void {
    const { time, shared, runner } = this.#deps;
    const check = async (): Promise<void> => {
      if (!shared.away) {
        const queues = [...(runner.queues?.keys() ?? [])];
        const agenda = await shared.bare.read.agenda(tenant, [...runner.workflows.keys()], queues);
        if (agenda.length > 0) this.#note(agenda);
      }
      time.after(checkEveryMs, () => void check());
    };
    time.after(checkEveryMs, () => void check());
  }

  #note(agenda: readonly AgendaItem[]): void {
    const now = this.#deps.time.wall();
    const alarmInMs = Math.min(...this.tasks.pending.map(({ at }) => at - now));
    this.checks.push({
      at: now,
      dueInMs: Math.max(0, Math.min(...agenda.map(({ dueInMs }) => dueInMs))),
      lateMs: Math.max(...agenda.map(({ lateMs }) => lateMs)),
      alarmInMs,
      boundMs: maxAheadBounds * this.#boundMs,
    });
  }
}

async function untilDone(work: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await work();
    } catch {
      // refused, or the response is lost: the next try decides
    }
  }
}
