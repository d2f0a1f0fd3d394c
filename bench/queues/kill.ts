import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { QueueSystemName } from "../peers/queues/system.ts";
import { say } from "../work.ts";
import type { PartResult } from "./figures.ts";
import { among, type QueuePlan } from "./plan.ts";
import type { Place, Site } from "./site.ts";

const slots = 4;
const holdMs = 200;
const patienceMs = 60_000;
const ours: readonly QueueSystemName[] = ["tape-postgres", "tape-sqlite"];
const peers: readonly QueueSystemName[] = ["dbos", "pg-boss"];

/** What a lane of kills shows. */
interface Lane {
  readonly kills: number;
  /** The most jobs that were inside at once, less the limit. A job of a dead process is inside until it has left. */
  readonly overLimit: number;
  /** The same without the jobs of dead processes. */
  readonly overLimitAlive: number;
  /** Slots that are not usable any more when everything is done. */
  readonly leaked: number;
}

/**
 * A queue with four slots, whose only process is killed by SIGKILL as soon as it holds all of them; the next one is
 * started at once, and so on, in several lanes at a time. Jobs note in a file when they enter and leave. A job of a dead
 * process stays inside until it has left in another one: it may still act.
 *
 *   overLimit   the most jobs inside at once − the limit, over all lanes
 *   leaked      slots that do not come back, over all lanes
 */
export async function measureKill(site: Site, plan: QueuePlan): Promise<PartResult> {
  const { kills, lanes, killsOfPeers, ttlSeconds } = plan.sizes.kill;
  const own = among(plan, ours);
  const shares = Array.from({ length: lanes }, (_, k) => Math.ceil((kills - k) / lanes));
  const results = await Promise.all(
    shares.flatMap((share, k) => {
      const system = own[k % own.length];
      return system === undefined ? [] : [lane(site, system, share, ttlSeconds)];
    }),
  );
  const beside: Record<string, unknown> = {};
  for (const peer of among(plan, peers))
    if (killsOfPeers > 0) {
      beside[peer] = await lane(site, peer, killsOfPeers, ttlSeconds);
      say(`kill ${peer}: ${JSON.stringify(beside[peer])}`);
    }
  const figures = {
    overLimit: results.length === 0 ? null : Math.max(...results.map(({ overLimit }) => overLimit)),
    leaked: results.length === 0 ? null : results.reduce((sum, { leaked }) => sum + leaked, 0),
  };
  const done = results.reduce((sum, { kills }) => sum + kills, 0);
  say(`kill ours: ${done} kills, ${JSON.stringify(figures)}`);
  return { figures, beside: { kills: done, ...beside } };
}

async function lane(site: Site, system: QueueSystemName, kills: number, ttlSeconds: number): Promise<Lane> {
  return site.at(system, { limits: { concurrency: slots }, ledger: true, ttlSeconds }, async (place) => {
    const starter = await place.start("starter");
    const jobs = (kills + 1) * 2 * slots;
    await starter.ask({ ask: "enqueue", jobs: [{ count: jobs, holdMs }] });
    for (let nr = 0, left = 0; nr < kills; nr++) {
      const holder = await place.start("worker");
      await holder.ask({ ask: "serve" });
      // Those of the dead process first, where there are any; then as many new ones.
      const enough = left + (nr === 0 ? 0 : slots);
      const full = await reached(() => insideNow(place) === slots && read(place).left.size >= enough);
      await holder.kill();
      appendFileSync(place.ledger, `dead - ${holder.pid}\n`);
      left = read(place).left.size;
      if (!full) throw new Error(`${system} did not fill its slots within ${patienceMs} ms after ${nr} kills`);
      say(`kill ${system}: ${nr + 1}/${kills}`);
    }
    const last = await place.start("worker");
    await last.ask({ ask: "serve" });
    if (!(await reached(() => read(place).left.size === jobs))) throw new Error(`${system} did not finish its jobs`);
    const { maxInside, maxAlive } = read(place);
    // Every slot must be usable again, all at the same time.
    await starter.ask({ ask: "enqueue", jobs: [{ count: 2 * slots, holdMs: 2_000 }] });
    let usable = 0;
    await reached(() => {
      usable = Math.max(usable, insideNow(place));
      return usable >= slots || read(place).left.size === jobs + 2 * slots;
    });
    return {
      kills,
      overLimit: Math.max(0, maxInside - slots),
      overLimitAlive: Math.max(0, maxAlive - slots),
      leaked: Math.max(0, slots - usable),
    };
  });
}

interface Ledger {
  /** Jobs that have left at least once. */
  readonly left: ReadonlySet<string>;
  readonly inside: ReadonlySet<string>;
  readonly maxInside: number;
  readonly maxAlive: number;
}

function read({ ledger }: Place): Ledger {
  const [left, inside, alive] = [new Set<string>(), new Set<string>(), new Map<string, string>()];
  let [maxInside, maxAlive] = [0, 0];
  for (const line of existsSync(ledger) ? readFileSync(ledger, "utf8").split("\n") : []) {
    const [what, job, pid] = line.split(" ");
    if (job === undefined || pid === undefined) continue;
    if (what === "dead") {
      for (const [other, of] of alive) if (of === pid) alive.delete(other);
    } else if (what === "enter") {
      inside.add(job);
      alive.set(job, pid);
    } else {
      inside.delete(job);
      alive.delete(job);
      left.add(job);
    }
    [maxInside, maxAlive] = [Math.max(maxInside, inside.size), Math.max(maxAlive, alive.size)];
  }
  return { left, inside, maxInside, maxAlive };
}

const insideNow = (place: Place): number => read(place).inside.size;

async function reached(condition: () => boolean): Promise<boolean> {
  for (const end = performance.now() + patienceMs; performance.now() < end; await sleep(10))
    if (condition()) return true;
  return false;
}
