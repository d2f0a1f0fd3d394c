import { AlarmKeeper } from "../src/alarm/alarm-keeper.ts";
import { type Alarms, boundOf, maxAheadBounds } from "../src/alarm/alarms.ts";
import { armedStore } from "../src/alarm/armed-store.ts";
import { cloudTasksAlarms } from "../src/alarm/cloud-tasks.ts";
import type { Clock } from "../src/base/clock.ts";
import { silentLog } from "../src/base/log.ts";
import { type Random, seededRandom } from "../src/base/random.ts";
import type { ServerlessOptions } from "../src/host/serverless.ts";
import type { Tape } from "../src/host/tape.ts";
import type { Term } from "../src/model/lease.ts";
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

/** An answer of a replica, and what it held then. */
export interface Answer {
  /** Wall time. */
  readonly at: number;
  readonly process: string;
  readonly to: "alarm" | "wake-up";
  readonly found: number;
  /** Journals of runs and items that the process held, though it served no other request. */
  readonly held: readonly number[];
  /** An alarm that came before anything was due: another one is set. */
  readonly early: boolean;
  /** When a request of the process for an alarm failed last. */
  readonly unarmedAt: number | undefined;
}

interface AlarmServiceDeps {
  readonly plan: { readonly seed: number | string; readonly serverless: PlannedServerless };
  readonly time: VirtualTime;
  readonly shared: SharedStore;
  readonly runner: Runner;
}

interface Callee {
  readonly name: string;
  readonly tape: Tape;
}

/** The service that calls replicas of a serverless world: at the times of their alarms, and for wake-ups. */
export class AlarmService {
  readonly checks: AgendaCheck[] = [];
  readonly answers: Answer[] = [];
  /** While everything rests, the agenda is not read either. */
  resting = false;
  /** Calls that found the agenda empty or not due yet, and those that were made twice because a name was taken. */
  readonly tasks: FakeCloudTasks;
  /** Replicas that are up, with the names of their processes. */
  replicas: () => readonly Callee[] = () => [];
  /** The process that got each term, by journal and token. */
  readonly #terms = new Map<string, string>();
  readonly #deps: AlarmServiceDeps;
  readonly #random: Random;
  readonly #boundMs: number;
  /** Requests that each replica is serving. */
  readonly #serving = new Map<string, number>();
  /** When a request for an alarm failed last, by process. */
  readonly #unarmedAt = new Map<string, number>();

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
    const fetch = async (url: string, init: RequestInit): Promise<Response> => {
      const failed = (): unknown => this.#unarmedAt.set(process.name, this.#deps.time.wall());
      const sent = process.callUpstream("alarm", () => this.tasks.fetch(url, init));
      const response = await sent.catch((error: unknown) => {
        failed();
        throw error;
      });
      if (response.status >= 500) failed();
      return response;
    };
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

  /** A process got these terms. */
  noteTerms(process: string, terms: readonly Term[]): void {
    for (const { journal, fence } of terms) this.#terms.set(`${journal} ${fence.token}`, process);
  }

  #replica(): Callee {
    const up = this.replicas();
    const callee = up[this.#random.int(Math.max(1, up.length))];
    if (callee === undefined) throw new Error("no replica is up");
    return callee;
  }

  async #sweep(): Promise<number> {
    const { time, plan } = this.#deps;
    const { name, tape } = this.#replica();
    const swept = this.#serve(name, "alarm", async () => {
      const { found, alarmInMs } = await tape.sweep({ within: plan.serverless.withinMs });
      return { found, early: found === 0 && alarmInMs !== null };
    }).then(
      () => 204,
      () => 503,
    );
    return Promise.race([swept, time.sleep(dispatchMs).then(() => 504)]);
  }

  /** One request to a replica, and what the replica holds when it answers. */
  async #serve(process: string, to: Answer["to"], work: () => Promise<Pick<Answer, "found" | "early">>): Promise<void> {
    const { shared, time } = this.#deps;
    const count = (by: number): number => {
      const serving = (this.#serving.get(process) ?? 0) + by;
      this.#serving.set(process, serving);
      return serving;
    };
    count(1);
    let answer: Pick<Answer, "found" | "early">;
    try {
      answer = await work();
    } finally {
      count(-1);
    }
    if (shared.away || this.#serving.get(process) !== 0) return;
    const at = time.wall();
    const leases = await shared.bare.read.leases(tenant, { held: true });
    const own = leases.filter(({ journal, token }) => this.#terms.get(`${journal} ${token}`) === process);
    const held = own.map(({ journal }) => journal);
    this.answers.push({ at, process, to, ...answer, held, unarmedAt: this.#unarmedAt.get(process) });
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
    const { name, tape } = this.#replica();
    await this.#serve(name, "wake-up", async () => {
      let sum = 0;
      for (let rounds = 0; rounds < 20; rounds++) {
        const { found, surrendered } = await tape.react(reactor, {
          limit: 10,
          within: this.#deps.plan.serverless.withinMs,
        });
        sum += found;
        if (found === 0 || surrendered.length > 0) break;
      }
      return { found: sum, early: false };
    });
  }

  /** Compares the agenda with the alarms, every second. */
  #watch(): void {
    const { time, shared, runner } = this.#deps;
    const check = async (): Promise<void> => {
      if (!shared.away && !this.resting) {
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
