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
import { everything } from "./holder.ts";
import { lasting } from "./lease-fixtures.ts";

/** What a journal accepts, and what it rejects. */
export const append: Cases = ({ it }, fresh) => {
  it("[INV-1] records are dense from 1 and carry the token they were written under", async () => {
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

  it("[INV-6] a stale writer among 100 in one group is rejected alone; 99 commit", async () => {
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

  it("an append with a wrong nonce is rejected although its token is right", async () => {
    const { store } = fresh();
    const run = await heldRun(store);
    await refused("TAPE_FENCED", store.fenced.append(forged(run, { nonce: 7n }), { after: 1, records: [step(0)] }));
  });

  it("an append that leaves a gap or repeats a seq is rejected and changes nothing", async () => {
    const { store } = fresh();
    const run = await heldRun(store);
    await store.fenced.append(run.fence, { after: 1, records: [step(0)] });
    const before = await everything(store);
    await refused("TAPE_NOT_HEAD", store.fenced.append(run.fence, { after: 5, records: [step(1)] }));
    await refused("TAPE_NOT_HEAD", store.fenced.append(run.fence, { after: 1, records: [step(1)] }));
    assert.equal(await everything(store), before);
  });

  it("an append after the holder's own release is rejected", async () => {
    const { store } = fresh();
    const run = await heldRun(store);
    await store.fenced.append(run.fence, {
      after: 1,
      records: [record("term.ended", { reason: "released", notesTaken: 0 })],
    });
    await refused("TAPE_FENCED", store.fenced.append(run.fence, { after: 2, records: [step(0)] }));
  });

  it("[INV-4] an expired holder writes until a successor takes the lease, and not after", async () => {
    const { store, elapse } = fresh();
    const run = await heldRun(store);
    await elapse(run.ttlMs + 50);
    assert.equal((await store.read.lease(tenant, { run: run.id }))?.state, "EXPIRED");
    const late = await store.fenced.append(run.fence, { after: 1, records: [step(0)] });
    assert.equal(late.head, 2);
    const claim = request({ run: run.id }, { claimant: claimant("successor", lasting), nonce: nonce() });
    const successor = await acquired(store, claim);
    await refused("TAPE_FENCED", store.fenced.append(run.fence, { after: successor.head, records: [step(1)] }));
  });

  it("[INV-2] a paused owner that was replaced cannot write a record of any kind", async () => {
    const { store, elapse } = fresh();
    const run = await heldRun(store);
    await elapse(run.ttlMs + 50);
    const successor = await acquired(
      store,
      request({ run: run.id }, { claimant: claimant("successor", lasting), nonce: nonce() }),
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
      record("run.ended", { status: "COMPLETED", notesTaken: 0, outcome: 1 }),
      record("term.ended", { reason: "released", notesTaken: 0 }),
    ];
    for (const stale of attempts) {
      await refused("TAPE_FENCED", store.fenced.append(run.fence, { after: 1, records: [stale] }));
    }
    assert.equal(await everything(store), before);
    const appended = await store.fenced.append(successor.fence, { after: successor.head, records: [step(0)] });
    assert.equal(appended.head, successor.head + 1);
  });
};
