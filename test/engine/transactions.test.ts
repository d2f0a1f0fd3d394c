import { DatabaseSync } from "node:sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import { type ErrorCode, isTapeError, TapeError } from "../../src/model/errors.ts";
import { fork, planFork } from "../../src/operator/fork.ts";
import type { StepOptions, TapeContext } from "../../src/sdk/context.ts";
import { stream } from "../../src/sdk/stream.ts";
import { type AnyWorkflow, workflow } from "../../src/sdk/workflow.ts";
import type { StepTransaction, TransactionOps } from "../../src/store/contract/store.ts";
import { ManualClock, settled } from "../../testkit/clock.ts";
import { type Stage, stage, tenant } from "./stage.ts";

const any = (flow: unknown): AnyWorkflow => flow as AnyWorkflow;

/** A stage whose author has a table in the store's own database. */
async function withTable(): Promise<{ s: Stage; db: DatabaseSync; rows: () => string[] }> {
  const clock = new ManualClock();
  const db = new DatabaseSync(":memory:", { timeout: 0 });
  const store = await openStore("memory:", { clock, random: seededRandom("store"), open: () => db });
  onTestFinished(() => store.close());
  db.exec("create table seats(seat text primary key)");
  const rows = () =>
    db
      .prepare("select seat from seats order by seat")
      .all()
      .map(({ seat }) => String(seat));
  return { s: await stage({ store, clock }), db, rows };
}

const take = (db: DatabaseSync, seat: string): string => {
  db.prepare("insert into seats values (?)").run(seat);
  return `got ${seat}`;
};

/** A workflow with one transaction, whose outcome is the code or message of its error. */
const oneTransaction = (db: unknown, body: (client: DatabaseSync, tape: TapeContext) => unknown): AnyWorkflow =>
  any(
    workflow("one", (tape) =>
      tape
        .transaction("take", db as DatabaseSync, (client) => body(client, tape))
        .catch((error: unknown) => (isTapeError(error) ? error.code : (error as Error).message)),
    ),
  );

