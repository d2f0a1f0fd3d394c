import { availableParallelism, loadavg } from "node:os";
import { systemClock } from "../src/base/clock.ts";
import { type PostgresServer, startPostgres } from "../test/postgres/server.ts";
import { type Cost, type Crash, crashes } from "./costs/crashes.ts";
import { Scene } from "./costs/scene.ts";
import type { BenchOptions } from "./run.ts";
import { median, say } from "./work.ts";

/** Each round crashes at another phase of the heartbeat, which comes every ten seconds. */
const rounds = 3;
const heartbeatMs = 10_000;
/** Scenes at once: they mostly wait, and more would compete for two cores. */
const together = 4;

const seconds = (ms: number): number => Math.round(ms / 10) / 100;

/**
 * What a crash at each point of a run costs with the default times: how long until the run continues, and what is done
 * twice. Real processes, killed with SIGKILL, on both stores; another process stands beside each. `--only sqlite`,
 * `--rounds N`, `--point TEXT` choose.
 */
export async function benchCosts({ only, flags }: BenchOptions): Promise<object> {
  const flag = (name: string): string | undefined => flags[flags.indexOf(name) + 1];
  const count = flags.includes("--rounds") ? Number(flag("--rounds")) : rounds;
  const chosen = crashes.filter(({ name }) => !flags.includes("--point") || name.includes(flag("--point") ?? ""));
  const figures: Record<string, object> = {};
  if (only !== "postgres") figures.sqlite = await measureAll(chosen, undefined, count);
  if (only !== "sqlite") {
    const server = await startPostgres({ major: 18, settings: {} });
    try {
      figures.postgres = await measureAll(chosen, server.url, count);
      if (!flags.includes("--point") || flag("--point") === "server")
        figures.primary = await restartPrimary(server, count);
    } finally {
      await server.stop();
    }
  }
  const [load] = loadavg();
  return { ...figures, machine: { cores: availableParallelism(), node: process.versions.node, load } };
}

async function measureAll(chosen: readonly Crash[], postgres: string | undefined, count: number): Promise<object> {
  const costs = new Map<Crash, Cost[]>(chosen.map((crash) => [crash, []]));
  const waiting = Array.from({ length: count }, (_, round) => chosen.map((crash) => ({ crash, round }))).flat();
  const lane = async (): Promise<void> => {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
      const cost = await measure(one.crash, postgres, (one.round * heartbeatMs) / count);
      costs.get(one.crash)!.push(cost);
      say(`${postgres === undefined ? "sqlite" : "postgres"}: ${one.crash.name}: ${JSON.stringify(cost)}`);
    }
  };
  await Promise.all(Array.from({ length: together }, lane));
  return Object.fromEntries([...costs].map(([{ name }, all]) => [name, summary(all)]));
}

async function measure(crash: Crash, postgres: string | undefined, phaseMs: number): Promise<Cost> {
  const scene = await new Scene(postgres).open();
  try {
    return await crash.measure(scene, phaseMs);
  } finally {
    await scene.close();
  }
}

function summary(all: readonly Cost[]): object {
  const delays = all.map(({ delayMs }) => delayMs);
  return {
    medianS: seconds(median(delays)),
    worstS: seconds(Math.max(...delays)),
    calls: Math.max(...all.map(({ calls }) => calls)),
    steps: Math.max(...all.map(({ steps }) => steps)),
    outcomes: [...new Set(all.map(({ outcome }) => outcome))],
    rounds: all.length,
  };
}

/** The PostgreSQL server crashes while a run is in a step, and recovers; measured from then. The worker lives. */
async function restartPrimary(server: PostgresServer, count: number): Promise<object> {
  const all: Cost[] = [];
  for (let round = 0; round < count; round++) {
    const scene = await new Scene(server.url).open();
    try {
      const a = await scene.worker("a");
      const again = new Promise<number>((resolve) => {
        scene.upstream.hold("step", "a", () => {
          void server.restart("immediate").then(() => resolve(systemClock.mono()));
        });
      });
      a.send({ do: "start", id: "work-1" });
      const from = await again;
      const at = await scene.upstream.wait("after", "a");
      a.send({ do: "finish", id: "work-1" });
      const { outcome } = await a.receive("ended");
      const { upstream } = scene;
      all.push({ delayMs: at - from, calls: upstream.count("call"), steps: upstream.count("step"), outcome });
    } finally {
      await scene.close();
    }
  }
  return summary(all);
}
