import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { dropDatabase, freshDatabase } from "../../test/postgres/database.ts";
import type { FromWorker, Kind, ToWorker, WorkerSpec } from "./points.ts";
import { Upstream } from "./upstream.ts";

const fileOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** A worker process, and what it says. */
export class WorkerProcess {
  readonly process: ChildProcess;
  readonly #messages: FromWorker[] = [];
  #received = (): void => {};

  constructor(spec: WorkerSpec) {
    const stdio: ["ignore", "inherit", "inherit", "ipc"] = ["ignore", "inherit", "inherit", "ipc"];
    this.process = fork(fileOf("worker.ts"), [JSON.stringify(spec)], { stdio });
    this.process.on("message", (message: FromWorker) => {
      this.#messages.push(message);
      this.#received();
    });
  }

  send(message: ToWorker): void {
    this.process.send(message);
  }

  async receive<S extends FromWorker["say"]>(say: S): Promise<Extract<FromWorker, { say: S }>> {
    for (;;) {
      const found = this.#messages.find((message) => message.say === say);
      if (found !== undefined) return found as Extract<FromWorker, { say: S }>;
      await new Promise<void>((resolve) => {
        this.#received = resolve;
      });
    }
  }

  kill(): void {
    this.process.kill("SIGKILL");
  }
}

/** An empty store, an upstream, and the processes of one round; `close` ends exactly these. */
export class Scene {
  readonly upstream = new Upstream();
  readonly #children: ChildProcess[] = [];
  readonly #folder = mkdtempSync(join(tmpdir(), "tape-costs-"));
  readonly #postgres: string | undefined;
  url = "";

  constructor(postgres: string | undefined) {
    this.#postgres = postgres;
  }

  async open(): Promise<this> {
    await this.upstream.start();
    this.url =
      this.#postgres === undefined ? `sqlite:${join(this.#folder, "tape.db")}` : await freshDatabase(this.#postgres);
    return this;
  }

  async worker(name: "a" | "b", options: Partial<WorkerSpec> = {}): Promise<WorkerProcess> {
    const kind: Kind = "observed";
    const spec = {
      store: this.url,
      upstream: this.upstream.url,
      name,
      kind,
      dispatch: "inline",
      fails: false,
    } as const;
    const worker = new WorkerProcess({ ...spec, ...options });
    this.#children.push(worker.process);
    await worker.receive("ready");
    return worker;
  }

  /** A server of this store. Returns its address, and the process. */
  async server(port = 0): Promise<{ url: string; port: number; process: ChildProcess }> {
    const child = fork(fileOf("server.ts"), [this.url, String(port)], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#children.push(child);
    const url = await new Promise<string>((resolve) => child.once("message", (text) => resolve(String(text))));
    return { url, port: Number(new URL(url).port), process: child };
  }

  async close(): Promise<void> {
    for (const child of this.#children) child.kill("SIGKILL");
    this.upstream.stop();
    if (this.#postgres !== undefined) await dropDatabase(this.url);
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