describe("a transactional step", () => {
  it("cannot stream: its record commits with its rows, before any chunk", async () => {
    const { s, db, rows } = await withTable();
    const flow = any(
      workflow("flow", (tape) =>
        tape
          .transaction("take", db, (client, d) => {
            take(client, "1A");
            d.stream(stream("tokens"));
          })
          .catch((error: unknown) => (isTapeError(error) ? error.code : error)),
      ),
    );
    const p = s.process([flow]);
    expect((await p.over(await p.start(flow))).outcome).toBe("TAPE_BAD_INPUT");
    expect(rows()).toEqual([]);
  });

  it("is recorded with its rows; replay returns the result without the body", async () => {
    const { s, db, rows } = await withTable();
    let calls = 0;
    const flow = any(
      workflow("flow", async (tape) => {
        const got = await tape.transaction("take", db, (client) => take(client, `seat ${++calls}`));
        await tape.sleep("2m");
        return got;
      }),
    );
    const first = s.process([flow]);
    const id = await first.start(flow);
    await first.until(async () => (await s.kinds(id)).includes("timer.set"));
    first.crash();
    await s.clock.elapse(30_001);
    const second = s.process([flow]);
    expect(await second.over(id)).toMatchObject({ status: "COMPLETED", outcome: "got seat 1" });
    expect(calls).toBe(1);
    expect(rows()).toEqual(["seat 1"]);
    const record = (await s.records(id)).find(({ kind }) => kind === "step.done");
    expect(record?.data).toMatchObject({ name: "take", value: "got seat 1", transaction: true });
  });

  it("fails with the error of its body or its constraint, and leaves no row", async () => {
    const { s, db, rows } = await withTable();
    take(db, "taken");
    const flow = any(
      workflow("flow", async (tape) => {
        const attempts = [
          () => tape.transaction("taken", db, (client) => [take(client, "free"), take(client, "taken")]),
          () =>
            tape.transaction("throws", db, (client): string => {
              take(client, "free");
              throw new TypeError("no such seat");
            }),
        ];
        const errors: string[] = [];
        for (const attempt of attempts) await attempt().catch((error: Error) => errors.push(error.message));
        return errors;
      }),
    );
    const p = s.process([flow]);
    const view = await p.over(await p.start(flow));
    expect(view.outcome).toEqual(["UNIQUE constraint failed: seats.seat", "no such seat"]);
    expect(rows()).toEqual(["taken"]);
  });

  it.each<[title: string, expected: string, body: (db: DatabaseSync, tape: TapeContext) => unknown]>([
    ["a body that is async", "TAPE_BAD_INPUT", async (db) => take(db, "late")],
    ["a body that commits", "TAPE_NO_TRANSACTION", (db) => db.exec("rollback")],
    ["a result that is too large", "TAPE_TOO_LARGE", (db) => take(db, "big") + "x".repeat(5_000_000)],
    ["a result that cannot be stored", "TAPE_NOT_ENCODABLE", (db) => [take(db, "odd"), () => {}]],
    [
      "an operation inside the body",
      "TAPE_NESTED",
      (db, tape) => {
        take(db, "nested");
        tape.now();
      },
    ],
  ])("%s fails the step with %s and leaves no row", async (_title, expected, body) => {
    const { s, db, rows } = await withTable();
    const flow = oneTransaction(db, body);
    const p = s.process([flow]);
    expect((await p.over(await p.start(flow))).outcome).toBe(expected);
    expect(rows()).toEqual([]);
  });

  it("needs a connection to the store's own database", async () => {
    const { s, db, rows } = await withTable();
    const other = new DatabaseSync(":memory:");
    onTestFinished(() => other.close());
    const { within: _within, ...behind } = s.store;
    const flows: [unknown, string][] = [
      [other, "TAPE_OTHER_DATABASE"],
      [{}, "TAPE_BAD_INPUT"],
      [undefined, "TAPE_BAD_INPUT"],
    ];
    for (const [source, code] of flows) {
      const flow = oneTransaction(source, (client) => take(client, "never"));
      const p = s.process([flow]);
      expect((await p.over(await p.start(flow))).outcome).toBe(code);
    }
    const flow = oneTransaction(db, (client) => take(client, "never"));
    const remote = s.process([flow], { store: behind });
    expect((await remote.over(await remote.start(flow))).outcome).toBe("TAPE_OTHER_DATABASE");
    expect(rows()).toEqual([]);
  });

  it("parallel transactions and steps keep one dense journal", async () => {
    const { s, db, rows } = await withTable();
    const names = Array.from({ length: 8 }, (_, k) => `seat ${k}`);
    const flow = any(
      workflow("flow", (tape) =>
        Promise.all(
          names.map((name) =>
            tape.lane(name, async () => {
              await tape.step("before", () => settled(name.length % 3));
              const got = await tape.transaction("take", db, (client) => take(client, name));
              return tape.step("after", async () => got);
            }),
          ),
        ),
      ),
    );
    const p = s.process([flow]);
    const id = await p.start(flow);
    expect((await p.over(id)).outcome).toEqual(names.map((name) => `got ${name}`));
    expect(rows()).toEqual(names);
    const records = await s.records(id);
    expect(records.map(({ seq }) => seq)).toEqual(records.map((_, k) => k + 1));
  });

  it("is executed again if nothing was written, and its run is handed over after eight tries", async () => {
    const { s, db, rows } = await withTable();
    const failures = [...Array(11).keys()].map((k) => (k % 2 === 0 ? "TAPE_STORE_BUSY" : "TAPE_STORE_UNREACHABLE"));
    const { within } = s.store;
    const step: TransactionOps["step"] = (source, body) => {
      const inner = within!.step(source, body);
      return {
        ...inner,
        commit: async (...args) => {
          const code = failures.shift() as ErrorCode | undefined;
          if (code !== undefined) throw new TapeError(code, "nothing was written (injected)");
          return inner.commit(...args);
        },
      };
    };
    const flow = oneTransaction(db, (client) => take(client, "seat"));
    const p = s.process([flow], { store: { ...s.store, within: { ...within!, step } } });
    const id = await p.start(flow);
    expect((await p.over(id)).outcome).toBe("got seat");
    expect(rows()).toEqual(["seat"]);
    expect(failures).toEqual([]);
    expect(s.logged.filter(({ event }) => event === "run.drive_lost")).toHaveLength(1);
    expect(await s.kinds(id)).toEqual(["run.created", "term.ended", "term.started", "step.done", "run.ended"]);
  });
});

