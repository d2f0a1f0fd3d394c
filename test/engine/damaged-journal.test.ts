import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";

const go = gate<number>("go");
const wait = workflow("wait", async (tape) => {
  await tape.step("first", () => 1);
  await tape.step("second", () => 2);
  return tape.gate(go);
});
const runner = createRunner({ workflows: [wait] });

/** A store, and a way to delete a record from its tables. */
const stores: Readonly<
  Record<string, () => Promise<{ url: string; lose(journal: number, seq: number): Promise<void> }>>
> = {
  SQLite: async () => {
    const folder = await mkdtemp(join(tmpdir(), "tape-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const file = join(folder, "tape.db");
    return {
      url: `sqlite:${file}`,
      async lose(journal, seq) {
        const db = new DatabaseSync(file);
        db.prepare("delete from records where journal = ? and seq = ?").run(journal, seq);
        db.close();
      },
    };
  },
  PostgreSQL: async () => {
    const url = await freshDatabase(inject("postgres18"));
    onTestFinished(() => dropDatabase(url));
    return {
      url,
      async lose(journal, seq) {
        const client = new pg.Client(url);
        await client.connect();
        await client.query("delete from tape.records where journal = $1 and seq = $2", [journal, seq]);
        await client.end();
      },
    };
  },
};

describe.each(Object.entries(stores))("%s: a record that was deleted", (_name, open) => {
  it.each([
    ["the first", 1],
    ["a step's", 3],
  ])("%s: the run is STUCK with its own code, and its journal stops growing", async (_what, seq) => {
    const { url, lose } = await open();
    const stuck: unknown[] = [];
    const logged = Promise.withResolvers<void>();
    const app = await Tape.open({
      ...{ store: url, runner },
      log: (_level, event, fields) => {
        if (event === "run.stuck") stuck.push(fields?.code);
        if (event === "run.stuck") logged.resolve();
      },
    });
    onTestFinished(() => app.close());
    const { store } = app;
    await app.start(wait, undefined, { id: "w" });
    const parked = async (): Promise<boolean> => (await store.read.run("default", "w"))?.status === "WAITING";
    await expect.poll(parked, { timeout: 20_000 }).toBe(true);
    const { journal } = (await store.read.run("default", "w"))!;
    await lose(journal, seq);
    await app.signal("w", go, 7);
    await logged.promise;
    const status = async (): Promise<unknown> => {
      const { status: now, lease } = (await store.read.run("default", "w"))!;
      return [now, lease.state];
    };
    await expect.poll(status, { timeout: 20_000 }).toEqual(["STUCK", "FREE"]);
    const records = await store.read.journal("default", { journal }, { from: 2 });
    expect(records.at(-2)).toMatchObject({
      kind: "run.stuck",
      data: { reason: expect.stringContaining(`record ${seq} of`) },
    });
    expect(stuck).toEqual(["TAPE_JOURNAL_DAMAGED"]);
  });
});
