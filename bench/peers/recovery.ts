import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { openStore } from "../../src/host/open-store.ts";
import { type Places, place } from "./places.ts";
import { isOurs, payment, type SystemName } from "./system.ts";
import { WorkerProcess } from "./worker-process.ts";
import { World } from "./world.ts";

/** What a worker's death costs. Times start at its death, except `fromExpiryMs`. */
export interface Recovery {
  readonly runs: number;
  readonly finished: number;
  /** Until the last payment was through; not there if some never were. */
  readonly ms?: number;
  /** The same, counted from the expiry of the dead worker's last lease, for systems that have leases. */
  readonly fromExpiryMs?: number;
  /** Steps that were executed more than once, wires included. */
  readonly stepsTwice: number;
  /** Wires that happened more than once. */
  readonly wiresTwice: number;
}

export const recoveryTtlSeconds = 3;
const runs = 200;
const patienceMs = 60_000;

/** Two hundred payments in flight, most of them at the bank; their process is killed and another one started. */
export async function measureRecovery(name: SystemName, round: number, places: Places): Promise<Recovery> {
  const spot = await place(name, `kill${round}`, places, true);
  const world = new World(spot.world);
  const settings = { system: name, url: spot.url, world: spot.world, ttlSeconds: recoveryTtlSeconds };
  const ids = Array.from({ length: runs }, (_, k) => `pay-${round}-${k}`);
  const first = await WorkerProcess.start({ ...settings, recovers: false }, spot.prefix);
  let second: WorkerProcess | undefined;
  try {
    await first.ask({ ask: "serve", runs });
    const paid = first.ask({ ask: "pay", ids }).catch(() => ({})); // it dies before it has answered, or after
    // Now: all of them are at the bank, or the first of them is through.
    const reached = (step: string): number => world.seen().get(step)?.size ?? 0;
    const now = await until(() => reached("wire") === runs || reached("book") > 0, patienceMs);
    if (!now) throw new Error(`${name} has not started its wires`);
    await first.kill();
    const died = Date.now();
    await paid;
    const expiring = expiry(name, spot.url, ids, places);
    second = await WorkerProcess.start({ ...settings, recovers: true }, spot.prefix);
    await second.ask({ ask: "serve", runs });
    const all = await until(() => reached("done") === runs, patienceMs);
    const ended = Date.now();
    const expired = await expiring;
    return {
      runs,
      finished: reached("done"),
      ...(all ? { ms: ended - died } : {}),
      ...(all && expired !== undefined ? { fromExpiryMs: Math.max(0, ended - Math.max(expired, died)) } : {}),
      stepsTwice: payment.reduce((sum, { step }) => sum + twice(world, step), 0),
      wiresTwice: twice(world, "wire"),
    };
  } finally {
    await first.kill();
    await second?.close();
    await spot.close();
  }
}

const twice = (world: World, step: string): number =>
  [...(world.seen().get(step)?.values() ?? [])].filter((times) => times > 1).length;

async function until(reached: () => boolean, ms: number): Promise<boolean> {
  for (const end = performance.now() + ms; performance.now() < end; await sleep(10)) if (reached()) return true;
  return reached();
}

/** When the dead worker's last lease expires, according to its store; undefined for systems without leases. */
async function expiry(
  name: SystemName,
  url: string,
  ids: readonly string[],
  places: Places,
): Promise<number | undefined> {
  if (isOurs(name)) return ourExpiry(name === "tape-remote" ? databaseOf(places, name, ids) : url, ids);
  if (name === "absurd") return timeIn(url, "select max(claim_expires_at) as at from absurd.r_bench");
  if (name === "pg-boss") {
    const text = "select max(heartbeat_on + heartbeat_seconds * interval '1 s') as at from pgboss.job";
    return timeIn(url, `${text} where state = 'active'`);
  }
  return undefined;
}

const databaseOf = (places: Places, name: SystemName, ids: readonly string[]): string => {
  const round = ids[0]?.split("-")[1] ?? "";
  return places.postgres.url.replace(/\/postgres$/, `/${name.replaceAll("-", "_")}_kill${round}`);
};

async function ourExpiry(url: string, ids: readonly string[]): Promise<number> {
  const store = await openStore(url);
  try {
    // All leases of a process are renewed in one statement, so any of them will do.
    const remaining = [0];
    for (const id of ids.filter((_, k) => k % 20 === 0))
      remaining.push((await store.read.lease("default", { run: id }))?.remainingMs ?? 0);
    return Date.now() + Math.max(...remaining);
  } finally {
    await store.close();
  }
}

async function timeIn(url: string, text: string): Promise<number | undefined> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ at: Date | null }>(text);
    return rows[0]?.at?.getTime();
  } finally {
    await client.end();
  }
}
