import { strict as assert } from "node:assert";
import type { RunFilter, RunView, Store } from "../../src/store/contract/store.ts";
import { type Cases, record, refused, spec, tenant, unique } from "./frame.ts";
import {
  armed,
  begin,
  childEnded,
  compensated,
  confirmed,
  decided,
  dispatched,
  ended,
  find,
  Holder,
  holdItem,
  intent,
  settled,
  startChild,
  unchanged,
} from "./holder.ts";

const idsOf = (runs: readonly RunView[]): string[] => runs.map(({ id }) => id);
const list = async (store: Store, filter: RunFilter, of = tenant): Promise<string[]> =>
  idsOf(await store.read.runs(of, filter));

/** Reads page by page, with this many rows each. */
async function paged(store: Store, filter: RunFilter, limit: number): Promise<string[]> {
  const seen: string[] = [];
  for (let before: number | undefined; ; ) {
    const page = await store.read.runs(tenant, { ...filter, limit, ...(before === undefined ? {} : { before }) });
    if (page.length === 0) return seen;
    assert.ok(page.length <= limit);
    seen.push(...idsOf(page));
    assert.ok(seen.length < 1_000, "the pages do not end");
    before = page.at(-1)!.journal;
  }
}

const makeUnknown = async (run: Holder, pos = 0): Promise<void> => {
  await run.write(
    intent(pos, { semantics: "non_idempotent" }),
    dispatched(pos),
    settled(pos, "UNKNOWN", { reason: "ack_lost" }),
  );
};

