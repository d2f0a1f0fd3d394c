import pg from "pg";
import { pushHandler } from "../src/push/handler.ts";
import { unverified } from "../src/push/verify/secret.ts";
import { startPostgres } from "../test/postgres/server.ts";
import { deaths, hello, ServerlessWorld } from "../test/processes/serverless-world.ts";
import { median, say } from "./work.ts";

/** Figures of a deployment without loops, on a real PostgreSQL and our fake of Cloud Tasks. */
export interface ServerlessFigures {
  /** Statements in two minutes without work, counted by the server and at the driver: the larger. */
  readonly idleStatements: number;
  /** From a start after that to the end of its run, through a push handler in this process. */
  readonly wakeP50Ms: number;
  /** Writers that were killed between alarm, commit and wake-up; runs that existed then; runs that were never found. */
  readonly kills: number;
  readonly runs: number;
  readonly lostWakeUps: number;
  readonly foundMaxMs: number;
  readonly foundP50Ms: number;
}

export interface ServerlessBenchOptions {
  readonly idleSeconds?: number;
  readonly kills?: number;
}

/** The server counts an idle backend's statements up to ten seconds late. */
const lateStatsMs = 12_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function benchServerless(options: ServerlessBenchOptions = {}): Promise<ServerlessFigures> {
  const { idleSeconds = 120, kills = 200 } = options;
  // Autovacuum's own transactions would count.
  const server = await startPostgres({ major: 18, settings: { autovacuum: "off" } });
  try {
    const admin = new pg.Client({ connectionString: server.url });
    await admin.connect();
    await admin.query("create database serverless");
    const url = new URL(server.url);
    url.pathname = "/serverless";
    const world = await ServerlessWorld.open(url.href);
    try {
      const idleStatements = await idle(world, admin, idleSeconds);
      say(`idle: ${idleStatements} statements in ${idleSeconds} s`);
      const wakeP50Ms = await wakes(world);
      say(`a start after that has ended after ${wakeP50Ms} ms`);
      const killed = await kill(world, kills);
      say(
        `${kills} writers killed: ${killed.runs} runs, ${killed.lostWakeUps} lost, found within ${killed.foundMaxMs} ms`,
      );
      return { idleStatements, wakeP50Ms, kills, ...killed };
    } finally {
      await world.close();
      await admin.end();
    }
  } finally {
    await server.stop();
  }
}

async function idle(world: ServerlessWorld, admin: pg.Client, seconds: number): Promise<number> {
  await world.app.start(hello, "first", { id: "first" });
  await world.idle();
  await pause(lateStatsMs);
  let sent = 0;
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function counted(this: pg.Client, ...args: unknown[]): never {
    if (this !== admin) sent++;
    return query.apply(this, args as never) as never;
  } as typeof query;
  const before = await transactions(admin);
  await pause(seconds * 1_000);
  const after = await transactions(admin);
  pg.Client.prototype.query = query;
  return Math.max(after - before, sent);
}

async function transactions(admin: pg.Client): Promise<number> {
  await admin.query("select pg_stat_clear_snapshot()");
  const text = "select xact_commit + xact_rollback as n from pg_stat_database where datname = 'serverless'";
  return Number((await admin.query<{ n: string }>(text)).rows[0]?.n);
}

async function wakes(world: ServerlessWorld): Promise<number> {
  const { app } = world;
  const verify = unverified("a benchmark calls its own handler");
  const handler = pushHandler(app, { reactors: ["recovery"], verify });
  const tookMs: number[] = [];
  for (let k = 0; k < 20; k++) {
    const from = performance.now();
    const run = await app.start(hello, "woken", { id: `woken-${k}` });
    await handler(new Request("http://app.example/push", { method: "POST", body: '{"reactor":"recovery"}' }));
    await run.result();
    tookMs.push(performance.now() - from);
  }
  return Math.round(median(tookMs));
}

async function kill(
  world: ServerlessWorld,
  kills: number,
): Promise<Pick<ServerlessFigures, "runs" | "lostWakeUps" | "foundMaxMs" | "foundP50Ms">> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < kills) {
      const k = next++;
      await world.kill(`killed-${k}`, deaths[k % deaths.length]!);
    }
  };
  await Promise.all(Array.from({ length: 4 }, worker));
  await world.idle(120_000);
  const found = (await world.found()).filter(({ run }) => run.startsWith("killed-"));
  const lost = found.filter(({ status }) => status !== "COMPLETED");
  const foundMs = found.map((one) => one.foundMs);
  return {
    runs: found.length,
    lostWakeUps: lost.length,
    foundMaxMs: Math.round(Math.max(0, ...foundMs)),
    foundP50Ms: Math.round(median(foundMs)),
  };
}

/** `node bench/events-serverless.ts [IDLE_SECONDS] [KILLS]`. */
if (import.meta.main) {
  const [idleSeconds = 120, kills = 200] = process.argv.slice(2).map(Number);
  console.log(JSON.stringify(await benchServerless({ idleSeconds, kills })));
}
