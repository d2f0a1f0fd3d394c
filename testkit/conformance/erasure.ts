import { strict as assert } from "node:assert";
import { isErased } from "../../src/base/codec.ts";
import { hash } from "../../src/base/late-builtins.ts";
import { retentionLease } from "../../src/model/retention.ts";
import { linesOf } from "../../src/retention/lines.ts";
import type { EraseStepRequest, Store } from "../../src/store/contract/store.ts";
import { checkProjection } from "../projection.ts";
import {
  acquired,
  bigintText,
  type Cases,
  claimant,
  record,
  refused,
  request,
  spec,
  step,
  tenant,
  unique,
} from "./frame.ts";
import {
  armed,
  begin,
  childEnded,
  confirmed,
  dataOf,
  dispatched,
  ended,
  everything,
  type Holder,
  holdItem,
  intent,
  settled,
  startChild,
  unchanged,
} from "./holder.ts";
import { lasting } from "./lease-fixtures.ts";

const audit = { by: "ann", reason: "a request of the customer" };
/** In every payload; nothing of it may be left. */
const canary = "ada@example.org";
const blob = hash("sha256", canary, "hex");

/** Erases until nothing is left. */
async function erase(store: Store, run: string, more: Partial<EraseStepRequest> = {}) {
  const first = await store.intake.eraseRun(tenant, run, { ...audit, ...more });
  let { records, next } = first;
  while (next !== undefined) {
    const part = await store.intake.eraseRun(tenant, run, { ...audit, ...more, after: next });
    records += part.records;
    next = part.next;
  }
  return { ...first, records };
}

/** A run with the canary wherever a payload can be; it has ended. */
async function fullRun(store: Store): Promise<Holder> {
  const value = { mail: canary };
  const run = await begin(store, { input: value, labels: { customer: canary, stage: "paid" } });
  const { n } = await store.intake.signal(tenant, run.id, { name: "ask", value, asks: true, reason: canary });
  const other = await store.intake.signal(tenant, run.id, { name: "ask", value, asks: true });
  await store.fenced.putBlob(run.term.fence, { blob, n: 0, chunks: 1, text: canary });
  const chunks = [{ part: 0, value: canary }];
  await store.fenced.appendChunks([[run.term.fence, { streams: [{ name: "tokens", from: 0, chunks }] }]]);
  await store.claim.renew([{ fence: run.term.fence, progress: 1, progressNote: canary }]);
  await run.write(
    record("step.done", { pos: 0, name: "load", value }),
    record("step.failed", { pos: 1, name: "s", attempt: 1, error: new Error(canary), delayMs: 1 }),
    record("decision.made", { pos: 1, name: "judge", value, request: value, response: value, rationale: canary }),
    record("labels.set", { pos: 2, set: { mail: canary }, unset: ["stage"] }),
    record("state.published", { pos: 3, name: "progress", value }),
    intent(4, { args: value, businessKey: unique("key") }),
    dispatched(4),
    settled(4, "CONFIRMED", { value }),
    armed(4, { args: value }),
    intent(5, { args: value, dispatch: "outbox" }),
    intent(6, { args: value }),
    dispatched(6),
    settled(6, "FAILED", { reason: "definite", error: new Error(canary) }),
    record("gate.opened", { pos: 7, name: "ask", payload: value }),
    record("gate.resolved", { pos: 7, to: "RECEIVED", note: n, value }),
    record("reply.sent", { pos: 8, note: n, value }),
    record("signal.refused", { name: "ask", note: other.n, reason: canary, asks: true }),
    record("run.stuck", { reason: canary, detail: { last: canary } }),
    record("run.unstuck", { to: "LIVE" }),
  );
  const item = await holdItem(store, run.id, 5);
  await item.write(
    dispatched(5, { run: run.journal, sub: 0 }),
    settled(5, "CONFIRMED", { run: run.journal, sub: 0, value }),
    record("term.ended", { reason: "released", notesTaken: 0 }),
  );
  await run.write(ended("COMPLETED", { outcome: value, notesTaken: 3 }));
  return run;
}

