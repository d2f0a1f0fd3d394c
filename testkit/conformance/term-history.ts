import { strict as assert } from "node:assert";
import type { TermEnd, TermReason } from "../../src/model/records.ts";
import { acquired, type Cases, claimant, heldRun, record, refused, request, step, tenant, ttlMs } from "./frame.ts";
import {
  anotherClaim,
  brief,
  claimForName,
  findRequest,
  lasting,
  lastTerm,
  leaseOf,
  notRenewed,
  pastBrief,
  preempting,
  release,
  renewed,
  termSummary,
  waitingRuns,
} from "./lease-fixtures.ts";

/** The current view of a lease, and its term history. */
export const termHistory: Cases = ({ it }, fresh) => {
  it("a run held from creation to end has one term, without a term record", async () => {
    const { store, elapse } = fresh();
    const who = claimant(undefined, lasting);
    const run = await heldRun(store, {}, who);
    const target = { run: run.id };
    await store.fenced.append(run.fence, { after: 1, records: [step(0)] });
    await elapse(10);
    await renewed(store, run, 2, "half way");
    const [now, ...others] = await store.read.terms(tenant, target);
    assert.equal(others.length, 0);
    const { token, renewals, progress, progressNote, endReason } = now!;
    assert.deepEqual(
      { token, renewals, progress, progressNote, endReason },
      { token: 1n, renewals: 1, progress: 2, progressNote: "half way", endReason: undefined },
    );
    const term = { renewals: 1, longestGapMs: 10, progress: 3, progressNote: "done" };
    const over = record("run.ended", { status: "COMPLETED", notesTaken: 0, outcome: 1, term });
    await store.fenced.append(run.fence, { after: 2, records: [over] });
    const kinds = (await store.read.journal(tenant, target)).map(({ kind }) => kind);
    assert.deepEqual(kinds, ["run.created", "step.done", "run.ended"]);
    const [line, ...more] = await store.read.terms(tenant, target);
    assert.equal(more.length, 0);
    const { startedAt, endedAt, ...rest } = line!;
    assert.deepEqual(rest, {
      token: 1n,
      owner: who.owner,
      label: who.label,
      reactor: who.reactor,
      startReason: "start",
      endReason: "released",
      ...term,
    });
    assert.ok(endedAt !== undefined && endedAt >= startedAt + 9);
  });

  it("the term history of a named lease shows how each term started and ended", async () => {
    const { store, elapse } = fresh();
    const req = claimForName();
    const story: [TermReason, TermEnd | undefined][] = [];
    await release(store, await acquired(store, req));
    story.push(["start", "released"]);
    await acquired(store, anotherClaim(req, { claimant: claimant(undefined, brief) }));
    story.push(["release", "expired"]);
    await elapse(pastBrief);
    await acquired(store, anotherClaim(req));
    story.push(["timeout", "manual"]);
    await acquired(store, anotherClaim(req, preempting));
    story.push(["manual", "cancelled"]);
    const stall = { ...lasting, maxStallMs: 40 };
    const cancelled = { ...preempting, reason: "cancellation", claimant: claimant(undefined, stall) } as const;
    const wedged = await acquired(store, anotherClaim(req, cancelled));
    story.push(["cancellation", "stalled"]);
    await elapse(60);
    await notRenewed("TAPE_LEASE_STALLED", store, wedged);
    await acquired(store, anotherClaim(req));
    story.push(["stalled", "superseded"]);
    await store.claim.restored("drill");
    const drained = await acquired(store, anotherClaim(req));
    story.push(["timeout", "drained"]);
    await release(store, drained, { reason: "drained" });
    await acquired(store, anotherClaim(req));
    story.push(["release", undefined]);
    const lines = await store.read.terms(tenant, req.target);
    assert.deepEqual(
      lines.map(({ startReason, endReason }) => [startReason, endReason]),
      story,
    );
    for (const [k, { token, startedAt, endedAt, endReason }] of lines.entries()) {
      const next = lines[k + 1];
      assert.equal(endedAt === undefined, endReason === undefined);
      assert.ok(next === undefined || (token < next.token && startedAt <= endedAt! && endedAt! <= next.startedAt));
    }
    const [, , taken] = lines;
    assert.deepEqual([taken!.by, lines[3]!.by, lines[3]!.auditReason], [undefined, "ann", "it hangs"]);
  });

  it("the term history of a run shows how each term started and ended", async () => {
    const { store, elapse } = fresh();
    const [run] = await waitingRuns(store, 1);
    const target = { run: run!.id };
    const [first] = await store.claim.find(findRequest());
    // It has started: otherwise its cancellation would end it where a server takes the call.
    const { head } = await store.fenced.append(first!.fence, { after: first!.head, records: [step(0)] });
    await release(store, first!, {}, head);
    await store.intake.cancel(tenant, run!.id, { reason: "no longer wanted" });
    const [woken] = await store.claim.find(
      findRequest({ claimant: claimant(undefined, { ...brief, reactor: "recovery" }) }),
    );
    await elapse(pastBrief);
    const [successor] = await store.claim.find(findRequest());
    const last = record("run.ended", { status: "CANCELLED", notesTaken: 1, outcome: "cancelled" });
    const taken = record("notes.taken", { through: 1 });
    await store.fenced.append(successor!.fence, { after: successor!.head, records: [taken, last] });
    assert.deepEqual(await termSummary(store, target), [
      [first!.fence.token, "start", "released"],
      [woken!.fence.token, "wake", "expired"],
      [successor!.fence.token, "recovery", "released"],
    ]);
  });

  it("a first term that never wrote or renewed counts as unconfirmed", async () => {
    const { store, elapse } = fresh();
    const who = claimant(undefined, brief);
    const silent = await heldRun(store, {}, who);
    const wrote = await heldRun(store, {}, who);
    const beat = await heldRun(store, {}, who);
    await store.fenced.append(wrote.fence, { after: 1, records: [step(0)] });
    await renewed(store, beat);
    await elapse(pastBrief);
    const ends = await Promise.all(
      [silent, wrote, beat].map(async ({ id }) => {
        await acquired(store, request({ run: id }));
        return (await termSummary(store, { run: id }))[0];
      }),
    );
    assert.deepEqual(ends, [
      [1n, "start", "never_confirmed"],
      [1n, "start", "expired"],
      [1n, "start", "expired"],
    ]);
  });

  it("the stats of a term are kept, from its holder or its successor", async () => {
    const { store, elapse } = fresh();
    const req = claimForName({ claimant: claimant(undefined, brief) });
    const lost = await acquired(store, req);
    await renewed(store, lost, 4, "row 4");
    await elapse(pastBrief);
    await renewed(store, lost, 5);
    await renewed(store, lost, 5);
    await elapse(pastBrief);
    const successor = await acquired(store, anotherClaim(req));
    const term = { renewals: 7, longestGapMs: 11, progress: 13, progressNote: "all rows" };
    await release(store, successor, { term });
    const [first, second] = await store.read.terms(tenant, req.target);
    assert.deepEqual([first!.renewals, first!.progress, first!.progressNote], [3, 5, "row 4"]);
    assert.ok(first!.longestGapMs >= pastBrief - 1 && first!.longestGapMs < 10_000, String(first!.longestGapMs));
    const { renewals, longestGapMs, progress, progressNote } = second!;
    assert.deepEqual({ renewals, longestGapMs, progress, progressNote }, term);
  });

  it("a new term starts with empty stats", async () => {
    const { store, elapse } = fresh();
    const req = claimForName({ claimant: claimant(undefined, { ...brief, maxStallMs: 10_000 }) });
    const old = await acquired(store, req);
    await elapse(20);
    await renewed(store, old, 9, "nine");
    await elapse(pastBrief);
    const who = claimant(undefined, { ...lasting, reactor: "recovery" });
    await acquired(store, anotherClaim(req, { claimant: who }));
    const view = await leaseOf(store, req.target);
    const { renewals, longestGapMs, progress, progressNote, maxStallMs } = view;
    assert.deepEqual(
      { renewals, longestGapMs, progress, progressNote, maxStallMs },
      { renewals: 0, longestGapMs: 0, progress: 0, progressNote: null, maxStallMs: null },
    );
    const { owner, label, reactor, ttlMs: ttl } = view;
    assert.deepEqual({ owner, label, reactor, ttlMs: ttl }, who);
    assert.ok(view.progressAgoMs <= view.heldMs);
    const { progressNote: note, endReason } = await lastTerm(store, req.target);
    assert.deepEqual([note, endReason], [undefined, undefined]);
  });

  it("a lease is shown as FREE, HELD or EXPIRED", async () => {
    const { store, elapse } = fresh();
    const req = claimForName({ claimant: claimant() });
    assert.equal(await store.read.lease(tenant, req.target), undefined);
    const term = await acquired(store, req);
    const held = await leaseOf(store, req.target);
    assert.equal(held.state, "HELD");
    assert.deepEqual([held.journal, held.kind, held.name], [term.journal, "name", req.target.name]);
    assert.ok(held.remainingMs > 0 && held.remainingMs <= ttlMs);
    await elapse(100);
    const later = await leaseOf(store, req.target);
    assert.equal(later.state, "HELD");
    assert.ok(later.remainingMs <= held.remainingMs - 99, `${held.remainingMs} → ${later.remainingMs}`);
    assert.ok(later.heldMs >= held.heldMs + 99 && later.progressAgoMs >= held.progressAgoMs + 99);
    await elapse(ttlMs - 80);
    const expired = await leaseOf(store, req.target);
    assert.deepEqual([expired.state, expired.remainingMs, expired.owner], ["EXPIRED", 0, req.claimant.owner]);
    await release(store, term);
    const free = await leaseOf(store, req.target);
    assert.deepEqual([free.state, free.remainingMs, free.heldMs, free.owner], ["FREE", 0, 0, null]);
  });

  it("leases are listed for their own tenant, all or only held ones", async () => {
    const { store } = fresh();
    const run = await heldRun(store, {}, claimant(undefined, lasting));
    const free = claimForName();
    await release(store, await acquired(store, free));
    await acquired(store, claimForName(), "other");
    const all = await store.read.leases(tenant);
    assert.deepEqual(all.map(({ name }) => name).sort(), [run.id, free.target.name].sort());
    const held = await store.read.leases(tenant, { held: true });
    assert.deepEqual(
      held.map(({ name, kind, token }) => [name, kind, token]),
      [[run.id, "run", 1n]],
    );
    assert.equal((await store.read.leases(tenant, { limit: 1 })).length, 1);
    const view = await leaseOf(store, { run: run.id });
    const { owner, token, state } = (await store.read.run(tenant, run.id))!.lease;
    assert.deepEqual({ owner, token, state }, { owner: view.owner, token: view.token, state: view.state });
    assert.equal((await leaseOf(store, { journal: run.journal })).name, run.id);
    assert.equal(await store.read.lease("other", { run: run.id }), undefined);
    assert.equal(await store.read.lease("other", { journal: run.journal }), undefined);
  });

  it("a missing or foreign lease has no term history", async () => {
    const { store } = fresh();
    const run = await heldRun(store);
    await refused("TAPE_RUN_NOT_FOUND", store.read.terms(tenant, { run: "nowhere" }));
    await refused("TAPE_RUN_NOT_FOUND", store.read.terms("other", { run: run.id }));
    await refused("TAPE_LEASE_NOT_FOUND", store.read.terms(tenant, { name: "nowhere" }));
    await refused("TAPE_LEASE_NOT_FOUND", store.read.terms("other", { journal: run.journal }));
    assert.equal((await store.read.terms(tenant, { journal: run.journal })).length, 1);
  });
};
