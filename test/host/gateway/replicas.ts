import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished } from "vitest";
import { MemoryBackend, serveBackend } from "../../../examples/sandbox-gateway/backend.ts";
import type { Phase } from "../../../examples/sandbox-gateway/phases.ts";

const script = resolve(import.meta.dirname, "../../../examples/sandbox-gateway/replica.ts");

/** Durations of `replica.ts`: a tenth of their real values on an idle machine, and the TTL above the store's bound. */
export interface Times {
  readonly ttlMs: number;
  readonly graceMs: number;
  /** How long a test waits for what must happen. */
  readonly patienceMs: number;
}
const idleTimes: Times = { ttlMs: 2_000, graceMs: 1_500, patienceMs: 10_000 };

/** Uses 60 ms of a core, and prints how many times as long that took. */
const burn = `const t = performance.now(); let c = 0; while ((c = process.cpuUsage().user / 1000) < 60);
  console.log((performance.now() - t) / c);`;
/** Three processes share two cores. */
const idleSlowdown = 2;
const maxScale = 24;

/**
 * Times that fit the machine at this moment. A replica that gets a tenth of a core cannot renew a lease of two seconds,
 * so that its loss would say nothing. As many processes as there are replicas measure how long they wait for a core.
 */
async function timesNow(processes: number): Promise<Times> {
  const slowdowns = await Promise.all(
    Array.from({ length: processes }, async () => {
      const child = spawn(process.execPath, ["-e", burn], { stdio: ["ignore", "pipe", "inherit"] });
      const [line] = (await once(createInterface({ input: child.stdout! }), "line")) as [string];
      return Number(line);
    }),
  );
  const scale = Math.min(maxScale, Math.max(1, Math.ceil(Math.max(...slowdowns) / idleSlowdown)));
  const { ttlMs, graceMs, patienceMs } = idleTimes;
  return { ttlMs: ttlMs * scale, graceMs: graceMs * scale, patienceMs: patienceMs * scale };
}

const settingsOf = ({ ttlMs, graceMs }: Times): Record<string, string> => ({
  GATEWAY_TTL: `${ttlMs / 1000}s`,
  GATEWAY_SWEEP_MS: "100",
  GATEWAY_GRACE_MS: String(graceMs),
});

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

  static async start(name: string, store: string, backend: string, times: Times): Promise<Replica> {
    const child = spawn(process.execPath, [script, store, backend], {
      env: { ...process.env, ...settingsOf(times), TAPE_REPLICA_ID: name },
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

export interface World extends Times {
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
  const times = await timesNow(names.length);
  const replicas = await Promise.all(names.map((name) => Replica.start(name, store, served.url, times)));
  return {
    ...times,
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
          { timeout: times.patienceMs },
        )
        .toBe(1);
      return found[0]!;
    },
  };
}
