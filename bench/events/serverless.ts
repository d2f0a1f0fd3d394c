import pg from "pg";
import { systemClock } from "../../src/base/clock.ts";
import { Tape } from "../../src/host/tape.ts";
import { pushHandler } from "../../src/push/handler.ts";
import { unverified } from "../../src/push/verify/secret.ts";
import { startPostgres } from "../../test/postgres/server.ts";
import { deaths } from "../../test/processes/dying.ts";
import {
  type Found,
  foundIn,
  hello,
  killWriter,
  runner,
  ServerlessWorld,
} from "../../test/processes/serverless-world.ts";
import { createDatabase } from "../peers/places.ts";
import { median, say } from "../work.ts";
import { countStatements } from "./count-statements.ts";
import type { NatsSite } from "./nats.ts";
import type { EventPart, Figures } from "./part.ts";

export interface IdleServerlessSizes {
  readonly idleMs: number;
  /** The server counts an idle backend's statements up to ten seconds late. */
  readonly settleMs: number;
  readonly wakes: number;
  /** Alarms fire at once instead of at their times. */
  readonly early?: boolean;
}

/**
 * A deployment without a process that always runs, on PostgreSQL and our fake of Cloud Tasks.
 *
 *   idleStatements          while nothing happens: the larger of both counts
 *   idleStatementsDriver    what the process sends
 *   idleStatementsServer    transactions of its database, by the server's own statistics
 *   wakeP50Ms               from a start after that to the end of its run, through a push handler in this process
 */
export const serverlessIdle: EventPart<IdleServerlessSizes> = {
  usual: { idleMs: 120_000, settleMs: 12_000, wakes: 20 },
  small: { idleMs: 500, settleMs: 0, wakes: 2, early: true },
  figures: ["idleStatements", "idleStatementsDriver", "idleStatementsServer", "wakeP50Ms"],
  async measure(site, sizes) {
    if (!site.stores.includes("postgres")) return {};
    // Autovacuum's own transactions would count.
    const server = await startPostgres({ major: 18, settings: { autovacuum: "off" } });
    try {
      const url = await createDatabase(server.url, "serverless");
      const admin = new pg.Client({ connectionString: server.url });
      await admin.connect();
      const world = await ServerlessWorld.open(url, sizes.early);
      try {
        const idle = await countIdle(world, admin, sizes);
        say(`idle for ${sizes.idleMs / 1_000} s: ${JSON.stringify(idle)}`);
        const wakeP50Ms = await wakes(world, sizes.wakes);
        say(`a start after that has ended after ${wakeP50Ms} ms`);
        return { ...idle, wakeP50Ms };
      } finally {
        await world.close();
        await admin.end();
      }
    } finally {
      await server.stop();
    }
  },
};

async function countIdle(world: ServerlessWorld, admin: pg.Client, sizes: IdleServerlessSizes): Promise<Figures> {
  await world.app.start(hello, "first", { id: "first" });
  await world.idle();
  await systemClock.sleep(sizes.settleMs);
  const before = await transactions(admin);
  const stop = countStatements(admin);
  await systemClock.sleep(sizes.idleMs);
  const sent = stop();
  for (const [name, times] of Object.entries(sent.byName)) say(`${times} × ${name}`);
  const counted = (await transactions(admin)) - before;
  return {
    idleStatements: Math.max(sent.total, counted),
    idleStatementsDriver: sent.total,
    idleStatementsServer: counted,
  };
}

async function transactions(admin: pg.Client): Promise<number> {
  await admin.query("select pg_stat_clear_snapshot()");
  const text = "select xact_commit + xact_rollback as n from pg_stat_database where datname = 'serverless'";
  return Number((await admin.query<{ n: string }>(text)).rows[0]?.n);
}

async function wakes(world: ServerlessWorld, count: number): Promise<number> {
  const { app } = world;
  const verify = unverified("a benchmark calls its own handler");
  const handler = pushHandler(app, { reactors: ["recovery"], verify });
  const tookMs: number[] = [];
  for (let k = 0; k < count; k++) {
    const from = performance.now();
    const run = await app.start(hello, "woken", { id: `woken-${k}` });
    await handler(new Request("http://app.example/push", { method: "POST", body: '{"reactor":"recovery"}' }));
    await run.result();
    tookMs.push(performance.now() - from);
  }
  return Math.round(median(tookMs));
}