/** Everything of the tenant that a reader can get, as text. */
async function texts(store: Store, run: Holder): Promise<string> {
  const { read } = store;
  const parts: unknown[] = [await everything(store, tenant)];
  for (let cursor: string | undefined; ; ) {
    const page = await read.feed(cursor, 500, tenant);
    parts.push(page.records);
    ({ cursor } = page);
    if (page.records.length === 0 && page.more !== true) break;
  }
  parts.push(await read.chunks(tenant, [{ run: run.id, stream: "tokens", from: 0 }]));
  parts.push(await read.blob(tenant, { run: run.id }, blob, 0));
  for (const n of [1, 2, 3]) parts.push(await read.reply(tenant, run.id, n));
  parts.push(await read.lease(tenant, { run: run.id }));
  return JSON.stringify(parts, bigintText);
}

/** The runs that the store's own journal names as erased. */
async function erasedIn(store: Store): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await store.read.feed(cursor, 500);
    for (const one of page.records) if (one.kind === "run.erased") ids.push(dataOf(one, "run.erased").id);
    ({ cursor } = page);
    if (page.records.length === 0 && page.more !== true) return ids;
  }
}

/** What stays of a journal: everything but the payloads. */
const shapeOf = async (store: Store, run: string, inbox = false) =>
  (await store.read.journal(tenant, { run }, { inbox })).map(({ seq, kind, token, at }) => [seq, kind, token, at]);

async function faultsOf({ store, elapse }: ReturnType<Parameters<Cases>[1]>): Promise<string[]> {
  let faults = await checkProjection(store, [tenant]);
  for (let tries = 0; tries < 50 && faults.length > 0 && store.backend === "postgres"; tries++) {
    await elapse(20);
    faults = await checkProjection(store, [tenant]);
  }
  return faults;
}

