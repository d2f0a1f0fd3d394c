import { cloudTasksAlarms } from "../../src/alarm/cloud-tasks.ts";
import type { Log } from "../../src/base/log.ts";
import { seededRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { ServerlessOptions } from "../../src/host/serverless.ts";
import { Tape } from "../../src/host/tape.ts";
import type { Runner } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { FakeCloudTasks, type FakeCloudTasksOptions } from "../../testkit/kit/fake-cloud-tasks.ts";
import { TestProcess } from "../../testkit/kit/process.ts";
import { VirtualTime } from "../../testkit/kit/virtual-time.ts";

export const queue = "projects/p/locations/l/queues/tape";

/** A serverless deployment in virtual time: writers, and one process that the fake queue calls. */
export class Deployment {
  readonly time: VirtualTime;
  readonly store: Store;
  readonly tasks: FakeCloudTasks;
  /** Calls of the store, by method. */
  readonly calls: string[];
  readonly sweeps: number[] = [];
  readonly logged: string[] = [];
  readonly #runner: Runner;
  #sweeper: Tape | undefined;
  #processes = 0;

  private constructor(
    time: VirtualTime,
    store: Store,
    calls: string[],
    runner: Runner,
    more: Partial<FakeCloudTasksOptions>,
  ) {
    this.time = time;
    this.store = store;
    this.calls = calls;
    this.#runner = runner;
    const dispatch = async (): Promise<number> => {
      this.sweeps.push(time.now);
      await this.#sweeper!.sweep();
      return 204;
    };
    this.tasks = new FakeCloudTasks({ clock: time, dispatch, ...more });
  }

  static async open(runner: Runner, more: Partial<FakeCloudTasksOptions> = {}): Promise<Deployment> {
    const time = new VirtualTime();
    const calls: string[] = [];
    const store = counted(await openStore("memory:", { clock: time, random: seededRandom(1) }), calls);
    const one = new Deployment(time, store, calls, runner, more);
    one.#sweeper = (await time.during(one.process())).app;
    return one;
  }

  /** Another process of the deployment. */
  async process(
    options: Partial<ServerlessOptions> = {},
    crashPointAt?: ConstructorParameters<typeof TestProcess>[0]["crashPointAt"],
  ): Promise<{ readonly app: Tape; readonly process: TestProcess }> {
    const name = `p${++this.#processes}`;
    const process = new TestProcess({
      name,
      clock: this.time,
      store: this.store,
      ...(crashPointAt && { crashPointAt }),
    });
    const { clock } = process;
    const fetch = (url: string, init: RequestInit) =>
      process.callUpstream("alarm", () => this.tasks.fetch(url, init)) as Promise<Response>;
    const alarms = cloudTasksAlarms({ queue, url: "https://app.example/sweep", token: async () => "t", clock, fetch });
    const log: Log = (_level, event) => void this.logged.push(event);
    const seams = { clock, random: seededRandom(name), log };
    const serverless = { alarms, ...options };
    const app = await Tape.open({ store: process.store, runner: this.#runner, tenant: "acme", ...seams, serverless });
    return { app, process };
  }

  async close(): Promise<void> {
    await this.time.during(this.#sweeper!.close());
    await this.time.during(this.store.close());
  }
}

function counted(store: Store, calls: string[]): Store {
  const group = <G extends object>(name: string, target: G): G =>
    new Proxy(target, {
      get: (_, key) => {
        const member: unknown = Reflect.get(target, key);
        if (typeof member !== "function") return member;
        return (...args: unknown[]) => {
          calls.push(`${name}.${String(key)}`);
          return Reflect.apply(member, target, args);
        };
      },
    });
  const { within: _within, ...rest } = store;
  return {
    ...rest,
    intake: group("intake", store.intake),
    claim: group("claim", store.claim),
    fenced: group("fenced", store.fenced),
    read: group("read", store.read),
  };
}
