import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { cloudTasksAlarms } from "../../src/alarm/cloud-tasks.ts";
import { systemClock } from "../../src/base/clock.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { RunView } from "../../src/store/contract/store.ts";
import { FakeCloudTasks } from "../../testkit/kit/fake-cloud-tasks.ts";

export const queue = "projects/p/locations/l/queues/tape";
export const hello = workflow("hello", async (tape, name: string) => `hello ${await tape.step("greet", () => name)}`);
export const runner = createRunner({ workflows: [hello] });

/**
 * Where a writer dies by SIGKILL: once its alarm is set, while its write may be under way, once it is committed, or when
 * it sends the wake-up.
 */
export const deaths = ["armed", "sent", "committed", "woken"] as const;
export type Death = (typeof deaths)[number];

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
  readonly #server: Server;
  readonly #url: string;
  readonly #held: boolean;

  private constructor(app: Tape, tasks: FakeCloudTasks, server: Server, url: string, held: boolean) {
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
    const server = createServer((request, response) => {
      void answer(tasks, request).then(async (result) => {
        response.writeHead(result.status, Object.fromEntries(result.headers));
        response.end(await result.text());
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new ServerlessWorld(app, tasks, server, url, held);
  }

  /** Starts a process that starts the run, and waits until it is dead. */
  async kill(run: string, death: Death): Promise<void> {
    const { port } = this.#server.address() as AddressInfo;
    await killWriter(this.#url, `http://127.0.0.1:${port}`, run, death);
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
    this.#server.closeAllConnections();
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
  return Promise.all(
    runs.map(async ({ id, status, createdAt }) => {
      const records = await store.read.journal(tenant, { run: id });
      const started = records.find(({ kind }) => kind === "term.started");
      return { run: id, status, foundMs: (started?.at ?? Number.POSITIVE_INFINITY) - createdAt };
    }),
  );
}

async function answer(tasks: FakeCloudTasks, request: IncomingMessage): Promise<Response> {
  const headers = new Headers(
    Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]),
  );
  const body = await text(request);
  return tasks.fetch(`http://127.0.0.1${request.url}`, { method: request.method ?? "GET", headers, body });
}
