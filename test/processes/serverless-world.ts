import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { cloudTasksAlarms } from "../../src/alarm/cloud-tasks.ts";
import { systemClock } from "../../src/base/clock.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { RunView, Store } from "../../src/store/contract/store.ts";
import { FakeCloudTasks } from "../../testkit/kit/fake-cloud-tasks.ts";
import type { Death } from "./dying.ts";
import { serveTasks, type TasksServer } from "./tasks-server.ts";

export const queue = "projects/p/locations/l/queues/tape";
export const hello = workflow("hello", async (tape, name: string) => `hello ${await tape.step("greet", () => name)}`);
export const runner = createRunner({ workflows: [hello] });

export interface Found {
  readonly run: string;
  readonly status: RunView["status"];
  /** From the commit to the first term. */
  readonly foundMs: number;
}

/** A serverless deployment of real processes: our fake of Cloud Tasks behind HTTP, and the process that it calls. */
export class ServerlessWorld {
  readonly app: Tape;
  readonly tasks: FakeCloudTasks;
  readonly #server: TasksServer;
  readonly #url: string;
  readonly #held: boolean;

  private constructor(app: Tape, tasks: FakeCloudTasks, server: TasksServer, url: string, held: boolean) {
    this.#held = held;
    this.app = app;
    this.tasks = tasks;
    this.#server = server;
    this.#url = url;
  }

  /** `held`: alarms wait until the test releases them, so that it need not wait for their times. */
  static async open(url: string, held = false): Promise<ServerlessWorld> {
    let app: Tape | undefined;
    const dispatch = async (): Promise<number> => {
      await app!.sweep();
      return 204;
    };
    const tasks = new FakeCloudTasks({ clock: systemClock, dispatch, held, maxBackoffMs: 1_000 });
    const alarms = cloudTasksAlarms({
      queue,
      url: "http://app.example/sweep",
      token: async () => "t",
      fetch: tasks.fetch,
    });
    app = await Tape.open({ store: url, runner, serverless: { alarms } });
    return new ServerlessWorld(app, tasks, await serveTasks(tasks), url, held);
  }

  /** Starts a process that starts the run, and waits until it is dead. */
  async kill(run: string, death: Death): Promise<void> {
    await killWriter(this.#url, this.#server.url, run, death);
  }

  /** Waits until the service has no alarm left: then everything was found, or never will be. */
  async idle(boundMs = 60_000): Promise<void> {
    const until = systemClock.mono() + boundMs;
    while (this.tasks.pending.length > 0) {
      if (this.#held) this.tasks.release();
      if (systemClock.mono() > until) throw new Error(`alarms are still pending after ${boundMs} ms`);
      await systemClock.sleep(50);
    }
  }

  found(): Promise<Found[]> {
    return foundIn(this.app);
  }

  async close(): Promise<void> {
    this.#server.close();
    await this.app.close();
  }
}

/**
 * Starts a process that starts the run and dies, and waits until it is dead. `alarms`: the address of the service, HTTP
 * for our fake of Cloud Tasks.
 */
export async function killWriter(store: string, alarms: string, run: string, death: Death): Promise<void> {
  const file = fileURLToPath(new URL("serverless-writer.ts", import.meta.url));
  const child = fork(file, [store, alarms, run, death], { execArgv: [], stdio: "ignore" });
  const exit = once(child, "exit");
  child.once("message", () => void systemClock.after(Math.random() * 10, () => child.kill("SIGKILL")));
  await exit;
}

/** All runs, and when each was found. */
export async function foundIn({ store, tenant }: Tape): Promise<Found[]> {
  const runs = await store.read.runs(tenant, { limit: 1_000 });
  return Promise.all(runs.map((run) => foundOf(store, tenant, run)));
}

export async function foundOf(store: Store, tenant: string, { id, status, createdAt }: RunView): Promise<Found> {
  const records = await store.read.journal(tenant, { run: id });
  const started = records.find(({ kind }) => kind === "term.started");
  return { run: id, status, foundMs: (started?.at ?? Number.POSITIVE_INFINITY) - createdAt };
}