/** Lists and stats for operators: matching rows, in the list's own order, page by page. */
export const lists: Cases = ({ it }, fresh) => {
  it("runs are filtered by start and end time: since inclusive, until exclusive", async () => {
    const { store, elapse } = fresh();
    const runs: Holder[] = [];
    for (let k = 0; k < 5; k++) {
      runs.push(await begin(store, { workflow: k % 2 === 0 ? "even" : "odd" }));
      await elapse(3);
    }
    const ids = runs.map(({ id }) => id);
    const [a, b, c, d, e] = ids as [string, string, string, string, string];
    for (const k of [3, 0, 1]) {
      await runs[k]!.write(ended(k === 0 ? "FAILED" : "COMPLETED", { outcome: k }));
      await elapse(3);
    }
    const started = await Promise.all(runs.map(async (run) => (await run.view()).createdAt));
    const over = await Promise.all(runs.map(async (run) => (await run.view()).endedAt ?? 0));
    const table: [RunFilter, string[]][] = [
      [{ startedSince: 0 }, [e, d, c, b, a]],
      [{ startedSince: started[1]! }, [e, d, c, b]],
      [{ startedSince: started[1]!, startedUntil: started[3]! }, [c, b]],
      [{ startedUntil: started[2]! }, [b, a]],
      [{ startedUntil: 1 }, []],
      [{ endedSince: 0 }, [b, a, d]],
      [{ endedSince: over[0]! }, [b, a]],
      [{ endedUntil: over[0]! }, [d]],
      [{ endedUntil: over[0]!, startedSince: started[3]! }, [d]],
      [{ startedSince: 0, endedSince: over[0]!, endedUntil: over[1]! }, [a]],
      [{ startedSince: 0, workflow: "odd" }, [d, b]],
      [{ startedSince: 0, status: ["RUNNING"] }, [e, c]],
      [{ endedSince: 0, status: ["FAILED"] }, [a]],
    ];
    for (const [filter, expected] of table) {
      assert.deepEqual(await list(store, filter), expected, JSON.stringify(filter));
      for (const limit of [1, 2]) assert.deepEqual(await paged(store, filter, limit), expected, JSON.stringify(filter));
    }
    assert.deepEqual(await list(store, { startedSince: 0 }, "nobody"), []);
    await refused("TAPE_NOT_FOUND", store.read.runs(tenant, { startedSince: 0, before: 999_999_999 }));
    for (const field of ["startedSince", "startedUntil", "endedSince", "endedUntil"] as const) {
      for (const value of [-1, 0.5, "1", null]) {
        await refused("TAPE_BAD_INPUT", store.read.runs(tenant, { [field]: value } as never));
      }
    }
  });

  it("runs are filtered by several statuses, newest first, without items", async () => {
    const { store } = fresh();
    for (let k = 0; k < 2; k++) {
      const [held, parked, stuck, failed, over, ending] = await Promise.all(
        Array.from({ length: 6 }, () => begin(store)),
      );
      await held!.write(intent(0, { dispatch: "outbox" })); // its item is queued for a reactor, and is no run
      await parked!.release(0);
      const ends = record("term.ended", { reason: "released", notesTaken: 0 });
      await stuck!.write(record("run.stuck", { reason: "w" }), ends);
      await failed!.write(ended("FAILED", { outcome: 1 }));
      await over!.write(ended("COMPLETED", { outcome: 1 }));
      await makeUnknown(ending!);
      await ending!.write(decided("cancelled"));
      await store.intake.createRuns(tenant, [spec()]);
      await store.intake.createRuns("globex", [spec()]);
    }
    const all = await store.read.runs(tenant);
    const byNumber = all.toSorted((a, b) => b.journal - a.journal); // which is no order of time
    const inOrder = (status: readonly string[]) => (/WAITING|COMPLETED/.test(status.join()) ? all : byNumber);
    assert.equal(all.length, 14);
    const statuses = ["RUNNABLE", "RUNNING", "WAITING", "STUCK", "FAILED", "COMPLETED", "ENDING"] as const;
    const sets = [
      ...statuses.map((one) => [one]),
      ["STUCK", "FAILED"],
      ["RUNNING", "RUNNABLE", "ENDING", "ENDING"],
      statuses,
    ];
    for (const status of [...sets, ["CANCELLED"], ["RUNNING", "COMPLETED"]] as RunView["status"][][]) {
      const expected = idsOf(inOrder(status).filter((run) => status.includes(run.status)));
      assert.equal(expected.length, 2 * new Set(status).size * (status.includes("CANCELLED") ? 0 : 1));
      for (const limit of [1, 3, 50]) assert.deepEqual(await paged(store, { status }, limit), expected, String(status));
    }
    assert.deepEqual(await list(store, { status: ["STUCK"], workflow: "other" }), []);
    const { message } = await refused("TAPE_BAD_INPUT", list(store, { status: ["STUCK", "DONE" as never] }));
    assert.match(message, /status must be one of QUEUED, RUNNABLE, RUNNING, .*, not DONE/);
    await refused("TAPE_BAD_INPUT", list(store, { status: ["LIVE" as never] }));
    await refused("TAPE_BAD_INPUT", store.read.effects(tenant, { status: ["COMPLETED"] }));
    await refused("TAPE_BAD_INPUT", store.read.effects(tenant, { role: "effect", status: ["ARMED"] }));
    await refused("TAPE_BAD_INPUT", store.read.effects(tenant, { role: "undo" as never }));
  });

  it("runs that started in the same millisecond are ordered by number", async () => {
    const { store } = fresh();
    await store.intake.createRuns(
      tenant,
      Array.from({ length: 30 }, () => spec()),
    );
    const all = await list(store, { startedSince: 0 });
    assert.equal(new Set(all).size, 30);
    for (const limit of [1, 7, 30]) assert.deepEqual(await paged(store, { startedSince: 0 }, limit), all);
  });

  it("runs are filtered by a literal prefix of their id, byte by byte", async () => {
    const { store } = fresh();
    const base = unique("p");
    const last = "\u{10ffff}";
    const tails = [
      "",
      "a",
      "a%",
      "a_",
      "aZ",
      "aa",
      "ab",
      "b",
      "ä",
      "\ud7ff",
      "\ue000",
      "ﬀ",
      "😀",
      "😀x",
      "%",
      "_",
      "\u0001",
      last,
      `${last}x`,
    ];
    const ids = tails.map((tail) => `${base}${tail}`);
    await store.intake.createRuns(
      tenant,
      ids.map((id) => spec({ id, workflow: id.length % 2 === 0 ? "even" : "odd" })),
    );
    await store.intake.createRuns("globex", [spec({ id: `${base}a` })]);
    const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));
    for (const prefix of [
      base,
      ...tails.slice(1).map((tail) => `${base}${tail}`),
      base.slice(0, 1),
      last,
      `${base}zz`,
    ]) {
      const expected = ids.filter((id) => id.startsWith(prefix)).sort(byBytes);
      assert.deepEqual(await list(store, { prefix }), expected, JSON.stringify(prefix));
      assert.deepEqual(await paged(store, { prefix }, 2), expected, JSON.stringify(prefix));
    }
    assert.deepEqual(
      await list(store, { prefix: `${base}a`, workflow: "even" }),
      ids.filter((id) => id.startsWith(`${base}a`) && id.length % 2 === 0).sort(byBytes),
    );
    assert.deepEqual(idsOf(await store.read.runs("globex", { prefix: base })), [`${base}a`]);
    assert.equal((await store.read.runs(tenant, { prefix: "" })).length, ids.length); // an empty prefix matches all
    await refused("TAPE_BAD_INPUT", store.read.runs(tenant, { prefix: "a\0" }));
    await refused("TAPE_BAD_INPUT", store.read.runs(tenant, { prefix: 5 as never }));
  });

  it("runs with effects in doubt are listed newest first, until these are settled", async () => {
    const { store, elapse } = fresh();
    const one = await begin(store);
    await elapse(3);
    const [two, three, fine] = [await begin(store), await begin(store), await begin(store)];
    for (const run of [one, two]) await makeUnknown(run);
    await makeUnknown(two, 1);
    await three.write(
      ...confirmed(0),
      record("obligation.surplus", { pos: 0, sub: 2, semantics: "idempotent", key: "s", args: 1 }),
    );
    await fine.write(...confirmed(0));
    assert.deepEqual(await list(store, { inDoubt: true }), [three.id, two.id, one.id]);
    assert.deepEqual(await paged(store, { inDoubt: true }, 1), [three.id, two.id, one.id]);
    const { createdAt } = await two.view();
    assert.deepEqual(await list(store, { inDoubt: true, startedSince: createdAt }), [three.id, two.id]);
    assert.deepEqual(await list(store, { inDoubt: true, prefix: two.id }), [two.id]);
    assert.deepEqual(await list(store, { inDoubt: false, prefix: fine.id }), [fine.id]);
    const item = await holdItem(store, one.id, 0);
    await item.write(settled(0, "CONFIRMED", { run: one.journal, reason: "observed", value: 1 }));
    assert.deepEqual(await list(store, { inDoubt: true }), [three.id, two.id]);
    assert.deepEqual(await list(store, { inDoubt: true }, "globex"), []);
    await refused("TAPE_BAD_INPUT", store.read.runs(tenant, { inDoubt: "yes" as never }));
  });

  it("a tree is listed oldest first, and its obligations in compensation order", async () => {
    const { store } = fresh();
    const root = await begin(store);
    const stranger = await begin(store);
    await stranger.write(...confirmed(0), armed(0));
    const child = await startChild(root, 0, unique("child"));
    const grandchild = await startChild(child, 0, unique("grandchild"));
    const other = await startChild(root, 1, unique("child"));
    await root.write(...confirmed(2), armed(2), ...confirmed(3), armed(3));
    await child.write(...confirmed(1), armed(1));
    const below = [child.id, grandchild.id, other.id];
    assert.deepEqual(await list(store, { below: root.journal }), below);
    assert.deepEqual(await paged(store, { below: root.journal }, 2), below);
    assert.deepEqual(await list(store, { below: child.journal }), []); // it is no root
    assert.deepEqual(await list(store, { below: root.journal }, "globex"), []);
    await childEnded(other, root, 1);
    assert.deepEqual(await list(store, { below: root.journal, status: ["COMPLETED"] }), [other.id]);
    const owed = async (filter: object, of = tenant) =>
      (await store.read.effects(of, { root: root.journal, ...filter })).map(({ run, pos, sub }) => [run, pos, sub]);
    const all = [
      [root.journal, 3, 1],
      [root.journal, 2, 1],
      [child.journal, 1, 1],
    ].sort(([a = 0], [b = 0]) => a - b);
    assert.deepEqual(await owed({}), all);
    assert.deepEqual(await owed({ limit: 2 }), all.slice(0, 2));
    assert.deepEqual(await owed({ status: ["PENDING"] }), []);
    assert.deepEqual(await owed({}, "globex"), []);
    // The obligations of one run: its own and those below it, without surpluses.
    await grandchild.write(...confirmed(4), armed(4));
    await child.write(record("obligation.surplus", { pos: 1, sub: 2, semantics: "read", key: "surplus", args: 1 }));
    const childs = [
      [child.journal, 1, 1],
      [grandchild.journal, 4, 1],
    ].sort(([a = 0], [b = 0]) => a - b);
    assert.deepEqual(await owed({ below: child.journal }), childs);
    assert.deepEqual(await owed({ below: child.journal, limit: 1 }), childs.slice(0, 1));
    assert.deepEqual(await owed({ below: child.journal, from: childs[1]![0] }), childs.slice(1));
    assert.deepEqual(await owed({ from: Math.max(...childs.map(([run = 0]) => run)) + 1 }), []);
    assert.deepEqual(await owed({ below: grandchild.journal, status: ["ARMED"] }), [[grandchild.journal, 4, 1]]);
    assert.deepEqual(await owed({ below: other.journal }), []);
    assert.deepEqual(await owed({ below: stranger.journal }), []);
    assert.equal((await owed({ below: root.journal })).length, 4);
    await refused("TAPE_BAD_INPUT", store.read.effects(tenant, { root: 0 }));
    await refused("TAPE_BAD_INPUT", store.read.runs(tenant, { below: -1 }));
  });

  it("budgets of open runs are listed nearest to their cap first, summed by unit", async () => {
    const { store } = fresh();
    const spending = async (budget: Record<string, number>, spent: Record<string, number>): Promise<Holder> => {
      const run = await begin(store, { budget, workflow: "agent" });
      const of = run.journal;
      await run.write(
        record("budget.reserved", { pos: 0, rootRun: of, amounts: spent }),
        record("budget.charged", { pos: 1, rootRun: of, spent, reserved: spent }),
      );
      return run;
    };
    assert.deepEqual(await store.read.spend(tenant), { budgets: [], units: [], more: false });
    const low = await spending({ usd: 100, tokens: 50 }, { usd: 10 });
    const high = await spending({ usd: 200 }, { usd: 150 });
    await high.write(record("budget.reserved", { pos: 2, rootRun: high.journal, amounts: { usd: 20 } }));
    const over = await spending({ usd: 10 }, { usd: 10 });
    await over.write(ended("COMPLETED", { outcome: 1 }));
    await store.intake.createRuns("globex", [spec({ budget: { usd: 7 } })]);
    await begin(store); // without one
    const { budgets, units, more } = await store.read.spend(tenant);
    assert.deepEqual(
      budgets.map(({ runId, unit, cap, reserved, spent }) => [runId, unit, cap, reserved, spent]),
      [
        [high.id, "usd", 200, 20, 150],
        [low.id, "usd", 100, 0, 10],
        [low.id, "tokens", 50, 0, 0],
      ],
    );
    assert.deepEqual(
      budgets.map(({ run, workflow, status }) => [run, workflow, status]),
      [high, low, low].map(({ journal }) => [journal, "agent", "RUNNING"]),
    );
    assert.deepEqual(units, [
      { unit: "tokens", runs: 1, cap: 50, reserved: 0, spent: 0 },
      { unit: "usd", runs: 2, cap: 300, reserved: 20, spent: 160 },
    ]);
    assert.equal(more, false);
    assert.deepEqual(await store.read.spend(tenant, 1), { budgets: budgets.slice(0, 1), units, more });
    assert.deepEqual(await store.read.spend("nobody"), { budgets: [], units: [], more: false });
    await refused("TAPE_BAD_INPUT", store.read.spend(tenant, 0));
  });

  it("the rate counts runs that started, ended and failed in each bucket", async () => {
    const { store, elapse } = fresh();
    const since = await store.read.now();
    await elapse(5);
    const [one, two, three] = [await begin(store), await begin(store), await begin(store)];
    await two.write(ended("FAILED", { outcome: "no" }));
    await three.write(decided("failed"), ended("FAILED"));
    await one.write(ended("COMPLETED", { outcome: 1 }));
    await elapse(5);
    const now = await store.read.now();
    const sum = async (from: number, sizeMs: number, buckets: number, of = tenant) => {
      const rate = await store.read.rate(of, from, sizeMs, buckets);
      assert.deepEqual(
        rate.map(({ at }) => at),
        Array.from({ length: buckets }, (_, k) => from + k * sizeMs),
      );
      assert.ok(rate.every(({ more }) => !more));
      return ["started", "ended", "failed"].map((what) =>
        rate.reduce((all, bucket) => all + bucket[what as "started"], 0),
      );
    };
    assert.deepEqual(await sum(since, now - since + 1, 1), [3, 3, 2]);
    const size = Math.max(1, Math.ceil((now - since) / 50));
    assert.deepEqual(await sum(since, size, 51), [3, 3, 2]);
    assert.deepEqual(await sum(now + 1, 1_000, 3), [0, 0, 0]);
    assert.deepEqual(await sum(since - 10_000, 5_000, 2), [0, 0, 0]);
    assert.deepEqual(await sum(since, now - since + 1, 1, "globex"), [0, 0, 0]);
    const { createdAt } = await one.view();
    const [before, exact] = await store.read.rate(tenant, createdAt - 1, 1, 2);
    assert.equal(before!.started, 0); // until is exclusive
    assert.ok(exact!.started >= 1); // since is inclusive
    for (const [from, sizeMs, buckets] of [
      [-1, 1, 1],
      [0, 0, 1],
      [0, 1, 0],
      [0, 1.5, 1],
    ] as const) {
      await refused("TAPE_BAD_INPUT", store.read.rate(tenant, from, sizeMs, buckets));
    }
    await refused("TAPE_TOO_LARGE", store.read.rate(tenant, 0, 1, 100_000));
  });

  it("the agenda shows how long work has been due", async () => {
    const { store, elapse } = fresh();
    await store.intake.createRuns(tenant, [spec()]);
    await elapse(20);
    const recovery = (await store.read.agenda(tenant)).find(({ reactor }) => reactor === "recovery");
    assert.equal(recovery?.dueInMs, 0);
    assert.ok(recovery.lateMs >= 15, String(recovery.lateMs));
  });

  it("resolving as compensate confirms the effect and adds a surplus in one write", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0, { semantics: "non_idempotent", businessKey: "invoice" }), dispatched(0));
    await run.write(settled(0, "UNKNOWN", { reason: "ack_lost" }));
    const item = await holdItem(store, run.id, 0);
    const owed = record("obligation.surplus", {
      ...{ run: run.journal, pos: 0, sub: 1, name: "wire", semantics: "idempotent" as const, key: "k:compensation" },
      args: { args: 1, result: 2 },
    });
    const settling = settled(0, "CONFIRMED", { run: run.journal, reason: "operator", value: 2 });
    await item.write(settling, owed, record("term.ended", { reason: "released", notesTaken: 0 }));
    assert.deepEqual([(await run.effect(0)).status, (await run.effect(0, 1)).status], ["CONFIRMED", "PENDING"]);
    assert.ok((await store.read.businessKeyOwner(tenant, "wire", "invoice")) !== undefined);
    const [term] = await find(store, "compensation");
    const compensation = new Holder(store, term!, run.id);
    await run.write(ended("COMPLETED", { outcome: 1, notesTaken: (await run.view()).notes })); // the surplus does not block the end
    await compensation.write(dispatched(0, { run: run.journal, sub: 1 }), compensated(run.journal, 0));
    assert.equal((await run.effect(0, 1)).status, "COMPENSATED");
    assert.equal(await store.read.businessKeyOwner(tenant, "wire", "invoice"), undefined);
  });

  it("a run cannot complete while an obligation made due by an operator is open", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(...confirmed(0), armed(0), ...confirmed(1), armed(1));
    await run.write(record("obligation.due", { pos: 0, sub: 1, reason: "asked" }));
    const [term, ...more] = await find(store, "compensation");
    assert.equal(more.length, 0);
    await unchanged(store, () => run.refused("TAPE_RUN_UNSETTLED", ended("COMPLETED", { outcome: 1 })));
    await run.write(decided("completed", 1));
    await unchanged(store, () => run.refused("TAPE_RUN_UNSETTLED", ended("COMPLETED")));
    const compensation = new Holder(store, term!, run.id);
    await compensation.write(dispatched(0, { run: run.journal, sub: 1 }), compensated(run.journal, 0));
    await run.write(ended("COMPLETED", { notesTaken: (await run.view()).notes }));
    assert.deepEqual([(await run.effect(0, 1)).status, (await run.effect(1, 1)).status], ["COMPENSATED", "DISCHARGED"]);
  });
};
