import { strict as assert } from "node:assert";
import type { FindRequest, Store } from "../../src/store/contract/store.ts";
import { type Cases, nonce, record, refused, request, spec, tenant, unique } from "./frame.ts";
import { begin, ended, Holder, hold, viewOf } from "./holder.ts";
import { brief, findRequest, lasting, pastBrief, refusedClaim } from "./lease-fixtures.ts";
import { admit, assertProjected, audit, enqueue, newQueue } from "./queue-fixtures.ts";

/** The find of a process with this build, which pins the workflow. */
const findAs = (build: string, more: Partial<FindRequest> = {}): FindRequest =>
  findRequest({ tenant, workflows: ["w"], build: { build, pinned: ["w"] }, ...more });

const idsOf = (store: Store, request: FindRequest): Promise<string[]> =>
  store.claim.find(request).then((terms) => terms.map(({ name }) => name!).sort());

async function claimed(store: Store, build: string, more: Partial<FindRequest> = {}): Promise<Holder> {
  const [term] = await store.claim.find(findAs(build, more));
  assert.ok(term !== undefined, "a run is found");
  return new Holder(store, term, term.name!);
}

async function newRun(store: Store): Promise<string> {
  const run = spec();
  await store.intake.createRuns(tenant, [run]);
  return run.id;
}

const leaseOf = async (store: Store, run: string) => (await viewOf(store, run)).lease;