/** Erasing the payloads of ended runs. */
export const erasure: Cases = ({ it }, fresh) => {
  it("[INV-24] an erased run holds no payload, and its journal stays dense and readable", async () => {
    const fixture = fresh();
    const { store } = fixture;
    const run = await fullRun(store);
    const other = await begin(store, { input: "other", labels: { customer: "bob" } });
    assert.ok((await texts(store, run)).includes(canary));
    const before = [await shapeOf(store, run.id), await shapeOf(store, run.id, true)];
    const { status, inputHash, endedAt } = await run.view();
    const done = await erase(store, run.id);
    assert.equal(done.runs, 1);
    assert.ok(done.records > 15, String(done.records));
    assert.ok(!(await texts(store, run)).includes(canary));
    assert.deepEqual([await shapeOf(store, run.id), await shapeOf(store, run.id, true)], before);
    const view = await run.view();
    assert.deepEqual([view.status, view.inputHash, view.endedAt, view.erased], [status, inputHash, endedAt, true]);
    assert.ok(isErased(view.outcome));
    assert.deepEqual(view.labels, { customer: "[erased]", mail: "[erased]" });
    assert.deepEqual(await store.read.runs(tenant, { labels: { customer: canary } }), []);
    assert.equal((await other.view()).erased, undefined);
    assert.deepEqual((await store.read.runs(tenant, { labels: { customer: "bob" } })).length, 1);
    assert.deepEqual(await faultsOf(fixture), []);
    const known = await store.intake.createRuns(tenant, [spec({ id: run.id, input: { mail: canary } })]);
    assert.equal(known[0]?.ok && known[0].fresh, false, "the hash of the input is kept");
  });

  it("an erasure is audited and recorded once, and a repeat changes nothing", async () => {
    const { store, elapse } = fresh();
    const run = await fullRun(store);
    await erase(store, run.id);
    const [entry] = await store.read.audit(tenant, { limit: 1 });
    assert.deepEqual([entry?.action, entry?.by, entry?.reason], ["run.erase", audit.by, audit.reason]);
    assert.deepEqual(entry?.detail, { tenant, run: run.id, runs: 1 });
    const again = await unchanged(store, () => erase(store, run.id));
    assert.deepEqual([again.already, again.records], [true, 0]);
    const { n } = (await store.read.audit(tenant, { limit: 1 }))[0]!;
    assert.equal(n, entry?.n, "nothing was done, so nothing is audited");
    // A feed may lag behind open transactions.
    let erased: string[] = [];
    for (let tries = 0; tries < 50 && erased.length === 0; tries++, await elapse(20)) erased = await erasedIn(store);
    assert.deepEqual(erased, [run.id]);
  });

  it("a run is refused while it is live, in doubt or owes a compensation", async () => {
    const { store } = fresh();
    const live = await begin(store);
    await live.write(step(0));
    const owing = await begin(store);
    await owing.write(
      ...confirmed(0),
      record("obligation.surplus", { pos: 0, sub: 2, semantics: "non_idempotent", key: "surplus", args: 1 }),
      ended("COMPLETED", { outcome: 1 }),
    );
    await unchanged(store, async () => {
      await refused("TAPE_RUN_LIVE", store.intake.eraseRun(tenant, live.id, audit));
      await refused("TAPE_RUN_UNSETTLED", store.intake.eraseRun(tenant, owing.id, audit));
      await refused("TAPE_RUN_NOT_FOUND", store.intake.eraseRun(tenant, unique("none"), audit));
      await refused("TAPE_BAD_INPUT", store.intake.eraseRun(tenant, live.id, { ...audit, reason: "" }));
      await refused("TAPE_BAD_INPUT", store.intake.eraseRun(tenant, live.id, { ...audit, after: "x" }));
      await refused("TAPE_BAD_INPUT", store.intake.eraseRun(tenant, live.id, { ...audit, tree: 1 as never }));
    });
  });

  it("a tree is erased as a whole, because its runs copy each other's payloads", async () => {
    const fixture = fresh();
    const { store } = fixture;
    const parent = await begin(store, { input: canary });
    const child = await startChild(parent, 0, unique("child"));
    await child.write(record("step.done", { pos: 0, name: "s", value: canary }));
    await unchanged(store, () => refused("TAPE_BAD_INPUT", store.intake.eraseRun(tenant, child.id, audit)));
    await childEnded(child, parent, 0, "COMPLETED", { outcome: canary });
    await unchanged(store, async () => {
      await refused("TAPE_RUN_LIVE", store.intake.eraseRun(tenant, child.id, { ...audit, tree: true }));
      await refused("TAPE_BAD_INPUT", store.intake.eraseRun(tenant, parent.id, audit));
    });
    await parent.write(
      record("child.received", { pos: 1, childPos: 0, status: "COMPLETED", outcome: canary }),
      ended("COMPLETED", { outcome: canary, notesTaken: 1 }),
    );
    const done = await erase(store, child.id, { tree: true });
    assert.equal(done.runs, 2);
    assert.ok(!(await texts(store, parent)).includes(canary));
    assert.deepEqual([(await parent.view()).erased, (await child.view()).erased], [true, true]);
    assert.deepEqual(await faultsOf(fixture), []);
  });

  it("a large run is erased in parts, and a repeat after a crash erases the rest", async () => {
    const fixture = fresh();
    const { store } = fixture;
    const run = await begin(store, { input: canary });
    for (let k = 0; k < 12; k++) {
      await run.write(
        ...Array.from({ length: 100 }, (_, n) => record("step.done", { pos: k * 100 + n, name: "s", value: canary })),
      );
    }
    await run.write(ended("COMPLETED", { outcome: canary }));
    const first = await store.intake.eraseRun(tenant, run.id, audit);
    assert.ok(first.next !== undefined && first.records < 700, JSON.stringify(first));
    assert.equal((await run.view()).erased, true, "from the first part on");
    assert.ok((await texts(store, run)).includes(canary), "the rest is left");
    await refused("TAPE_BAD_INPUT", store.intake.eraseRun("globex", run.id, { ...audit, after: first.next }));
    const second = await begin(store);
    await second.write(ended("COMPLETED", { outcome: 1 }));
    await refused("TAPE_BAD_INPUT", store.intake.eraseRun(tenant, second.id, { ...audit, after: first.next }));
    const rest = await erase(store, run.id);
    assert.deepEqual([rest.already, first.records + rest.records], [undefined, 1_202]);
    assert.ok(!(await texts(store, run)).includes(canary));
    assert.deepEqual(await faultsOf(fixture), []);
  });

  it("the archive gets an erased run without payloads, also while it is being erased", async () => {
    const { store, elapse } = fresh();
    const { retention: ops } = store;
    if (ops === undefined) return; // behind a server, which archives itself
    const fence = (await acquired(store, request({ name: retentionLease }, { claimant: claimant(undefined, lasting) })))
      .fence;
    const run = await fullRun(store);
    await elapse(20);
    const due = async () => {
      await ops.date(fence, { defaultMs: 10 }, { at: -1, journal: 0 }, (await store.read.now()) + 1);
      return ops.due(tenant, await store.read.now(), 10);
    };
    const [seen] = await due();
    assert.ok(seen !== undefined);
    await erase(store, run.id);
    const file = { archive: "a/b/c.jsonl.gz", sha256: "ab".repeat(32) };
    await unchanged(store, () => refused("TAPE_VERSION_CONFLICT", ops.prune(fence, [seen], file, "state")));
    assert.deepEqual(await ops.due(tenant, await store.read.now(), 10), [], "retention waits for an erasure");
    const [tree] = await due();
    const linesText = async (of: Store) => {
      let text = "";
      const header = { store: "s", epoch: 1, tenant };
      for await (const block of linesOf(of.retention!, header, [tree!])) text += block;
      return text;
    };
    const archived = await linesText(store);
    assert.ok(archived.includes('"erased":true') && !archived.includes(canary));
    const half = { ...store, retention: { ...ops, records: withPayload(ops.records) } };
    assert.equal(await linesText(half), archived, "the same bytes, whatever is left in the store");
    assert.equal(await ops.prune(fence, [tree!], file, "state"), 1);
    const error = await refused("TAPE_RUN_GONE", store.intake.eraseRun(tenant, run.id, audit));
    assert.equal((error.details as { archive?: string }).archive, file.archive);
  });

  it("late evidence leaves no payload in an erased run", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0, { dispatch: "outbox", semantics: "non_idempotent" }));
    const item = await holdItem(store, run.id, 0);
    await item.write(
      dispatched(0, { run: run.journal, sub: 0 }),
      settled(0, "CONFIRMED", { run: run.journal, sub: 0, value: canary }),
      record("term.ended", { reason: "released", notesTaken: 0 }),
    );
    await run.write(ended("COMPLETED", { outcome: 1, notesTaken: 1 }));
    await erase(store, run.id);
    const attempt = { ...item.attempt(0), run: run.journal };
    await store.intake.leaveEvidence(tenant, attempt, { happened: true, value: canary });
    assert.ok(!(await texts(store, run)).includes(canary));
  });

  it("erased bytes no longer count as used", async () => {
    const { store } = fresh();
    await store.intake.setQuota(tenant, { bytes: 100_000_000 }, audit);
    const run = await begin(store);
    await run.write(record("step.done", { pos: 0, name: "s", value: "x".repeat(50_000) }));
    await run.write(ended("COMPLETED", { outcome: 1 }));
    await store.intake.setQuota(tenant, { bytes: 100_000_001 }, audit);
    const before = (await store.read.quota(tenant)).used.bytes!;
    await erase(store, run.id);
    const after = (await store.read.quota(tenant)).used.bytes!;
    assert.ok(before > 50_000 && after < before - 45_000 && after > 0, `${before} ${after}`);
  });
};

/** A store in which the erasure has not reached the records yet. */
function withPayload(records: NonNullable<Store["retention"]>["records"]): typeof records {
  return async (...args) => {
    const page = await records(...args);
    const body = `{"v":1,"pos":0,"name":"load","value":{"mail":"${canary}"}}`;
    return page.map((one) => (one.kind === "step.done" ? { ...one, body } : one));
  };
}
