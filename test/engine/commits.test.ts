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

interface CountedStore {
  readonly store: Store;
  /** Transactions that have written since the database was created. */
  commits(): Promise<number>;
  /** Tolerance for a whole run: hints to other processes are transactions, too, and may be sent together. */
  readonly hints: number;
}

async function onSqlite(test: TestContext): Promise<CountedStore> {
  const folder = await mkdtemp(join(tmpdir(), "tape-commits-"));
  let commits = 0;
  /** Counts the commits of a connection. */
  class CountingDatabase extends DatabaseSync {
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
  const open = (file: string): DatabaseSync => new CountingDatabase(file, { timeout: 0 });
  const store = await openSqlite({ file: join(folder, "tape.db"), open });
  test.onTestFinished(async () => {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  });
  return { store, commits: async () => commits, hints: 0 };
}

/** Every transaction that writes takes a number, and no other client writes on this server. */
async function onPostgres(test: TestContext): Promise<CountedStore> {
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
])("the commits of a run on %s", (_, open) => {
  it("are one per step and two per inline effect", async (test) => {
    const { store, commits, hints } = await open(test);
    const s = await stage({ store });
    const book = effect("book", (n: number) => n, { compensate: () => {} });
    interface Input {
      readonly steps: number;
      readonly effects: number;
    }
    const run = workflow("run", async (tape: TapeContext, { steps, effects }: Input) => {
      for (let k = 0; k < steps; k++) await tape.step(`step ${k}`, () => k);
      for (let k = 0; k < effects; k++) await tape.effect(book.with(k));
      return steps + effects;
    }) as unknown as AnyWorkflow;
    const p = s.process(createRunner({ workflows: [run], effects: [book] }));
    const cost = async (input: Input): Promise<number> => {
      const before = await commits();
      const id = await p.start(run, input);
      while ((await s.run(id)).endedAt === null) await new Promise((resolve) => setImmediate(resolve));
      while (p.worker.driving > 0) await new Promise((resolve) => setImmediate(resolve));
      return (await commits()) - before;
    };
    await cost({ steps: 1, effects: 1 }); // one-time work
    const bare = await cost({ steps: 0, effects: 0 });
    for (const [steps, effects] of [
      [50, 0],
      [0, 50],
      [20, 20],
    ] as const) {
      const more = (await cost({ steps, effects })) - bare;
      expect(
        Math.abs(more - (steps + 2 * effects)),
        `${steps} steps, ${effects} effects: ${more} commits`,
      ).toBeLessThanOrEqual(hints);
    }
    expect(bare).toBeLessThanOrEqual(2 + hints); // the creation with the lease, and the end
  });
});
