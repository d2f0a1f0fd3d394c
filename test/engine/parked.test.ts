import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, inject, it, type TestContext } from "vitest";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { Tape } from "../../src/host/tape.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { sleepOn } from "../../testkit/kit/virtual-time.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";

const runs = 1_000;
const go = gate<number>("go");
const wait = workflow("wait", async (tape) => {
  const [answer] = await Promise.all([tape.gate(go), tape.sleep("1h")]);
  return answer;
});
const runner = createRunner({ workflows: [wait] });

/** Real time, with a count of the pending timers. */
class CountedClock implements Clock {
  timers = 0;
  mono = systemClock.mono;
  wall = systemClock.wall;
  boot = systemClock.boot;
  immediate = systemClock.immediate;

  after(ms: number, fn: () => void): () => void {
    let pending = true;
    const over = (): void => {
      if (pending) this.timers--;
      pending = false;
    };
    this.timers++;
    const cancel = systemClock.after(ms, () => {
      over();
      fn();
    });
    return () => {
      over();
      cancel();
    };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }
}

interface TestStore {
  readonly url: string;
  /** Connections to the server, if there is one, and those of them that are in use. */
  readonly connections?: () => Promise<{ open: number; used: number }>;
}

async function onSqlite(test: TestContext): Promise<TestStore> {
  const folder = await mkdtemp(join(tmpdir(), "tape-parked-"));
  test.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return { url: `sqlite:${join(folder, "tape.db")}` };
}

async function onPostgres(test: TestContext): Promise<TestStore> {
  const url = await freshDatabase(inject("postgres18"));
  const watch = new pg.Client(url);
  await watch.connect();
  test.onTestFinished(async () => {
    await watch.end();
    await dropDatabase(url);
  });
  const text = `select count(*)::int as open, count(*) filter (where state <> 'idle')::int as used
    from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`;
  const connections = async () => (await watch.query<{ open: number; used: number }>(text)).rows[0]!;
  return { url: `${url}?connections=4`, connections };
}

/**
 * The minimum of samples, until one is at most `max`: reactors poll now and then, and are idle in between. What a parked
 * run holds is in every sample, however many are taken and however slow the machine is.
 */
async function minimum(max: number, sample: () => number | Promise<number>): Promise<number> {
  let min = Number.POSITIVE_INFINITY;
  for (let k = 0; k < 1_000 && min > max; k++) {
    min = Math.min(min, await sample());
    await systemClock.sleep(10); // waits for nothing, but spreads the samples
  }
  return min;
}

describe.each([
  ["SQLite", onSqlite],
  ["PostgreSQL", onPostgres],
])("1 000 parked runs on %s", (_, open) => {
  it("hold no lease, no timer of the process and no connection", { timeout: 600_000 }, async (test) => {
    const { url, connections } = await open(test);
    const clock = new CountedClock();
    await using app = await Tape.open({ store: url, runner, clock, concurrency: runs });

    for (let next = 0; next < runs; next += 100) {
      // One call: a hundred would wait for four connections, and a busy machine serves them too late.
      const started = await app.startAll(
        wait,
        Array.from({ length: 100 }, (_, k) => ({ input: undefined, id: `run-${next + k}` })),
      );
      expect(started.filter(({ ok }) => !ok)).toEqual([]);
    }
    const parked = async (): Promise<boolean> =>
      (await app.store.read.runs(app.tenant, { status: ["WAITING"], limit: runs })).length === runs;
    while (!(await parked())) await systemClock.sleep(100);

    const leases = await app.store.read.leases(app.tenant, { limit: 2 * runs });
    expect(leases.filter(({ owner }) => owner !== null)).toEqual([]);
    // Five reactors wait, and the process checks once for drives and for other processes.
    expect(await minimum(9, () => clock.timers)).toBeLessThan(10);
    if (connections !== undefined) {
      expect(await minimum(0, async () => (await connections()).used)).toBe(0);
      // The pool's four and the listener, as for one run. A replaced connection counts twice for a moment.
      expect(await minimum(5, async () => (await connections()).open)).toBeLessThanOrEqual(5);
    }

    // A note resumes a parked run.
    await app.signal("run-7", go, 7);
    const taken = async (): Promise<boolean> =>
      (await Array.fromAsync(app.journal("run-7"))).some(({ kind }) => kind === "gate.resolved");
    while (!(await taken())) await systemClock.sleep(20);
  });
});
