import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { openRemote } from "../../src/client/store.ts";
import { serve } from "../../src/host/serve.ts";
import { Tape } from "../../src/host/tape.ts";
import { isTapeError } from "../../src/model/errors.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, type Runner, workflow } from "../../src/sdk/workflow.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "done",
    (error: unknown) => (isTapeError(error) ? error.code : error),
  );

const approval = gate<string>("approval");
const hello = workflow("hello", async (tape, name: string) => tape.step("greet", () => `Hello ${name}`));
const waits = workflow("waits", async (tape) => {
  const answer = await tape.gate(approval);
  return answer.status === "received" ? answer.value : "late";
});

describe("where the caller has no connection to the store's database", () => {
  const transaction = new DatabaseSync(":memory:");
  transaction.exec("begin");

  it.each(["a server", "memory"])("a transaction is refused with TAPE_OTHER_DATABASE: %s", async (where) => {
    const runner = createRunner({ workflows: [hello, waits] });
    const local = await Tape.open({ store: "memory:", runner, work: false });
    onTestFinished(() => local.close());
    const serving = await serve({ store: local.store, port: 0 });
    onTestFinished(async () => {
      await serving.stop();
    });
    const remote = await openRemote(serving.url);
    onTestFinished(() => remote.close());
    const app = where === "memory" ? local : await Tape.open({ store: remote, runner, work: false });
    const waiting = await app.start(waits, undefined, { id: "waiting" });
    expect(await codeOf(app.start(hello, "Ada", { id: "ada", transaction }))).toBe("TAPE_OTHER_DATABASE");
    expect(await codeOf(app.signal(waiting.id, approval, "yes", { transaction }))).toBe("TAPE_OTHER_DATABASE");
    expect(await app.runs.get("ada")).toBeUndefined();
    expect(await local.store.read.journal("default", { run: "waiting" }, { inbox: true })).toEqual([]);
  });

  it("an input or a signal that does not fit is refused first", async () => {
    const app = await Tape.open({ store: "memory:", runner: createRunner({ workflows: [hello] }), work: false });
    onTestFinished(() => app.close());
    const wrong = { transaction, lables: {} } as never;
    expect(await codeOf(app.start(hello, "Ada", wrong))).toBe("TAPE_BAD_INPUT");
    expect(await codeOf(app.signal("none", approval, "yes", wrong))).toBe("TAPE_BAD_INPUT");
  });
});

