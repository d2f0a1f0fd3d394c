import { strict as assert } from "node:assert";
import { callbackToken } from "../../src/model/callback-token.ts";
import type { AppendResult, CreateResult, IntakeOps, RunSpec, Store } from "../../src/store/contract/store.ts";
import {
  acquired,
  type Cases,
  claimant,
  forged,
  heldRun,
  nonce,
  record,
  refused,
  request,
  scheduleSpec,
  spec,
  step,
  tenant,
  unique,
} from "./frame.ts";
import { begin, confirmed, countOutcomes, ended, everything, intent, lasting, unchanged } from "./holder.ts";

const repeatOf = (key: string, hash = "h", of = tenant) => ({ tenant: of, key, hash });

/** Calls repeated after a lost response: the same response, and nothing done twice. */
/** Writes that change nothing when they are repeated. */
const repeatable = ["touchToken", "reportProcess", "removeProcess", "reportBuild", "streamToken"];

export const idempotency: Cases = ({ it }, fresh) => {
  it("every intake write happens once per key, with the same response each time", async () => {
    const { store, another, elapse } = fresh();
    const run = await begin(store);
    await run.write(
      intent(0, { semantics: "non_idempotent" }),
      record("effect.dispatched", { pos: 0, attempt: 1, sendWithinMs: 1_000 }),
      record("timer.set", { pos: 1, purpose: "sleep", delayMs: 1 }),
      record("gate.opened", { pos: 2, name: "paid", callback: "json" }),
    );
    const callback = callbackToken(await store.claim.callbackSecret(run.term.fence), { journal: run.journal, pos: 2 });
    const over = await begin(store);
    await over.write(ended("COMPLETED", { outcome: 1 }));
    await elapse(10);
    const now = await store.read.now();
    for (const [id, nextAt] of [["due", now - 1] as const, ["gone", null] as const])
      await store.intake.putSchedule(tenant, { id, spec: scheduleSpec(), nextAt, paused: false });
    await store.intake.putValue(tenant, "gone", 1, "must_create");
    await acquired(store, request({ name: "sink s" }));
    await store.intake.reportBuild(tenant, "b", ["w"]);
    const [runs, fired] = [[spec(), spec({ budget: { usd: 5 } })], [spec({ schedule: "due" })]];
    const audit = { by: "ann", reason: "drill" };
    const attempt = { run: run.journal, pos: 0, token: run.term.fence.token, nonce: run.term.fence.nonce };
    const deep = { value: [1n, undefined, { at: new Date(5) }] };
    const token = { id: unique("token"), tenant, name: "n", role: "reader", hash: "h" };
    const calls: Readonly<Record<string, (intake: IntakeOps) => Promise<unknown>>> = {
      signal: (intake) => intake.signal(tenant, run.id, { name: "s", value: 1 }),
      cancel: (intake) => intake.cancel(tenant, run.id, { reason: "r" }),
      deliver: (intake) => intake.deliver(tenant, callback, { value: 1 }),
      leaveEvidence: (intake) => intake.leaveEvidence(tenant, attempt, { happened: true, value: 1 }),
      fireTimer: (intake) => intake.fireTimer(tenant, { run: run.journal, pos: 1, purpose: "sleep" }),
      putValue: (intake) => intake.putValue(tenant, "k", deep, "unconditional"),
      deleteValue: (intake) => intake.deleteValue(tenant, "gone", 1),
      putSchedule: (intake) =>
        intake.putSchedule(tenant, { id: "s", spec: scheduleSpec(), nextAt: null, paused: true }),
      deleteSchedule: (intake) => intake.deleteSchedule(tenant, "gone"),
      fireSchedule: (intake) => intake.fireSchedule(tenant, "due", 1, null, fired),
      createRuns: (intake) => intake.createRuns(tenant, runs),
      putQueue: (intake) => intake.putQueue(tenant, "q", { counts: "running", concurrency: 1 }),
      changeQueue: (intake) => intake.changeQueue(tenant, "q", { concurrency: 2 }, audit),
      resetQueue: (intake) => intake.resetQueue(tenant, "q", audit),
      pauseQueue: (intake) => intake.pauseQueue(tenant, "q", true, audit),
      requestRetention: (intake) => intake.requestRetention(tenant, audit),
      setCurrentBuild: (intake) => intake.setCurrentBuild(tenant, "b", audit),
      settleLetters: (intake) => intake.settleLetters(tenant, "s", "DISCARDED", undefined, audit),
      eraseRun: (intake) => intake.eraseRun(tenant, over.id, audit),
      prune: (intake) => intake.prune(tenant, now + 60_000, 5, audit),
      setQuota: (intake) => intake.setQuota(tenant, { streams: 5 }, audit),
      putToken: (intake) => intake.putToken(token, audit),
      revokeToken: (intake) => intake.revokeToken(tenant, token.id, audit),
      recordAudit: (intake) => intake.recordAudit(tenant, "call.refused", audit, { route: "x" }),
    };
    const named = [...Object.keys(calls), ...repeatable].sort();
    assert.deepEqual(Object.keys(store.intake).sort(), named, "every write is tried here");
    const other = await another();
    for (const [what, call] of Object.entries(calls)) {
      const first = await call(store.once(repeatOf(what)));
      await unchanged(store, async () => {
        assert.deepEqual(await call(store.once(repeatOf(what))), first, what);
        assert.deepEqual(await call(other.once(repeatOf(what))), first, `${what}, by another process`);
      });
    }
    assert.equal((await run.view()).notes, 5);
    // Queues (3), requestRetention, setCurrentBuild, settleLetters, eraseRun, prune, setQuota, putToken, revokeToken, recordAudit.
    assert.equal((await store.read.audit(tenant)).length, 12, "one entry each");
    const created = (await calls.createRuns!(store.once(repeatOf("createRuns")))) as CreateResult[];
    assert.ok(created.length === 2 && created.every((one) => one.fresh));
    assert.deepEqual(await store.read.budgets(tenant, runs[1]!.id), [
      { run: created[1]!.journal, unit: "usd", cap: 5, reserved: 0, spent: 0 },
    ]);
  });

  it("a key repeated with another call or other arguments is refused", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const ask = (hash: string, of = tenant) =>
      store.once(repeatOf("k", hash, of)).putValue(of, "v", hash, "unconditional");
    await ask("a");
    await unchanged(store, async () => {
      await refused("TAPE_KEY_REUSED", ask("b"));
      await refused("TAPE_KEY_REUSED", store.once(repeatOf("k", "a")).signal(tenant, run.id, { name: "s", value: 1 }));
    });
    assert.equal((await ask("b", "globex")).value, "b", "keys are the tenant's");
    await refused("TAPE_BAD_INPUT", (async () => store.once(repeatOf("")).prune(tenant, 1, 1))());
    await refused("TAPE_BAD_INPUT", (async () => store.once({ tenant, key: "k" } as never).prune(tenant, 1, 1))());
  });

  it("a refusal is not stored, and leaves nothing", async () => {
    const { store } = fresh();
    const run = spec();
    const send = () => store.once(repeatOf("k")).signal(tenant, run.id, { name: "s", value: 1 });
    await unchanged(store, () => refused("TAPE_RUN_NOT_FOUND", send()));
    await store.intake.createRuns(tenant, [run]);
    assert.deepEqual([await send(), await send()], Array(2).fill({ n: 1, duplicate: false }));
  });

  it("a refused creation does not use up its key", async () => {
    const { store } = fresh();
    const taken = spec();
    await store.intake.createRuns(tenant, [taken]);
    const create = (run: RunSpec, hash: string) => store.once(repeatOf("k", hash)).createRuns(tenant, [run]);
    for (const wrong of [
      { ...taken, input: "another" },
      { ...spec(), workflow: "" },
    ]) {
      const [verdict] = await unchanged(store, () => create(wrong, wrong.id));
      assert.equal(verdict?.ok, false);
    }
    const right = spec();
    const [first, again] = [await create(right, "right"), await create(right, "right")];
    assert.ok(first[0]?.ok && first[0].fresh);
    assert.deepEqual(again, first);
  });

  it("a value write has the same response after the value is overwritten or erased", async () => {
    const { store, another } = fresh();
    const write = async () =>
      (await another()).once(repeatOf("erased")).putValue(tenant, "erased", [1n], "must_create");
    const first = await write();
    assert.deepEqual(first.value, [1n]);
    assert.deepEqual(await write(), first);
    const { version } = await store.intake.putValue(tenant, "erased", 2, "unconditional");
    assert.deepEqual(await write(), first);
    await store.intake.deleteValue(tenant, "erased", version);
    assert.deepEqual(await write(), first);
    assert.equal((await store.read.value(tenant, "erased"))?.deleted, true);
  });

  it("a version conflict is stored: a late repetition gets the same response", async () => {
    const { store } = fresh();
    const write = () => store.once(repeatOf("v")).putValue(tenant, "v", 2, "must_create");
    const { version } = await store.intake.putValue(tenant, "v", 1, "must_create");
    const first = await refused("TAPE_VERSION_CONFLICT", write());
    await store.intake.deleteValue(tenant, "v", version);
    const second = await unchanged(store, () => refused("TAPE_VERSION_CONFLICT", write()));
    assert.deepEqual([second.message, second.details], [first.message, first.details]);
    assert.equal((await store.once(repeatOf("other")).putValue(tenant, "v", 2, "must_create")).version, version + 2);
  });

  it("of many callers with one key one writes, and all get its response", async () => {
    const { store, another } = fresh();
    const run = await begin(store);
    const clients = [store, await another()];
    const put = (k: number) => clients[k % 2]!.once(repeatOf("put")).putValue(tenant, "v", k, "unconditional");
    const values = await Promise.all(Array.from({ length: 8 }, (_, k) => put(k)));
    assert.deepEqual(countOutcomes(values.map(({ version }) => version)), { 1: 8 });
    assert.equal(new Set(values.map(({ value }) => value)).size, 1);
    const send = (k: number) => clients[k % 2]!.once(repeatOf("send")).signal(tenant, run.id, { name: "s", value: k });
    const sent = await Promise.all(Array.from({ length: 8 }, (_, k) => send(k)));
    assert.deepEqual(countOutcomes(sent.map(({ n, duplicate }) => `${n} ${duplicate}`)), { "1 false": 8 });
    assert.equal((await run.view()).notes, 1);
  });

  it("each run of a batch has its own result, and a repetition returns the same", async () => {
    const { store } = fresh();
    const taken = spec();
    await store.intake.createRuns(tenant, [taken]);
    const runs = [spec(), { ...taken, input: "another" }, { ...spec(), workflow: "" }, spec()];
    const create = async () =>
      (await store.once(repeatOf("k")).createRuns(tenant, runs)).map((verdict) =>
        verdict.ok ? [verdict.journal, verdict.fresh] : verdict.error.code,
      );
    const first = await create();
    assert.deepEqual([first[1], first[2]], ["TAPE_RUN_CONFLICT", "TAPE_BAD_INPUT"]);
    assert.deepEqual([first[0]![1], first[3]![1]], [true, true]);
    await unchanged(store, async () => assert.deepEqual(await create(), first));
    const held = { ...claimant(), nonce: nonce() };
    const [verdict] = await store.once(repeatOf("held")).createRuns(tenant, [spec()], held);
    assert.ok(verdict?.ok && verdict.term !== undefined, "with a first term the nonce names the call");
  });

  it("a cancellation's key sends one note, and is independent of signal keys", async () => {
    const { store, another } = fresh();
    const run = await begin(store);
    const clients = [store, await another()];
    assert.equal((await store.intake.signal(tenant, run.id, { name: "s", value: 1, key: "k" })).n, 1);
    const cancel = (k: number, key: string) => clients[k % 2]!.intake.cancel(tenant, run.id, { reason: "r", key });
    const results = await Promise.all(Array.from({ length: 8 }, (_, k) => cancel(k, "k")));
    assert.deepEqual(countOutcomes(results.map(({ n }) => n)), { 2: 8 });
    assert.equal((await cancel(0, "another")).n, 3);
    assert.equal((await store.intake.signal(tenant, run.id, { name: "s", value: 1, key: "another" })).duplicate, false);
    const [, note] = await store.read.journal(tenant, { run: run.id }, { inbox: true });
    assert.deepEqual([note?.kind, note?.data], ["cancel.requested", { reason: "r" }]);
    await run.write(ended("COMPLETED", { outcome: 1, notesTaken: 4 }));
    assert.equal((await cancel(0, "k")).n, 2, "also once the run has ended");
    await refused("TAPE_RUN_ENDED", cancel(0, "late"));
    await store.intake.prune(tenant, (await store.read.now()) + 60_000, 5);
  });
};

