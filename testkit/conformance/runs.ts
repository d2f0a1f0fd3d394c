import { strict as assert } from "node:assert";
import type { RunFilter, RunSpec, RunView } from "../../src/store/contract/store.ts";
import { type Cases, claimant, nonce, refused, request, spec, step, tenant, unique } from "./frame.ts";
import { begin, countOutcomes, dataOf, ended, lasting, statusOf, unchanged, viewOf } from "./holder.ts";

/** Runs: creation, lists, and the end. */
export const runs: Cases = ({ it }, fresh) => {
  it("creating the same run twice returns the same run", async () => {
    const { store } = fresh();
    const runSpec = spec({ input: { a: 1, b: [new Date(0), 2n] }, labels: { team: "ops" } });
    const [first] = await store.intake.createRuns(tenant, [runSpec]);
    assert.ok(first?.ok && first.fresh);
    // Inputs are equal whatever the order of their keys.
    const same = { ...runSpec, input: { b: [new Date(0), 2n], a: 1 } };
    const [second] = await unchanged(store, () => store.intake.createRuns(tenant, [same]));
    assert.deepEqual(second, { ok: true, journal: first.journal, fresh: false });
    const held = { ...claimant(), nonce: nonce() };
    const [third] = await unchanged(store, () => store.intake.createRuns(tenant, [same], held));
    assert.deepEqual(third, { ok: true, journal: first.journal, fresh: false }, "an existing run is not handed out");
    const [record, ...rest] = await store.read.journal(tenant, { run: runSpec.id });
    assert.equal(rest.length, 0);
    assert.deepEqual(dataOf(record, "run.created").input, runSpec.input);
    assert.equal(record?.token, 0n);
  });

  it("creating an id with another input or workflow is a conflict", async () => {
    const { store } = fresh();
    const runSpec = spec();
    await store.intake.createRuns(tenant, [runSpec]);
    const others = [
      { ...runSpec, input: { n: 2 } },
      { ...runSpec, input: { n: 1n } },
      { ...runSpec, workflow: "other" },
    ];
    const verdicts = await unchanged(store, () => store.intake.createRuns(tenant, others));
    for (const verdict of verdicts) assert.ok(!verdict.ok && verdict.error.code === "TAPE_RUN_CONFLICT");
    const [elsewhere] = await store.intake.createRuns("globex", [{ ...runSpec, input: { n: 2 } }]);
    assert.ok(elsewhere?.ok && elsewhere.fresh, "another tenant may use the same id");
  });

  it("a run is read as it was created", async () => {
    const { store } = fresh();
    const labels = { team: "ops", "a b": "%_'\"\\", "ключ 😀": "" };
    const runSpec = spec({ workflow: "pay", version: "7", labels, budget: { usd: 5_000_000 } });
    await store.intake.createRuns(tenant, [runSpec]);
    const view = await viewOf(store, runSpec.id);
    const { id, workflow, version, status, cause, stuckFrom, outcome, parent, root, endedAt, notes } = view;
    assert.deepEqual(
      { id, workflow, version, status, cause, stuckFrom, outcome, parent, endedAt, notes },
      {
        id: runSpec.id,
        workflow: "pay",
        version: "7",
        status: "RUNNABLE",
        cause: null,
        stuckFrom: null,
        outcome: undefined,
        parent: null,
        endedAt: null,
        notes: 0,
      },
    );
    assert.equal(root, view.journal);
    assert.deepEqual(view.labels, labels);
    assert.ok(Math.abs(view.createdAt - (await store.read.now())) < 60_000);
    const budgets = await store.read.budgets(tenant, runSpec.id);
    assert.deepEqual(budgets, [{ run: view.journal, unit: "usd", cap: 5_000_000, reserved: 0, spent: 0 }]);
    assert.equal(await store.read.run(tenant, "nobody"), undefined);
  });

  it("a run is RUNNABLE when created or queued, RUNNING when held, WAITING when parked", async () => {
    const { store } = fresh();
    const runSpec = spec();
    await store.intake.createRuns(tenant, [runSpec]);
    assert.equal(await statusOf(store, runSpec.id), "RUNNABLE");
    const run = await begin(store);
    assert.equal(await statusOf(store, run.id), "RUNNING");
    assert.equal(run.term.head, 1);
    assert.equal(run.term.reason, "start");
    await run.release();
    assert.equal(await statusOf(store, run.id), "WAITING");
    const again = await begin(store);
    await again.release(0, { nextReactor: "recovery", delayMs: 60_000 });
    assert.equal(await statusOf(store, again.id), "RUNNABLE");
  });

  it("of 100 runs in one call only the invalid ones fail", async () => {
    const { store } = fresh();
    const specs = Array.from({ length: 100 }, () => spec());
    const taken = specs[60]!;
    await store.intake.createRuns(tenant, [{ ...taken, input: "another" }]);
    specs[17] = { ...specs[17]!, input: () => 1 };
    specs[41] = { ...specs[41]!, id: "" };
    const verdicts = await store.intake.createRuns(tenant, specs);
    const codes = verdicts.map((verdict) => (verdict.ok ? "fresh" : verdict.error.code));
    assert.deepEqual(countOutcomes(codes), {
      fresh: 97,
      TAPE_NOT_ENCODABLE: 1,
      TAPE_BAD_INPUT: 1,
      TAPE_RUN_CONFLICT: 1,
    });
    assert.equal(codes[17], "TAPE_NOT_ENCODABLE");
    assert.equal(codes[41], "TAPE_BAD_INPUT");
    assert.equal(codes[60], "TAPE_RUN_CONFLICT");
    assert.equal((await store.read.runs(tenant)).length, 98);
    const journals = verdicts.flatMap((verdict) => (verdict.ok ? [verdict.journal] : []));
    assert.equal(new Set(journals).size, 97);
  });

  it("concurrent creations of one id yield one run with one creator", async () => {
    const { store, another } = fresh();
    const clients = [store, await another(), store, await another()];
    const specs = Array.from({ length: 20 }, () => spec());
    const results = await Promise.all(
      clients.map((client) => client.intake.createRuns(tenant, specs, { ...claimant(), nonce: nonce() })),
    );
    for (const [k, { id }] of specs.entries()) {
      const verdicts = results.map((result) => result[k]!).map((verdict) => (verdict.ok ? verdict : undefined));
      assert.deepEqual(countOutcomes(verdicts.map((verdict) => verdict?.fresh)), { true: 1, false: 3 }, id);
      assert.equal(new Set(verdicts.map((verdict) => verdict?.journal)).size, 1);
      assert.deepEqual(countOutcomes(verdicts.map((verdict) => verdict?.term !== undefined)), { true: 1, false: 3 });
      assert.equal((await store.read.journal(tenant, { run: id })).length, 1);
    }
    const twin = spec();
    const twins = await store.intake.createRuns(tenant, [twin, twin]);
    assert.deepEqual(countOutcomes(twins.map((verdict) => verdict.ok && verdict.fresh)), { true: 1, false: 1 });
  });

  it("an ended run rejects writes, claims and notes, and keeps its outcome", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(ended("COMPLETED", { outcome: { paid: 7n } }));
    const { status, cause, outcome, endedAt } = await run.view();
    assert.deepEqual({ status, cause, outcome }, { status: "COMPLETED", cause: "completed", outcome: { paid: 7n } });
    assert.ok(endedAt !== null);
    await unchanged(store, async () => {
      await run.refused("TAPE_FENCED", step(0));
      for (const expect of ["free", "free_or_expired", "any"] as const) {
        const acquire = request({ run: run.id }, { expect, by: "ann", auditReason: "to see" });
        const result = await store.claim.acquire(tenant, acquire);
        assert.ok(!result.ok && result.error.code === "TAPE_RUN_ENDED");
      }
      await refused("TAPE_RUN_ENDED", store.intake.signal(tenant, run.id, { name: "s", value: 1 }));
      await refused("TAPE_RUN_ENDED", store.intake.cancel(tenant, run.id, { reason: "late" }));
    });
    const found = await store.claim.find({
      claimant: claimant(),
      nextReactor: "recovery",
      staleOf: ["agent"],
      limit: 10,
      nonce: nonce(),
    });
    assert.deepEqual(found, []);
  });

  it("runs are filtered by status, workflow and label", async () => {
    const { store } = fresh();
    const key = 'odd.key "\\ %_ 😀';
    const specs: RunSpec[] = [
      spec({ workflow: "pay", labels: { team: "ops", [key]: "x" } }),
      spec({ workflow: "pay", labels: { team: "dev" } }),
      spec({ workflow: "ship", labels: { [key]: "%" } }),
      spec({ workflow: "ship" }),
    ];
    await store.intake.createRuns(tenant, specs);
    await store.intake.createRuns("globex", [spec({ workflow: "pay", labels: { team: "ops" } })]);
    const held = await begin(store, { workflow: "ship" });
    const parked = await begin(store, { workflow: "pay" });
    await parked.release();
    const over = await begin(store, { workflow: "pay", labels: { team: "ops" } });
    await over.write(ended("COMPLETED", { outcome: 1 }));
    const [a, b, c, d] = specs.map(({ id }) => id) as [string, string, string, string];
    const table: [RunFilter, string[]][] = [
      [{}, [a, b, c, d, held.id, parked.id, over.id]],
      [{ workflow: "pay" }, [a, b, parked.id, over.id]],
      [{ workflow: "pay%" }, []],
      [{ status: ["RUNNABLE"] }, [a, b, c, d]],
      [{ status: ["RUNNING", "WAITING"] }, [held.id, parked.id]],
      [{ status: ["COMPLETED", "FAILED"], workflow: "pay" }, [over.id]],
      [{ status: ["STUCK"] }, []],
      [{ label: { key: "team", value: "ops" } }, [a, over.id]],
      [{ label: { key: "team", value: "ops" }, status: ["RUNNABLE"] }, [a]],
      [{ label: { key, value: "x" } }, [a]],
      [{ label: { key, value: "%" } }, [c]],
      [{ label: { key: "missing", value: "ops" } }, []],
    ];
    const idsOf = (views: RunView[]) => views.map(({ id }) => id).sort();
    for (const [filter, ids] of table) {
      assert.deepEqual(idsOf(await store.read.runs(tenant, filter)), ids.sort(), JSON.stringify(filter));
    }
    assert.deepEqual(await store.read.runs("nobody"), []);
  });

  it("pages contain every run once, newest first", async () => {
    const { store } = fresh();
    await store.intake.createRuns(
      tenant,
      Array.from({ length: 23 }, () => spec()),
    );
    const all = await store.read.runs(tenant);
    const journals = all.map(({ journal }) => journal);
    assert.deepEqual(
      journals,
      [...journals].sort((a, b) => b - a),
    );
    for (const limit of [1, 5, 23, 50]) {
      const seen: string[] = [];
      let before: number | undefined;
      for (;;) {
        const page = await store.read.runs(tenant, { limit, ...(before === undefined ? {} : { before }) });
        if (page.length === 0) break;
        assert.ok(page.length <= limit);
        seen.push(...page.map(({ id }) => id));
        before = page.at(-1)!.journal;
      }
      assert.deepEqual(
        seen,
        all.map(({ id }) => id),
      );
    }
  });

  it("a run is read with its lease", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const { lease } = await run.view();
    assert.deepEqual(
      {
        journal: lease.journal,
        state: lease.state,
        token: lease.token,
        name: lease.name,
        ttlMs: lease.ttlMs,
        reason: lease.reason,
      },
      {
        journal: run.journal,
        state: "HELD",
        token: run.term.fence.token,
        name: run.id,
        ttlMs: lasting.ttlMs,
        reason: "start",
      },
    );
    await run.release(0, { nextReactor: unique("reactor") });
    assert.equal((await run.view()).lease.state, "FREE");
  });

  it("reads the progress of many runs in one query, own tenant only", async () => {
    const { store } = fresh();
    const [held, over, waiting] = await Promise.all([begin(store), begin(store), begin(store)]);
    await over.write(ended("COMPLETED", { outcome: { paid: 7n } }));
    await waiting.release(0, {});
    const ids = [held.id, over.id, waiting.id, unique("absent")];
    const progress = new Map((await store.read.progress(tenant, ids)).map((run) => [run.id, run]));
    assert.deepEqual([...progress.keys()].sort(), [held.id, over.id, waiting.id].sort());
    const { id, journal } = over;
    const workflow = progress.get(held.id)!.workflow;
    assert.deepEqual(progress.get(over.id), {
      id,
      journal,
      workflow,
      status: "COMPLETED",
      outcome: { paid: 7n },
      ended: true,
      idle: true,
    });
    const brief = (of: string) => [progress.get(of)!.status, progress.get(of)!.ended, progress.get(of)!.idle];
    assert.deepEqual(brief(held.id), ["RUNNING", false, false]);
    assert.deepEqual(brief(waiting.id), ["WAITING", false, true]);
    assert.deepEqual(await store.read.progress("globex", ids), []);
    assert.deepEqual(await store.read.progress(tenant, []), []);
    await refused("TAPE_BAD_INPUT", store.read.progress(tenant, [7 as never]));
  });
};