/** Who may drive a run of a pinned workflow. */
export const builds: Cases = ({ it }, fresh) => {
  it("[INV-23] the first term of a build pins a run, and its records say so", async () => {
    const { store } = fresh();
    const [a, b] = [unique("a"), unique("b")];
    const run = await newRun(store);
    const holder = await claimed(store, a);
    assert.equal(holder.id, run);
    assert.equal((await leaseOf(store, run)).build, a);
    await holder.release(0, { nextReactor: "recovery" });
    assert.equal((await leaseOf(store, run)).nextReactor, `recovery@${a}`);
    assert.deepEqual(await idsOf(store, findAs(b)), []);
    assert.deepEqual(await idsOf(store, findRequest({ tenant, workflows: ["w"] })), []);
    assert.deepEqual(await idsOf(store, findAs(a)), [run]);
    const terms = (await store.read.journal(tenant, { run })).filter(({ kind }) => kind === "term.started");
    assert.deepEqual(
      terms.map(({ data }) => (data as { build?: string }).build),
      [a, undefined],
    );
    await assertProjected(store);
  });

  it("a run that its creator holds is pinned with its creation, and one without a holder is not", async () => {
    const { store } = fresh();
    const a = unique("a");
    const held = await begin(store, { build: a });
    const free = spec({ build: a });
    await store.intake.createRuns(tenant, [free]);
    assert.equal((await leaseOf(store, held.id)).build, a);
    assert.equal((await leaseOf(store, free.id)).build, undefined);
    await held.release();
    await store.intake.signal(tenant, held.id, { name: "s", value: 1 });
    assert.equal((await leaseOf(store, held.id)).nextReactor, `recovery@${a}`);
    assert.deepEqual(await idsOf(store, findAs(unique("b"))), [free.id]);
    assert.deepEqual(await idsOf(store, findAs(a)), [held.id]);
    await assertProjected(store);
  });

  it("many runs are pinned by one find, and woken by timers for their build", async () => {
    const { store, elapse } = fresh();
    const a = unique("a");
    const ids = [await newRun(store), await newRun(store), await newRun(store)].sort();
    const terms = await store.claim.find(findAs(a));
    assert.deepEqual(terms.map(({ name }) => name).sort(), ids);
    for (const term of terms) {
      const holder = new Holder(store, term, term.name!);
      await holder.write(record("timer.set", { pos: 0, purpose: "sleep", delayMs: 1 }));
      await holder.release();
    }
    await elapse(20);
    const fired = terms.map(({ journal }) =>
      store.intake.fireTimer(tenant, { run: journal, pos: 0, purpose: "sleep" }),
    );
    assert.deepEqual(await Promise.all(fired), [true, true, true]);
    assert.deepEqual(await idsOf(store, findAs(unique("b"))), []);
    assert.deepEqual(await idsOf(store, findAs(a)), ids);
    await assertProjected(store);
  });

  it("[INV-23] an expired holder of a pinned run is taken over by its build alone", async () => {
    const { store, elapse } = fresh();
    const a = unique("a");
    const run = await newRun(store);
    await claimed(store, a, { claimant: { ...findRequest().claimant, ...brief } });
    await elapse(pastBrief);
    assert.deepEqual(await idsOf(store, findAs(unique("b"))), []);
    assert.deepEqual(await idsOf(store, findRequest({ tenant, workflows: ["w"] })), []);
    const claim = { build: unique("b"), pinned: ["w"] };
    const agenda = (build: typeof claim) => store.read.agenda(tenant, ["w"], [], build);
    assert.deepEqual(await agenda(claim), [], "another build does not wait for it");
    assert.equal((await agenda({ build: a, pinned: ["w"] })).length, 1);
    assert.deepEqual(await idsOf(store, findAs(a)), [run]);
  });

  it("[INV-23] no acquire takes a pinned run without its code, except an operator's", async () => {
    const { store } = fresh();
    const held = await begin(store, { build: unique("a") });
    await held.release();
    const take = request({ run: held.id });
    refusedClaim("TAPE_RUN_PINNED", await store.claim.acquire(tenant, take));
    const manual = { reason: "manual", by: "ann", auditReason: "drill" } as const;
    const taken = await store.claim.acquire(tenant, { ...take, ...manual, nonce: nonce() });
    assert.ok(taken.ok);
  });

  it("the agenda of a process has the runs of its build", async () => {
    const { store } = fresh();
    const a = unique("a");
    const held = await begin(store, { build: a });
    await held.release(0, { nextReactor: "recovery" });
    const due = async (build?: string) =>
      (await store.read.agenda(tenant, ["w"], [], build === undefined ? undefined : { build, pinned: ["w"] })).map(
        ({ reactor }) => reactor,
      );
    assert.deepEqual(await due(a), ["recovery"]);
    assert.deepEqual(await due(unique("b")), []);
    assert.deepEqual(await due(), []);
    // Operators see all of them.
    await store.intake.reportBuild(tenant, a, ["w"]);
    assert.deepEqual(
      (await store.read.agenda(tenant)).map(({ reactor }) => reactor),
      ["recovery"],
    );
    assert.equal(await store.read.due("recovery", 10, tenant), 1);
    const runnable = (await store.read.census(tenant)).runs.find(({ status }) => status === "RUNNABLE");
    assert.equal(runnable?.count, 1);
    assert.deepEqual(
      (await store.read.runs(tenant, { status: ["RUNNABLE"] })).map(({ id }) => id),
      [held.id],
    );
  });

  it("a child inherits the build, and waits for it", async () => {
    const { store } = fresh();
    const a = unique("a");
    const parent = await begin(store, { build: a });
    const child = { pos: 0, id: unique("child"), workflow: "w", input: 1, inputHash: "h", build: a };
    await parent.write(record("child.started", child));
    assert.deepEqual(await idsOf(store, findAs(unique("b"))), []);
    assert.deepEqual(await idsOf(store, findAs(a)), [child.id]);
    await assertProjected(store);
  });

  it("a pinned run of a queue is admitted by its build alone, in its turn", async () => {
    const { store } = fresh();
    const [a, b] = [unique("a"), unique("b")];
    const queue = await newQueue(store, { perKey: { concurrency: 1 } });
    const [first] = await enqueue(store, queue, 1, { key: "k" });
    const asBuild = (build: string) => ({ build: { build, pinned: ["w"] } });
    const [holder] = await admit(store, queue, 10, asBuild(a));
    assert.equal(holder?.id, first);
    assert.equal((await leaseOf(store, first!)).build, a);
    await holder!.release();
    await store.intake.signal(tenant, first!, { name: "s", value: 1 });
    const [second] = await enqueue(store, queue, 1, { key: "k" });
    const [other] = await enqueue(store, queue, 1, { key: "other" });
    assert.deepEqual(
      (await admit(store, queue, 10, asBuild(b))).map(({ id }) => id),
      [other],
      "no run passes the first of its key",
    );
    const [again] = await admit(store, queue, 10, asBuild(a));
    assert.equal(again?.id, first);
    await again!.write(ended("COMPLETED", { notesTaken: 1 }));
    assert.deepEqual(
      (await admit(store, queue, 10, asBuild(b))).map(({ id }) => id),
      [second],
    );
    await assertProjected(store);
  });

  it("new runs are left to the build that is current, and older ones are not", async () => {
    const { store } = fresh();
    const [a, b, c] = [unique("a"), unique("b"), unique("c")];
    assert.deepEqual(await store.intake.reportBuild(tenant, a, ["w"]), { leaves: [] });
    await store.intake.reportBuild(tenant, b, ["w", "v"]);
    await store.intake.reportBuild(tenant, c, ["u"]);
    await store.intake.setCurrentBuild(tenant, c, audit);
    await store.intake.setCurrentBuild(tenant, b, audit);
    assert.deepEqual(await store.intake.reportBuild(tenant, a, ["w"]), { leaves: ["w"] });
    assert.deepEqual(await store.intake.reportBuild(tenant, b, ["w", "v"]), { leaves: [] });
    assert.deepEqual(await store.intake.reportBuild(tenant, c, ["u"]), { leaves: [] }, "another program's");
    const old = await begin(store, { build: a });
    await old.release(0, { nextReactor: "recovery" });
    const run = await newRun(store);
    const leaving = { build: { build: a, pinned: ["w"], leaves: ["w"] } };
    assert.deepEqual(await idsOf(store, findAs(a, leaving)), [old.id]);
    assert.deepEqual(await idsOf(store, findAs(b)), [run]);
    await store.intake.setCurrentBuild(tenant, a, audit);
    const current = (await store.read.builds(tenant)).filter((view) => view.current).map(({ build }) => build);
    assert.deepEqual(current.sort(), [a, c].sort());
    const [entry] = await store.read.audit(tenant);
    assert.equal(entry?.action, "build.current");
    await refused("TAPE_NOT_FOUND", store.intake.setCurrentBuild(tenant, unique("none"), audit));
  });

  it("a build is drained the moment its last run ends", async () => {
    const { store } = fresh();
    const a = unique("a");
    await store.intake.reportBuild(tenant, a, ["w"]);
    assert.ok(await store.read.isDrained(tenant, a));
    const runs = [await begin(store, { build: a }), await begin(store, { build: a })];
    const live = async () => (await store.read.builds(tenant, { build: a })).map((view) => view.live);
    assert.deepEqual(await live(), [2]);
    assert.deepEqual(
      (await store.read.buildRuns(tenant, a)).map(({ id }) => id),
      runs.map(({ id }) => id),
    );
    const page = await store.read.buildRuns(tenant, a, { limit: 1 });
    assert.equal(page.more, true);
    assert.deepEqual(
      (await store.read.buildRuns(tenant, a, { above: page[0]!.journal })).map(({ id }) => id),
      [runs[1]!.id],
    );
    await runs[0]!.write(ended("COMPLETED"));
    assert.ok(!(await store.read.isDrained(tenant, a)));
    await runs[1]!.release();
    assert.ok(!(await store.read.isDrained(tenant, a)), "a run that waits without a holder is live");
    assert.deepEqual(await live(), [1]);
    const manual = { reason: "manual", by: "ann", auditReason: "drill" } as const;
    const again = await hold(store, runs[1]!.id, { run: runs[1]!.id }, manual);
    await again.write(ended("COMPLETED"));
    assert.ok(await store.read.isDrained(tenant, a));
    assert.deepEqual(await live(), [0]);
  });

  it("[INV-23] a move changes the build, and the next term is of that one", async () => {
    const { store } = fresh();
    const [a, b] = [unique("a"), unique("b")];
    const held = await begin(store, { build: a });
    await held.write(
      record("run.pinned", { build: b, from: a, trial: true }),
      record("term.ended", { reason: "released", notesTaken: 0, nextReactor: "recovery" }),
    );
    assert.deepEqual(await idsOf(store, findAs(a)), []);
    assert.deepEqual(await idsOf(store, findAs(b)), [held.id]);
    await assertProjected(store);
  });

  it("runs of a build without a process are found and named", async () => {
    const { store, elapse } = fresh();
    const [a, b] = [unique("a"), unique("b")];
    await store.intake.reportBuild(tenant, a, ["w"]);
    const waiting = await begin(store, { build: a });
    await waiting.release(0, { nextReactor: "recovery" });
    const vanished = await store.intake.createRuns(tenant, [spec({ build: a })], {
      ...{ ...findRequest().claimant, ...brief, nonce: nonce() },
    });
    assert.ok(vanished[0]?.ok);
    await elapse(pastBrief);
    const unserved = async (build: string) =>
      (await store.read.unserved(["w"], 0, tenant, { build, pinned: ["w"] })).map(({ lagMs: _lagMs, ...one }) => one);
    assert.deepEqual(await unserved(b), [{ workflow: "w", build: a, runs: 2 }]);
    assert.deepEqual(await unserved(a), []);
  });

  it("a name that is no build is refused, before anything is written", async () => {
    const { store } = fresh();
    const bad = ["", "a b", "a@b", "-a", "x".repeat(129), "a/b"];
    for (const build of bad) {
      await refused("TAPE_BAD_INPUT", store.intake.reportBuild(tenant, build, []));
      await refused("TAPE_BAD_INPUT", store.claim.find(findAs(build)));
      const [created] = await store.intake.createRuns(tenant, [spec({ build })], {
        ...{ ...findRequest().claimant, ...lasting, nonce: nonce() },
      });
      assert.ok(created !== undefined && !created.ok && created.error.code === "TAPE_BAD_INPUT");
    }
    const held = await begin(store);
    await held.refused("TAPE_BAD_INPUT", record("run.pinned", { build: "a@b" }));
    const routed = { reason: "released", notesTaken: 0, nextReactor: "recovery@a" } as const;
    await held.refused("TAPE_BAD_INPUT", record("term.ended", routed));
    assert.deepEqual(
      (await store.read.builds(tenant)).filter(({ build }) => bad.includes(build)),
      [],
    );
  });
};
