import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished } from "vitest";
import { MemoryBackend, serveBackend } from "../../../examples/sandbox-gateway/backend.ts";
import type { Phase } from "../../../examples/sandbox-gateway/phases.ts";

const script = resolve(import.meta.dirname, "../../../examples/sandbox-gateway/replica.ts");

/** Settings of `replica.ts`: every duration a tenth of its real value, and the TTL above the store's bound. */
export const ttlMs = 2_000;
export const graceMs = 1_500;
const settings = { GATEWAY_TTL: `${ttlMs / 1000}s`, GATEWAY_SWEEP_MS: "100", GATEWAY_GRACE_MS: String(graceMs) };

export interface Line {
  readonly event: string;
  readonly level: string;
  readonly replica?: string;
  readonly holder?: string;
}

/** A gateway replica in its own process. It ends with the test. */
export class Replica {
  readonly name: string;
  readonly url: string;
  readonly lines: Line[];
  readonly #process: ChildProcess;

  private constructor(name: string, url: string, lines: Line[], child: ChildProcess) {
    this.name = name;
    this.url = url;
    this.lines = lines;
    this.#process = child;
  }

  static async start(name: string, store: string, backend: string): Promise<Replica> {
    const child = spawn(process.execPath, [script, store, backend], {
      env: { ...process.env, ...settings, TAPE_REPLICA_ID: name },
      stdio: ["ignore", "pipe", "pipe"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    const lines: Line[] = [];
    createInterface({ input: child.stderr! }).on("line", (line) => {
      if (line.startsWith("{")) lines.push(JSON.parse(line) as Line);
      else process.stderr.write(`${name}: ${line}\n`);
    });
    const [line] = (await once(createInterface({ input: child.stdout! }), "line")) as [string];
    return new Replica(name, (JSON.parse(line) as { url: string }).url, lines, child);
  }

  async health(): Promise<{ state: string; holder: string; token: string }> {
    return (await fetch(`${this.url}/healthz`)).json() as Promise<{ state: string; holder: string; token: string }>;
  }

  async leads(): Promise<boolean> {
    return (await this.health()).state === "holder";
  }

  async phase(id: string): Promise<Phase | undefined> {
    const response = await fetch(`${this.url}/sandboxes/${id}`);
    return response.ok ? ((await response.json()) as { phase: Phase }).phase : undefined;
  }

  async create(id: string): Promise<number> {
    return (await fetch(`${this.url}/sandboxes/${id}`, { method: "POST" })).status;
  }

  async remove(id: string): Promise<number> {
    return (await fetch(`${this.url}/sandboxes/${id}`, { method: "DELETE" })).status;
  }

  stop(): void {
    this.#process.kill("SIGSTOP");
  }

  wake(): void {
    this.#process.kill("SIGCONT");
  }

  kill(): void {
    this.#process.kill("SIGKILL");
  }

  /** Sends SIGTERM and returns the exit code. */
  async terminate(): Promise<number | null> {
    const left = once(this.#process, "exit");
    this.#process.kill("SIGTERM");
    return (await left)[0] as number | null;
  }
}

export interface World {
  readonly machines: MemoryBackend;
  readonly served: Awaited<ReturnType<typeof serveBackend>>;
  readonly replicas: readonly Replica[];
  /** The replicas that watched or listed the machines of the backend. */
  watchersAndSweepers(): Set<string>;
  /** Waits for a holder, and asserts that there is exactly one. */
  holder(among?: readonly Replica[]): Promise<Replica>;
}

/** Three replicas on one PostgreSQL store, and a separate backend with the machines they manage. */
export async function setWorld(url: string, names: readonly string[] = ["a", "b", "c"]): Promise<World> {
  const machines = new MemoryBackend();
  const served = await serveBackend(machines);
  onTestFinished(() => served.close());
  const store = `${url}?transaction_bound_ms=1000`;
  const replicas = await Promise.all(names.map((name) => Replica.start(name, store, served.url)));
  return {
    machines,
    served,
    replicas,
    watchersAndSweepers: () =>
      new Set(
        served.calls
          .filter(({ operation }) => operation === "watch" || operation === "list")
          .map(({ replica }) => replica),
      ),
    async holder(among = replicas) {
      let found: Replica[] = [];
      await expect
        .poll(
          async () => {
            const leads = await Promise.all(among.map((replica) => replica.leads()));
            found = among.filter((_, k) => leads[k]);
            return found.length;
          },
          { timeout: 10_000 },
        )
        .toBe(1);
      return found[0]!;
    },
  };
}
