import pg from "pg";
import { parseShardList } from "../../../src/host/shard-list.ts";
import { Scene, starter, tenants, verdict } from "./scene.ts";

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export interface OutageReport {
  /** Steps per second of the tenant on the other shard: before the outage, and during it. */
  readonly before: number;
  readonly during: number;
  readonly ratio: number;
  readonly runs: number;
  readonly faults: readonly string[];
}

/** One of two shards, the one with the directory, is killed under load and comes back. */
export async function outage(windowMs: number): Promise<OutageReport> {
  const scene = await Scene.open();
  try {
    let steps = 0;
    await scene.worker(tenants.b, 10_000_000, (more) => {
      steps += more;
    });
    await scene.worker(tenants.a);
    const load = starter(scene.store, tenants.a, 20);
    await sleep(windowMs / 2);
    // The best of three windows: other work of the machine slows some of them.
    const rate = async (): Promise<number> => {
      const rates: number[] = [];
      for (let k = 0; k < 3; k++) {
        const from = steps;
        await sleep(windowMs / 3);
        rates.push(((steps - from) / windowMs) * 3_000);
      }
      return Math.max(...rates);
    };
    const before = await rate();
    await scene.servers[0]!.halt("immediate");
    const during = await rate();
    const health = await scene.store.health();
    await scene.servers[0]!.resume();
    await sleep(windowMs / 2);
    const runs = await load.stop();
    const faults = await verdict(scene, tenants.a, runs, 120_000);
    if (health.shardsDown?.[0]?.name !== "a") faults.push("health did not name the shard that was down");
    return { before, during, ratio: during / before, runs, faults };
  } finally {
    await scene.close();
  }
}

export interface MovesReport {
  readonly moves: number;
  readonly kills: number;
  readonly runs: number;
  readonly faults: readonly string[];
}

/** A tenant moves to and fro under load, and movers are killed at points that `random` chooses. */
export async function killedMovers(moves: number, random: () => number): Promise<MovesReport> {
  const scene = await Scene.open();
  try {
    const tenant = tenants.a;
    await scene.worker(tenant);
    await scene.worker(tenant);
    const load = starter(scene.store, tenant, 100);
    const faults: string[] = [];
    let kills = 0;
    for (let k = 0; k < moves; k++) {
      const to = k % 2 === 0 ? "b" : "a";
      // Two of three movers are killed: while they start, announce, copy or clear.
      for (let tries = 0; ; tries++) {
        const { child, done } = scene.mover(tenant, to);
        const kill =
          tries < 6 && random() < 0.67 ? setTimeout(() => child.kill("SIGKILL"), 500 + random() * 6_000) : undefined;
        let output = "";
        child.stderr?.on("data", (text) => {
          output += String(text);
        });
        const code = await done;
        clearTimeout(kill);
        if (output.includes(" differs")) faults.push(`move ${k} to ${to}: ${output.trim()}`);
        if (code === 0) break;
        if (code === null) kills++;
        else if (tries > 10) {
          faults.push(`move ${k} to ${to} fails with ${code}`);
          break;
        }
      }
      faults.push(...(await livePlaces(scene, tenant)));
    }
    const runs = await load.stop();
    return { moves, kills, runs, faults: [...faults, ...(await verdict(scene, tenant, runs, 180_000))] };
  } finally {
    await scene.close();
  }
}

/** No run of the tenant is in two places after a move. */
async function livePlaces(scene: Scene, tenant: string): Promise<string[]> {
  const places = new Map<string, number>();
  for (const { url } of parseShardList(scene.url)) {
    const client = new pg.Client(url.split("?")[0]!);
    await client.connect();
    const { rows } = await client.query<{ id: string }>("select id from tape.runs where tenant = $1", [tenant]);
    await client.end();
    for (const { id } of rows) places.set(id, (places.get(id) ?? 0) + 1);
  }
  return [...places].filter(([, count]) => count > 1).map(([id]) => `run ${id} is in two places`);
}