/** The two writes that are named by their fence or nonce, and need no key. */
export const lostResponses: Cases = ({ it }, fresh) => {
  const create = async (
    store: Store,
    run: ReturnType<typeof spec>,
    first: ReturnType<typeof claimant>,
    own: bigint,
  ) => {
    const [verdict] = await store.intake.createRuns(tenant, [run], { ...first, nonce: own });
    assert.ok(verdict?.ok);
    return verdict;
  };

  it("a repeated creation returns the same first term while that is current", async () => {
    const { store, another } = fresh();
    const other = await another();
    for (const budget of [{ budget: { usd: 1 } }, {}] as { budget?: { usd: number } }[]) {
      const [run, first, own] = [spec(budget), claimant(undefined, lasting), nonce()];
      const created = await create(store, run, first, own);
      await unchanged(store, async () => {
        assert.deepEqual(await create(store, run, first, own), created);
        assert.deepEqual(await create(other, run, first, own), created);
        const { fresh: isFresh, term } = await create(store, run, first, nonce());
        assert.deepEqual([isFresh, term], [false, undefined], "another call of the same owner finds the run");
        const rival = await create(store, run, claimant(), own);
        assert.deepEqual([rival.fresh, rival.term], [false, undefined], "a nonce names one owner's call");
      });
      const { fence } = created.term!;
      await store.fenced.append(fence, { after: 1, records: [step(0)] });
      assert.deepEqual((await create(other, run, first, own)).term, { ...created.term, head: 2 });
      if (budget.budget === undefined) await store.claim.restored("drill");
      else await acquired(store, request({ run: run.id }, { expect: "any", by: "ann", auditReason: "drill" }));
      const late = await create(store, run, first, own);
      assert.deepEqual([late.fresh, late.term], [false, undefined], "its term is over");
    }
  });

  it("many runs created twice at the same time exist once each", async () => {
    const { store, another } = fresh();
    const other = await another();
    const first = { ...claimant(undefined, lasting), nonce: nonce() };
    const runs = Array.from({ length: 20 }, () => spec());
    const [ours, theirs] = await Promise.all([store, other].map((by) => by.intake.createRuns(tenant, runs, first)));
    assert.deepEqual(ours, theirs);
    assert.ok(ours!.every((verdict) => verdict.ok && verdict.fresh && verdict.term !== undefined));
    assert.equal((await store.read.runs(tenant)).length, 20);
  });

  it("a repeated append gets the same response while its term is current", async () => {
    const { store, another } = fresh();
    const other = await another();
    const run = await heldRun(store, {}, claimant(undefined, lasting));
    const entries = [
      { after: 1, records: [step(0)] },
      { after: 2, records: [step(1), step(2)] },
      { after: 4, records: confirmed(3) },
      { after: 7, records: [record("gate.opened", { pos: 4, name: "g" })] },
    ];
    const results: AppendResult[] = [];
    for (const entry of entries) results.push(await store.fenced.append(run.fence, entry));
    await unchanged(store, async () => {
      for (const [k, entry] of entries.entries()) {
        assert.deepEqual(await store.fenced.append(run.fence, entry), results[k]);
        assert.deepEqual(await other.fenced.append(run.fence, entry), results[k]);
      }
      const verdicts = await store.fenced.appendAll(entries.map((entry) => [run.fence, entry] as const));
      assert.deepEqual(
        verdicts,
        results.map((result) => ({ ok: true, ...result })),
      );
      const others = [
        { after: 1, records: [step(0, "another value")] },
        { after: 1, records: [step(1)] },
        { after: 2, records: [step(1), step(9)] },
        { after: 7, records: [record("gate.opened", { pos: 4, name: "g" }), step(5)] },
        { after: 4, records: [intent(3), record("effect.dispatched", { pos: 3, attempt: 2, sendWithinMs: 1_000 })] },
      ];
      for (const entry of others) await refused("TAPE_NOT_HEAD", store.fenced.append(run.fence, entry));
      await refused("TAPE_FENCED", store.fenced.append(forged(run, { nonce: 7n }), entries[0]!));
      await refused("TAPE_FENCED", store.fenced.append(forged(run, { token: 9n }), entries[0]!));
    });
    await store.intake.signal(tenant, run.id, { name: "s", value: 1 });
    assert.deepEqual(
      await store.fenced.append(run.fence, entries[0]!),
      { head: 2, notes: 1 },
      "an untaken note is reported",
    );
  });

  it("a stale writer is fenced, whatever it had written", async () => {
    const { store } = fresh();
    const run = await heldRun(store, {}, claimant(undefined, lasting));
    const entry = { after: 1, records: [step(0)] };
    await store.fenced.append(run.fence, entry);
    const force = { claimant: claimant(undefined, lasting), expect: "any", by: "ann", auditReason: "drill" } as const;
    const successor = await acquired(store, request({ run: run.id }, force));
    const released = { after: successor.head, records: [record("term.ended", { reason: "released", notesTaken: 0 })] };
    await unchanged(store, async () => {
      await refused("TAPE_FENCED", store.fenced.append(run.fence, entry));
      await refused("TAPE_FENCED", store.fenced.append(run.fence, released));
    });
    await store.fenced.append(successor.fence, released);
    await unchanged(store, async () => {
      await refused("TAPE_FENCED", store.fenced.append(run.fence, released));
      const next = {
        after: successor.head + 1,
        records: [record("term.ended", { reason: "released", notesTaken: 0 })],
      };
      await refused("TAPE_FENCED", store.fenced.append(successor.fence, next));
    });
  });

  it("a repeated park, end or release gets the same response", async () => {
    const { store, another } = fresh();
    const other = await another();
    const parked = record("term.ended", { reason: "released", notesTaken: 0 });
    const endings = [[parked], [step(0), parked], [ended("COMPLETED", { outcome: { n: 1n } })]];
    for (const records of endings) {
      const run = await heldRun(store, {}, claimant(undefined, lasting));
      const result = await store.fenced.append(run.fence, { after: 1, records });
      assert.deepEqual(result, { head: 1 + records.length, notes: 0 });
      const last = records.at(-1) === parked;
      if (last) await store.intake.signal(tenant, run.id, { name: "s", value: 1 });
      if (last) await acquired(store, request({ run: run.id }, { claimant: claimant(undefined, lasting) }));
      await unchanged(store, async () => {
        assert.deepEqual(await store.fenced.append(run.fence, { after: 1, records }), result);
        assert.deepEqual(await other.fenced.append(run.fence, { after: 1, records }), result);
        await refused("TAPE_FENCED", store.fenced.append(run.fence, { after: 1, records: [step(9)] }));
        const drained = record("term.ended", { reason: "drained", notesTaken: 0 });
        await refused("TAPE_FENCED", store.fenced.append(run.fence, { after: 1, records: [drained] }));
      });
    }
    const named = await acquired(store, request({ name: unique("lease") }));
    const entry = { after: named.head, records: [record("term.ended", { reason: "released", notesTaken: 0 })] };
    const first = await store.fenced.append(named.fence, entry);
    assert.deepEqual(await other.fenced.append(named.fence, entry), first);
  });

  it("the same append from two clients is written once, and both succeed", async () => {
    const { store, another } = fresh();
    const clients = [store, await another()];
    const runs = await Promise.all(Array.from({ length: 10 }, () => heldRun(store, {}, claimant(undefined, lasting))));
    const results = await Promise.all(
      runs.flatMap(({ fence }) =>
        clients.map((by) => by.fenced.append(fence, { after: 1, records: [step(0), intent(1)] })),
      ),
    );
    assert.deepEqual(countOutcomes(results.map(({ head }) => head)), { 3: 20 });
    const before = await everything(store);
    for (const run of runs) assert.equal((await store.read.journal(tenant, { run: run.id })).length, 3);
    assert.equal(await everything(store), before);
  });
};