describe("a transactional step with options", () => {
  const retried = (options: StepOptions, db: DatabaseSync, body: (client: DatabaseSync, attempt: number) => unknown) =>
    any(
      workflow("retried", (tape) =>
        tape
          .transaction("take", db, (client, { attempt }) => body(client, attempt), options)
          .catch((error: unknown) => (isTapeError(error) ? error.code : (error as Error).message)),
      ),
    );
  /** A stage whose steps commit as the test says. */
  const committing = (s: Stage, commit: (inner: StepTransaction) => StepTransaction["commit"]): Stage["store"] => {
    const { within } = s.store;
    const step: TransactionOps["step"] = (source, body) => {
      const inner = within!.step(source, body);
      return { ...inner, commit: commit(inner) };
    };
    return { ...s.store, within: { ...within!, step } };
  };
  const attemptsOf = async (s: Stage, id: string) =>
    (await s.records(id)).flatMap((record) =>
      record.kind === "step.failed" ? [[record.data.attempt, (record.data.error as Error).message]] : [],
    );

  it("is retried in a fresh transaction, and its attempts are counted in the journal", async () => {
    const { s, db, rows } = await withTable();
    const open: boolean[] = [];
    const flow = retried({ retry: { attempts: 3, base: 1 } }, db, (client, attempt) => {
      open.push(client.isTransaction);
      take(client, `seat ${attempt}`);
      take(client, "common"); // would collide if a failed attempt had left its rows
      if (attempt < 3) throw new Error(`no ${attempt}`);
      return attempt;
    });
    const p = s.process([flow]);
    const id = await p.start(flow);
    expect((await p.over(id)).outcome).toBe(3);
    expect([open, rows()]).toEqual([
      [true, true, true],
      ["common", "seat 3"],
    ]);
    expect(await attemptsOf(s, id)).toEqual([
      [1, "no 1"],
      [2, "no 2"],
    ]);
  });

  it("keeps its count over a crash, and ends with the last error", async () => {
    const { s, db, rows } = await withTable();
    const seen: number[] = [];
    const flow = retried({ retry: { attempts: 2, base: "1m" } }, db, (client, attempt) => {
      seen.push(attempt);
      take(client, "never");
      throw new Error(`no ${attempt}`);
    });
    const first = s.process([flow]);
    const id = await first.start(flow);
    await first.until(async () => (await s.run(id)).status === "WAITING"); // a long pause is a durable timer
    first.crash();
    await s.clock.elapse(61_000);
    expect((await s.process([flow]).over(id)).outcome).toBe("no 2");
    expect([seen, rows()]).toEqual([[1, 2], []]);
    expect(await attemptsOf(s, id)).toEqual([[1, "no 1"]]);
  });

  it("times out while it waits for the database, without its body", async () => {
    const { s, db, rows } = await withTable();
    let slow = true;
    const store = committing(s, (inner) => async (...args) => {
      if (slow) await s.clock.sleep(5_000);
      slow = false;
      return inner.commit(...args);
    });
    const seen: number[] = [];
    const flow = retried({ retry: { attempts: 2, base: 1 }, timeout: "1s" }, db, (client, attempt) => {
      seen.push(attempt);
      return take(client, `seat ${attempt}`);
    });
    const p = s.process([flow], { store });
    const id = await p.start(flow);
    expect((await p.over(id)).outcome).toBe("got seat 2");
    expect([seen, rows()]).toEqual([[2], ["seat 2"]]);
    expect(await attemptsOf(s, id)).toEqual([[1, expect.stringContaining("took longer than 1000 ms")]]);
  });

  it("has not timed out if its commit is under way: what is written is the result", async () => {
    const { s, db, rows } = await withTable();
    const store = committing(s, (inner) => async (...args) => {
      const written = await inner.commit(...args);
      await s.clock.sleep(5_000); // the response is late
      return written;
    });
    const flow = retried({ retry: { attempts: 3, base: 1 }, timeout: "1s" }, db, (client) => take(client, "seat"));
    const p = s.process([flow], { store });
    const id = await p.start(flow);
    expect((await p.over(id)).outcome).toBe("got seat");
    expect([rows(), await attemptsOf(s, id)]).toEqual([["seat"], []]);
  });
});

describe("a committed transaction is not repeated", () => {
  it("by a retry of its run", async () => {
    const { s, db, rows } = await withTable();
    let fails = 0;
    const flow = any(
      workflow(
        "flow",
        async (tape) => {
          try {
            await tape.step("fails", () => {
              fails++;
              throw new Error("no luck");
            });
          } finally {
            await tape.transaction("take", db, (client) => take(client, `seat ${fails}`));
          }
        },
        { retry: { attempts: 3, base: 1 } },
      ),
    );
    const p = s.process([flow]);
    expect((await p.over(await p.start(flow))).status).toBe("FAILED");
    expect([fails, rows()]).toEqual([1, ["seat 1"]]);
  });

  it("by a fork that does not name it", async () => {
    const { s, db, rows } = await withTable();
    let calls = 0;
    const flow = any(
      workflow("flow", async (tape) => {
        await tape.step("plain", () => 1);
        return tape.transaction("take", db, (client) => take(client, `seat ${++calls}`));
      }),
    );
    const p = s.process([flow]);
    const id = await p.start(flow);
    await p.over(id);
    const deps = { store: s.store, keeper: p.keeper, tenant, clock: s.clock, random: seededRandom("fork") };
    expect((await planFork(deps, id, 0)).alreadyHappened).toEqual([
      { pos: 1, what: "transaction", name: "take", repeatable: false, args: null },
    ]);
    const request = { at: 0, by: "ann", reason: "drill" };
    await expect(fork(deps, id, request)).rejects.toMatchObject({ code: "TAPE_FORK_REPEATS" });
    const again = await fork(deps, id, { ...request, repeat: [1] });
    expect((await p.over(again)).outcome).toBe("got seat 2");
    const kept = await fork(deps, id, { ...request, at: 2 });
    expect((await p.over(kept)).outcome).toBe("got seat 1");
    expect(rows()).toEqual(["seat 1", "seat 2"]);
  });
});
