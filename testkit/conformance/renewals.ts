import { strict as assert } from "node:assert";
import { acquired, type Cases, claimant, forged, heldRun, refused, tenant, ttlMs } from "./frame.ts";
import { everything } from "./holder.ts";
import {
  anotherClaim,
  brief,
  claimForName,
  heldRuns,
  lasting,
  lastTerm,
  leaseOf,
  notRenewed,
  pastBrief,
  preempting,
  refusedClaim,
  release,
  renewed,
  renewOne,
  termSummary,
  withoutTimes,
} from "./lease-fixtures.ts";

/** Renewals: what they extend, what they cannot restore, and the progress that they carry. */
export const renewals: Cases = ({ it }, fresh) => {
  it("a renewal extends the lease by the TTL of its term", async () => {
    const { store, elapse } = fresh();
    const req = claimForName({ claimant: claimant() });
    const term = await acquired(store, req);
    await elapse(ttlMs / 2);
    const before = await leaseOf(store, req.target);
    assert.ok(before.remainingMs <= ttlMs / 2);
    const verdict = await renewOne(store, term);
    assert.ok(verdict.ok && verdict.ttlMs === ttlMs);
    const after = await leaseOf(store, req.target);
    assert.ok(after.remainingMs > before.remainingMs && after.remainingMs <= ttlMs, String(after.remainingMs));
    assert.equal(after.renewals, 1);
    assert.ok(after.longestGapMs >= ttlMs / 2 - 1);
  });

  it("a renewed lease outlives its first TTL, and expires without further renewals", async () => {
    const { store, elapse } = fresh();
    const req = claimForName({ claimant: claimant() });
    const term = await acquired(store, req);
    await elapse(ttlMs * 0.9);
    await renewed(store, term);
    await elapse(ttlMs * 0.2);
    refusedClaim("TAPE_LEASE_HELD", await store.claim.acquire(tenant, anotherClaim(req)));
    await elapse(ttlMs);
    await acquired(store, anotherClaim(req));
  });

  it("a renewal cannot restore a released lease", async () => {
    const { store } = fresh();
    const req = claimForName();
    const term = await acquired(store, req);
    await release(store, term);
    const before = await everything(store);
    await notRenewed("TAPE_FENCED", store, term); // a renewal that was in flight during the release
    assert.equal(await everything(store), before);
    const successor = await acquired(store, anotherClaim(req));
    assert.equal(successor.fence.token, term.fence.token + 2n);
    await notRenewed("TAPE_FENCED", store, term);
  });

  it("a stale worker's heartbeat does not extend the new owner's lease", async () => {
    const { store, elapse } = fresh();
    const req = claimForName({ claimant: claimant(undefined, brief) });
    const old = await acquired(store, req);
    await elapse(pastBrief);
    const successor = await acquired(store, anotherClaim(req));
    await elapse(10);
    const before = await leaseOf(store, req.target);
    await notRenewed("TAPE_FENCED", store, old, 9);
    const after = await leaseOf(store, req.target);
    assert.deepEqual(withoutTimes(after), withoutTimes(before));
    assert.ok(after.remainingMs <= before.remainingMs);
    await renewed(store, successor);
  });

  it("an expired lease without a new holder can be renewed", async () => {
    const { store, elapse } = fresh();
    const run = await heldRun(store, {}, claimant(undefined, brief));
    await elapse(pastBrief);
    assert.equal((await leaseOf(store, { run: run.id })).state, "EXPIRED");
    await renewed(store, run);
    const { token, renewals: count } = await leaseOf(store, { run: run.id });
    assert.deepEqual([token, count], [run.fence.token, 1]);
  });

  it("a renewal needs the current token and nonce", async () => {
    const { store } = fresh();
    const run = await heldRun(store, {}, claimant(undefined, lasting));
    const before = await everything(store);
    const { token, nonce } = run.fence;
    for (const other of [{ token: token + 1n }, { token: token - 1n }, { nonce: nonce + 1n }, { token: 2n ** 53n }]) {
      await notRenewed("TAPE_FENCED", store, { ...run, fence: forged(run, other) });
    }
    assert.equal(await everything(store), before);
  });

  it("of 500 leases renewed together one is lost, and each has its own result", async () => {
    const { store } = fresh();
    const runs = await heldRuns(store, 500, claimant(undefined, lasting));
    const lost = 217;
    await acquired(store, { ...anotherClaim(claimForName()), target: { run: runs[lost]!.id }, ...preempting });
    const verdicts = await store.claim.renew(runs.map(({ fence }, k) => ({ fence, progress: k })));
    assert.equal(verdicts.length, runs.length);
    for (const [k, verdict] of verdicts.entries()) assert.equal(verdict.ok, k !== lost, `lease ${k}`);
    const bad = verdicts[lost]!;
    assert.ok(!bad.ok && bad.error.code === "TAPE_FENCED");
    const some = [0, lost, 499].map(async (k) => (await leaseOf(store, { run: runs[k]!.id })).progress);
    assert.deepEqual(await Promise.all(some), [0, 0, 499], "each row has its own progress");
    assert.deepEqual(await store.claim.renew([]), []);
  });

  it("an old and the current term, renewed in one call, get their own results", async () => {
    const { store } = fresh();
    const req = claimForName();
    const old = await acquired(store, req);
    const now = await acquired(store, anotherClaim(req, { ...preempting, claimant: req.claimant }));
    for (const batch of [
      [old, now],
      [now, old],
      [now, old, now],
    ]) {
      const verdicts = await store.claim.renew(batch.map(({ fence }) => ({ fence, progress: 1 })));
      assert.deepEqual(
        verdicts.map(({ ok }) => ok),
        batch.map((term) => term === now),
      );
    }
  });

  it("a renewal returns the number of notes", async () => {
    const { store } = fresh();
    const run = await heldRun(store, {}, claimant(undefined, lasting));
    const before = await renewOne(store, run);
    await store.intake.signal(tenant, run.id, { name: "s", value: 1 });
    const after = await renewOne(store, run);
    assert.deepEqual([before.ok && before.notes, after.ok && after.notes], [0, 1]);
  });

  it("progress only increases, with its last note and the time of its last change", async () => {
    const { store, elapse } = fresh();
    const run = await heldRun(store, {}, claimant(undefined, lasting));
    await renewed(store, run, 7, "page 7");
    await elapse(30);
    await renewed(store, run, 7);
    const still = await leaseOf(store, { run: run.id });
    assert.deepEqual([still.progress, still.progressNote], [7, "page 7"]);
    assert.ok(still.progressAgoMs >= 29, String(still.progressAgoMs));
    await renewed(store, run, 3);
    assert.equal((await leaseOf(store, { run: run.id })).progress, 7);
    await renewed(store, run, 8, "page 8");
    const moved = await leaseOf(store, { run: run.id });
    assert.deepEqual([moved.progress, moved.progressNote, moved.renewals], [8, "page 8", 4]);
    assert.ok(moved.progressAgoMs <= still.progressAgoMs + 30);
  });

  it("an invalid progress note is refused, and renews nothing", async () => {
    const { store } = fresh();
    const run = await heldRun(store, {}, claimant(undefined, lasting));
    const before = await everything(store);
    for (const progressNote of ["a\0b", "\ud800"]) {
      await refused("TAPE_BAD_INPUT", store.claim.renew([{ fence: run.fence, progress: 1, progressNote }]));
    }
    const progressNote = "x".repeat(store.limits.nameLength + 1);
    await refused("TAPE_TOO_LARGE", store.claim.renew([{ fence: run.fence, progress: 1, progressNote }]));
    for (const progress of [-1, 0.5, Number.NaN, 2 ** 53]) {
      await refused("TAPE_BAD_INPUT", store.claim.renew([{ fence: run.fence, progress }]));
    }
    assert.equal(await everything(store), before);
  });

  it("a holder without progress beyond maxStall is refused, and may be replaced", async () => {
    const { store, elapse } = fresh();
    const req = claimForName({ claimant: claimant(undefined, { ...lasting, maxStallMs: 100 }) });
    const wedged = await acquired(store, req);
    await renewed(store, wedged, 1, "opening the file");
    refusedClaim("TAPE_LEASE_HELD", await store.claim.acquire(tenant, anotherClaim(req)));
    await elapse(130);
    await notRenewed("TAPE_LEASE_STALLED", store, wedged, 1);
    await notRenewed("TAPE_LEASE_STALLED", store, wedged, 1); // and every further renewal is refused too
    const successor = await acquired(store, anotherClaim(req));
    assert.equal(successor.reason, "stalled");
    const [first, second] = await store.read.terms(tenant, req.target);
    const { endReason, progress, progressNote, renewals: count } = first!;
    assert.deepEqual(
      { endReason, progress, progressNote, count },
      { endReason: "stalled", progress: 1, progressNote: "opening the file", count: 1 },
    );
    assert.equal(second!.startReason, "stalled");
    await notRenewed("TAPE_FENCED", store, wedged, 2);
  });

  it("a holder that makes progress, or has no maxStall, is renewed", async () => {
    const { store, elapse } = fresh();
    const slow = await acquired(
      store,
      claimForName({ claimant: claimant(undefined, { ...lasting, maxStallMs: 250 }) }),
    );
    const idle = await acquired(store, claimForName());
    await elapse(280);
    await renewed(store, slow, 1);
    await renewed(store, idle, 0);
    await renewed(store, slow, 1); // the stall time counts from the last progress
  });

  it("a holder that made progress after a stall is no longer stalled", async () => {
    const { store, elapse } = fresh();
    const req = claimForName({ claimant: claimant(undefined, { ttlMs: 200, maxStallMs: 100 }) });
    const term = await acquired(store, req);
    await elapse(130);
    await notRenewed("TAPE_LEASE_STALLED", store, term);
    await renewed(store, term, 1);
    await elapse(230);
    await acquired(store, anotherClaim(req));
    assert.deepEqual(await termSummary(store, req.target), [
      [1n, "start", "expired"],
      [2n, "timeout", undefined],
    ]);
  });

  it("pausing a lease fences its holder and refuses claims until it is resumed", async () => {
    const { store, another } = fresh();
    const req = claimForName();
    const { name } = req.target;
    const term = await acquired(store, req);
    await (await another()).claim.pause(tenant, name, true, "ann", "too many mails");
    await refused("TAPE_FENCED", release(store, term));
    await notRenewed("TAPE_FENCED", store, term);
    for (const more of [{}, preempting, { expect: "free" } as const]) {
      refusedClaim("TAPE_LEASE_PAUSED", await store.claim.acquire(tenant, anotherClaim(req, more)));
    }
    refusedClaim("TAPE_LEASE_PAUSED", await store.claim.acquire(tenant, req));
    const paused = await leaseOf(store, req.target);
    assert.deepEqual([paused.paused, paused.state], [true, "FREE"]);
    const [held, operator] = await store.read.terms(tenant, req.target);
    assert.equal(held!.endReason, "manual");
    const { by, auditReason, startReason, endReason } = operator!;
    assert.deepEqual(
      { by, auditReason, startReason, endReason },
      { by: "ann", auditReason: "too many mails", startReason: "manual", endReason: "manual" },
    );
    const actions = (await store.read.journal(tenant, req.target)).filter(({ kind }) => kind === "operator.action");
    assert.deepEqual(
      actions.map((action) => (action.kind === "operator.action" ? action.data.by : "")),
      ["ann"],
    );
    await store.claim.pause(tenant, name, false, "bob", "fixed");
    const next = await acquired(store, anotherClaim(req));
    assert.ok(next.fence.token > paused.token);
    assert.equal((await leaseOf(store, req.target)).paused, false);
    assert.equal((await store.read.terms(tenant, req.target)).at(-2)!.by, "bob");
  });

  it("pausing or resuming twice changes nothing, and leaves the holder alone", async () => {
    const { store } = fresh();
    const req = claimForName();
    const { name } = req.target;
    await store.claim.pause(tenant, name, true, "ann", "a name may be paused before its first term");
    const paused = await everything(store);
    await store.claim.pause(tenant, name, true, "ann", "again");
    assert.equal(await everything(store), paused);
    await store.claim.pause(tenant, name, false, "ann", "done");
    const term = await acquired(store, anotherClaim(req));
    const before = await everything(store);
    await store.claim.pause(tenant, name, false, "ann", "the response was lost");
    assert.equal(await everything(store), before);
    await renewed(store, term);
    assert.equal((await lastTerm(store, req.target)).endReason, undefined);
  });

  it("a pause without operator and reason is refused", async () => {
    const { store } = fresh();
    const req = claimForName();
    const term = await acquired(store, req);
    await refused("TAPE_BAD_INPUT", store.claim.pause(tenant, req.target.name, true, "", "why"));
    await refused("TAPE_BAD_INPUT", store.claim.pause(tenant, req.target.name, true, "ann", ""));
    await renewed(store, term);
  });
};