export interface KillSizes {
  readonly kills: number;
  /** Alarms fire at once instead of at their times, which NATS cannot. */
  readonly early?: boolean;
}

/** Writers that are killed at the same time. */
const together = 4;
/** A run that is not found by then is lost. */
const lostAfterMs = 120_000;

/**
 * Writers of a serverless app are killed (kill -9) between alarm, commit and wake-up. The alarms of the dead are all
 * there is: no wake-up is ever sent.
 *
 *   kills          how many, with each alarm service
 *   lostWakeUps    runs that exist and were never found
 *   foundMaxMs     from the commit to the first term, the worst
 */
export const serverlessKills: EventPart<KillSizes> = {
  usual: { kills: 200 },
  small: { kills: 4, early: true },
  figures: [
    ...["kills", "lostWakeUps", "foundMaxMs"],
    ...["killsTasks", "lostWakeUpsTasks", "foundMaxMsTasks", "killedRunsTasks"],
    ...["killsNats", "lostWakeUpsNats", "foundMaxMsNats", "killedRunsNats"],
  ],
  async measure(site, { kills, early = false }) {
    const kind = site.stores.includes("postgres") ? "postgres" : "sqlite";
    const tasks = await onTasks(await site.store(kind), kills, early);
    const nats = early ? undefined : await site.nats("serverless-kills on NATS", "always");
    const onNats = nats === undefined ? undefined : await onNatsAlarms(await site.store(kind), nats, kills);
    await nats?.close();
    const all = onNats === undefined ? [tasks] : [tasks, onNats];
    return {
      kills: all.reduce((sum, one) => sum + one.kills, 0),
      lostWakeUps: all.reduce((sum, one) => sum + one.lost, 0),
      foundMaxMs: Math.max(...all.map(({ foundMaxMs }) => foundMaxMs)),
      ...named("Tasks", tasks),
      ...(onNats && named("Nats", onNats)),
    };
  },
};

interface KillResult {
  readonly kills: number;
  readonly runs: number;
  readonly lost: number;
  readonly foundMaxMs: number;
}

const named = (service: string, { kills, lost, foundMaxMs, runs }: KillResult): Figures => ({
  [`kills${service}`]: kills,
  [`lostWakeUps${service}`]: lost,
  [`foundMaxMs${service}`]: foundMaxMs,
  [`killedRuns${service}`]: runs,
});

async function onTasks(url: string, kills: number, early: boolean): Promise<KillResult> {
  const world = await ServerlessWorld.open(url, early);
  try {
    await killAll(kills, (run, death) => world.kill(run, death));
    await world.idle(lostAfterMs);
    return judged("Cloud Tasks (fake)", kills, await world.found());
  } finally {
    await world.close();
  }
}

async function onNatsAlarms(url: string, nats: NatsSite, kills: number): Promise<KillResult> {
  const app = await Tape.open({ store: url, runner, serverless: { alarms: nats.alarms }, log: "warn" });
  const sweeps = await nats.sweeps(app.tenant, app);
  try {
    await killAll(kills, (run, death) => killWriter(url, nats.url, run, death));
    const until = systemClock.mono() + lostAfterMs;
    const ended = async (): Promise<boolean> => (await foundIn(app)).every(({ status }) => status === "COMPLETED");
    while (!(await ended()) && systemClock.mono() < until) await systemClock.sleep(500);
    return judged("NATS", kills, await foundIn(app));
  } finally {
    await sweeps.stop();
    await app.close();
  }
}

async function killAll(kills: number, kill: (run: string, death: (typeof deaths)[number]) => Promise<void>) {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < kills) {
      const k = next++;
      await kill(`killed-${k}`, deaths[k % deaths.length]!);
    }
  };
  await Promise.all(Array.from({ length: together }, worker));
}

function judged(service: string, kills: number, found: readonly Found[]): KillResult {
  const lost = found.filter(({ status }) => status !== "COMPLETED").length;
  const foundMaxMs = Math.round(Math.max(0, ...found.map(({ foundMs }) => foundMs)));
  say(`${service}: ${kills} writers killed, ${found.length} runs, ${lost} lost, found within ${foundMaxMs} ms`);
  return { kills, runs: found.length, lost, foundMaxMs };
}
