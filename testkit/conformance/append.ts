import { strict as assert } from "node:assert";
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
  step,
  tenant,
} from "./frame.ts";
import { lasting } from "./holding.ts";
import { everything } from "./scenes.ts";

/** The door: what enters a journal, and what does not. */
export const append: Cases = ({ it }, fresh) => {
  it("records are dense from 1 and carry the token they were written under", async () => {
    const { store } = fresh();
    const run = await heldRun(store);
    const done = await store.fenced.append(run.fence, { after: 1, records: [step(0), step(1)] });
    assert.equal(done.head, 3);
    const records = await store.read.journal(tenant, { run: run.id });
    assert.deepEqual(
      records.map(({ seq, token, kind }) => ({ seq, token, kind })),
      [
        { seq: 1, token: 0n, kind: "run.created" },
        { seq: 2, token: 1n, kind: "step.done" },
        { seq: 3, token: 1n, kind: "step.done" },
      ],
    );
  });

  it("of 100 writers in one group one is stale: 99 commit, one is refused", async () => {
    const { store } = fresh();
    const runs = await Promise.all(Array.from({ length: 100 }, () => heldRun(store)));
    const verdicts = await store.fenced.appendAll(
      runs.map(
        (run, k) => [k === 37 ? forged(run, { token: 9n }) : run.fence, { after: 1, records: [step(0)] }] as const,
      ),
    );
    assert.equal(verdicts.filter((verdict) => verdict.ok).length, 99);
    const bad = verdicts[37];
    assert.ok(bad !== undefined && !bad.ok && bad.error.code === "TAPE_FENCED");
    assert.equal((await store.read.journal(tenant, { run: runs[37]!.id })).length, 1);
  });

  it("a wrong nonce is refused although the token is right", async () => {
    const { store } = fresh();
    const run = await heldRun(store);
    await refused("TAPE_FENCED", store.fenced.append(forged(run, { nonce: 7n }), { after: 1, records: [step(0)] }));
  });

  it("a gap, and a second writer of the same seq, are refused and change nothing", async () => {
    const { store } = fresh();
    const run = await heldRun(store);
    await store.fenced.append(run.fence, { after: 1, records: [step(0)] });
    const before = await everything(store);
    await refused("TAPE_NOT_HEAD", store.fenced.append(run.fence, { after: 5, records: [step(1)] }));
    await refused("TAPE_NOT_HEAD", store.fenced.append(run.fence, { after: 1, records: [step(1)] }));
    assert.equal(await everything(store), before);
  });

  it("a write after one's own release is refused", async () => {
    const { store } = fresh();
    const run = await heldRun(store);
    await store.fenced.append(run.fence, { after: 1, records: [record("term.ended", { end: "released", taken: 0 })] });
    await refused("TAPE_FENCED", store.fenced.append(run.fence, { after: 2, records: [step(0)] }));
  });

  it("a paused owner that was replaced writes nothing, by any record kind, once it wakes", async () => {
    const { store, elapse } = fresh();
    const run = await heldRun(store);
    await elapse(run.ttlMs + 50);
    const heir = await acquired(
      store,
      request({ run: run.id }, { claimant: claimant("heir", lasting), nonce: nonce() }),
    );
    const before = await everything(store);
    const attempts = [
      step(0),
      record("effect.intended", {
        pos: 0,
        name: "wire",
        semantics: "idempotent",
        dispatch: "outbox",
        key: "k",
        argsHash: "h",
        args: 1,
      }),
      record("gate.opened", { pos: 0, name: "g" }),
      record("child.started", { pos: 0, id: "child", workflow: "w", input: 1, inputHash: "h" }),
      record("value.written", { key: "k", version: 1, value: 1 }),
      record("run.decided", { cause: "failed", outcome: 1 }),
      record("run.ended", { status: "COMPLETED", taken: 0, outcome: 1 }),
      record("term.ended", { end: "released", taken: 0 }),
    ];
    for (const stale of attempts) {
      await refused("TAPE_FENCED", store.fenced.append(run.fence, { after: 1, records: [stale] }));
    }
    assert.equal(await everything(store), before);
    const appended = await store.fenced.append(heir.fence, { after: heir.head, records: [step(0)] });
    assert.equal(appended.head, heir.head + 1);
  });
};