describe("an app on PostgreSQL", () => {
  let url = "";
  let pool: pg.Pool;
  beforeAll(async () => {
    url = await freshDatabase(inject("postgres18"));
    pool = new pg.Pool({ connectionString: url, max: 8 });
    await pool.query("create table accounts(id int primary key, balance int not null)");
    await pool.query("insert into accounts values (1, 0), (2, 0)");
    return async () => {
      await pool.end();
      await dropDatabase(url);
    };
  });

  const open = async (runner: Runner): Promise<Tape> => {
    const app = await Tape.open({ store: url, runner, log: "silent" });
    onTestFinished(() => app.close());
    return app;
  };
  const balances = async (): Promise<number[]> =>
    (await pool.query("select balance from accounts order by id")).rows.map(({ balance }) => balance);

  it("drives a run as soon as its transaction commits, and sends a signal with it", async () => {
    const app = await open(createRunner({ workflows: [hello, waits] }));
    const waiting = await app.start(waits, undefined);
    const client = await pool.connect();
    onTestFinished(() => client.release());
    await client.query("begin");
    const run = await app.start(hello, "Ada", { transaction: client });
    await app.signal(waiting.id, approval, "yes", { transaction: client });
    expect(await app.runs.get(run.id)).toBeUndefined();
    await client.query("commit");
    expect(await run.result()).toBe("Hello Ada");
    expect(await waiting.result()).toBe("yes");
  });

  it("a start with signals leaves the run and its signals, or neither; a call cannot wait for it", async () => {
    const app = await open(createRunner({ workflows: [waits] }));
    const client = await pool.connect();
    onTestFinished(() => client.release());
    const start = (id: string) => {
      const signals = [{ gate: approval, value: "yes", key: "k" }];
      return app.start(waits, undefined, { id, transaction: client, signals });
    };
    await client.query("begin");
    await start("undone");
    await client.query("rollback");
    expect(await app.runs.get("undone")).toBeUndefined();
    await client.query("begin");
    const run = await start("done");
    await start("done");
    await client.query("commit");
    expect(await run.result()).toBe("yes");
    expect(await app.store.read.journal("default", { run: "done" }, { inbox: true })).toHaveLength(1);
    expect(await codeOf(app.call(waits, undefined, { transaction: client } as never))).toBe("TAPE_BAD_INPUT");
  });

  it("a step starts a run that exists only with its rows", async () => {
    let app: Tape;
    let calls = 0;
    const order = workflow("order", async (tape, fails: boolean) =>
      tape.transaction("pay", pool, async (client) => {
        calls++;
        await client.query("update accounts set balance = balance + 1 where id = 1");
        await app.start(hello, "Bob", { id: `hello-${tape.runId}`, transaction: client });
        if (fails) throw new Error("no money");
        return "paid";
      }),
    );
    app = await open(createRunner({ workflows: [hello, order] }));
    const [before] = await balances();
    const failed = await app.start(order, true, { id: "failed" });
    expect(await codeOf(failed.result())).toBe("TAPE_RUN_FAILED");
    expect(await app.runs.get("hello-failed")).toBeUndefined();
    const paid = await app.start(order, false, { id: "paid" });
    expect(await paid.result()).toBe("paid");
    expect(await (await app.run("hello-paid")).result()).toBe("Hello Bob");
    expect((await balances())[0]).toBe(before! + 1);
    expect(calls).toBe(2);
  });

  it("two steps that deadlock both happen once", async () => {
    const [one, two] = await balances();
    const locked: (() => void)[] = [];
    const both = new Promise<void>((resolve) => {
      let count = 0;
      locked.push(() => ++count === 2 && resolve());
    });
    const move = workflow("move", async (tape, [from, to]: readonly number[]) =>
      tape.transaction("move", pool, async (client) => {
        await client.query("update accounts set balance = balance - 10 where id = $1", [from]);
        locked[0]!(); // each holds one row and wants the other's
        await both;
        await client.query("update accounts set balance = balance + 11 where id = $1", [to]);
      }),
    );
    const app = await open(createRunner({ workflows: [move] }));
    const runs = await Promise.all([app.start(move, [1, 2]), app.start(move, [2, 1])]);
    await Promise.all(runs.map((run) => run.result()));
    expect(await balances()).toEqual([one! + 1, two! + 1]);
  });

  it("a step that times out is rolled back, and the next attempt gets another connection", async () => {
    const [before] = await balances();
    let wake: () => void = () => {};
    const asleep = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const late: unknown[] = [];
    const add = (client: pg.PoolClient) => client.query("update accounts set balance = balance + 7 where id = 1");
    const slow = workflow("hangs", async (tape) =>
      tape.transaction(
        "add",
        pool,
        async (client, { attempt }) => {
          await add(client);
          if (attempt === 1) {
            await asleep;
            late.push(await add(client).catch(() => "refused"));
          }
          return attempt;
        },
        { retry: { attempts: 20, base: 1 }, timeout: "300ms" }, // a slow machine needs more than two
      ),
    );
    const app = await open(createRunner({ workflows: [slow] }));
    const run = await app.start(slow, undefined);
    const attempt = await run.result();
    expect(attempt).toBeGreaterThan(1);
    wake();
    await expect.poll(() => late).toEqual(["refused"]);
    expect((await balances())[0]).toBe(before! + 7);
    const journal = await Array.fromAsync(app.journal(run.id));
    expect(journal.map(({ kind }) => kind)).toContain("step.failed");
    expect(journal.find(({ kind }) => kind === "step.done")?.data).toMatchObject({ value: attempt, transaction: true });
    expect([pool.waitingCount, pool.totalCount - pool.idleCount]).toEqual([0, 0]);
  });

  it("a zombie's rows are rolled back when its run was taken over meanwhile", async () => {
    const [before] = await balances();
    let paused: () => void = () => {};
    const inside = new Promise<void>((resolve) => {
      paused = resolve;
    });
    let wake: () => void = () => {};
    const asleep = new Promise<void>((resolve) => {
      wake = resolve;
    });
    let calls = 0;
    const slow = workflow("slow", async (tape) =>
      tape.transaction("add", pool, async (client) => {
        const first = ++calls === 1;
        if (first) {
          paused();
          await asleep;
        }
        await client.query("update accounts set balance = balance + 100 where id = 1");
        return first ? "zombie" : "successor";
      }),
    );
    const runner = createRunner({ workflows: [slow] });
    const zombie = await open(runner);
    const run = await zombie.start(slow, undefined);
    await inside;
    const successor = await open(runner);
    await successor.leases.preempt({ run: run.id }, { reason: "it hangs" });
    expect(await (await successor.run(run.id)).result()).toBe("successor");
    wake();
    await zombie.close(); // waits for the zombie's body
    expect((await balances())[0]).toBe(before! + 100);
    expect(calls).toBe(2);
  });
});
