import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { describe, expect, it, type TestContext } from "vitest";
import type { TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { freshDatabase } from "../postgres/database.ts";
import { startPostgres } from "../postgres/server.ts";
import { stage } from "./stage.ts";

interface Counted {
  readonly store: Store;
  /** Transactions that have written something since the database was made. */
  commits(): Promise<number>;
  /** Hints to other processes are transactions too, sent and joined at will: so many more or less for a whole run. */
  readonly hints: number;
}

async function onSqlite(test: TestContext): Promise<Counted> {
  const folder = await mkdtemp(join(tmpdir(), "tape-commits-"));
  let commits = 0;
  /** Counts where the file is: COMMIT after a change. */
  class Counting extends DatabaseSync {
    override prepare(sql: string) {
      const statement = super.prepare(sql);
      if (sql !== "commit") return statement;
      const run = statement.run.bind(statement);
      statement.run = (...args: never[]) => {
        commits++;
        return run(...args);
      };
      return statement;
    }
  }
  const open = (file: string): DatabaseSync => new Counting(file, { timeout: 0 });
  const store = await openSqlite({ file: join(folder, "tape.db"), open });
  test.onTestFinished(async () => {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  });
  return { store, commits: async () => commits, hints: 0 };
}

/** Every transaction that writes takes a number, and nobody else writes on this server. */
async function onPostgres(test: TestContext): Promise<Counted> {
  const server = await startPostgres({ major: 18, settings: { autovacuum: "off" } });
  test.onTestFinished(() => server.stop());
  const url = await freshDatabase(server.url);
  const store = await openPostgres({ url });
  const client = new pg.Client(url);
  await client.connect();
  test.onTestFinished(async () => {
    await client.end();
    await store.close();
  });
  const next = "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next";
  const commits = async () => Number((await client.query<{ next: string }>(next)).rows[0]!.next);
  return { store, commits, hints: 3 };
}

describe.each([
  ["SQLite", onSqlite],
  ["PostgreSQL", onPostgres],
])("what a run costs on %s", (_, open) => {
  it("one commit for a step, two for an inline effect", async (test) => {
    const { store, commits, hints } = await open(test);
    const s = await stage({ store });
    const act = effect("act", (n: number) => n, { compensate: () => {} });
    interface Asked {
      readonly steps: number;
      readonly acts: number;
    }
    const run = workflow("run", async (tape: TapeContext, { steps, acts }: Asked) => {
      for (let k = 0; k < steps; k++) await tape.step(`step ${k}`, () => k);
      for (let k = 0; k < acts; k++) await tape.effect(act.with(k));
      return steps + acts;
    }) as unknown as AnyWorkflow;
    const p = s.process(createRunner({ workflows: [run], effects: [act] }));
    const cost = async (asked: Asked): Promise<number> => {
      const before = await commits();
      const id = await p.start(run, asked);
      while ((await s.run(id)).endedAt === null) await new Promise((resolve) => setImmediate(resolve));
      while (p.worker.driving > 0) await new Promise((resolve) => setImmediate(resolve));
      return (await commits()) - before;
    };
    await cost({ steps: 1, acts: 1 }); // whatever is done once
    const bare = await cost({ steps: 0, acts: 0 });
    for (const [steps, acts] of [
      [50, 0],
      [0, 50],
      [20, 20],
    ] as const) {
      const more = (await cost({ steps, acts })) - bare;
      expect(Math.abs(more - (steps + 2 * acts)), `${steps} steps, ${acts} acts: ${more} commits`).toBeLessThanOrEqual(
        hints,
      );
    }
    expect(bare).toBeLessThanOrEqual(2 + hints); // its creation with the lease, its end
  });
});
