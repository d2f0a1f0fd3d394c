import { strict as assert } from "node:assert";
import {
  acquired,
  type Cases,
  claimant,
  heldRun,
  nonce,
  record,
  refused,
  request,
  step,
  tenant,
  ttlMs,
} from "./frame.ts";
import { everything } from "./holder.ts";
import {
  anotherClaim,
  brief,
  claimForName,
  findRequest,
  heldRuns,
  lasting,
  leaseOf,
  notRenewed,
  pastBrief,
  preempting,
  refusedClaim,
  release,
  renewed,
  termSummary,
} from "./lease-fixtures.ts";

/** Preemption of a live holder, and what happens to its work in progress. */
export const takeover: Cases = ({ it }, fresh) => {
  it("a preemption without operator and reason is refused", async () => {
    const { store } = fresh();
    const req = claimForName();
    const term = await acquired(store, req);
    const before = await everything(store);
    for (const more of [
      {},
      { by: "ann" },
      { auditReason: "it hangs" },
      { by: "", auditReason: "it hangs" },
      { by: "ann", auditReason: "" },
    ]) {
      await refused("TAPE_BAD_INPUT", store.claim.acquire(tenant, anotherClaim(req, { expect: "any", ...more })));
    }
    const { by: _by, auditReason: _why, ...bare } = anotherClaim(req, preempting);
    await refused("TAPE_BAD_INPUT", store.claim.acquire(tenant, { ...bare, reason: "manual" }));
    assert.equal(await everything(store), before);
    await renewed(store, term);
  });

  it("a takeover fences the live holder before the new one writes anything", async () => {
    const { store, another } = fresh();
    const run = await heldRun(store, {}, claimant(undefined, lasting));
    const { head } = await store.fenced.append(run.fence, { after: 1, records: [step(0)] });
    const successor = await acquired(await another(), request({ run: run.id }, preempting));
    assert.deepEqual(
      [successor.fence.token, successor.head, successor.reason],
      [run.fence.token + 1n, head + 1, "manual"],
    );
    const before = await everything(store);
    await refused("TAPE_FENCED", store.fenced.append(run.fence, { after: head, records: [step(1)] }));
    await refused("TAPE_FENCED", store.fenced.append(run.fence, { after: head + 1, records: [step(1)] }));
    await notRenewed("TAPE_FENCED", store, run);
    assert.equal(await everything(store), before);
    const [first, second] = await store.read.terms(tenant, { run: run.id });
    assert.equal(first!.endReason, "manual");
    const { startReason, by, auditReason } = second!;
    assert.deepEqual({ startReason, by, auditReason }, { startReason: "manual", by: "ann", auditReason: "it hangs" });
  });

  it("a takeover repeated with its nonce does not take over again", async () => {
    const { store } = fresh();
    const req = claimForName();
    await acquired(store, req);
    const force = anotherClaim(req, preempting);
    const successor = await acquired(store, force);
    assert.deepEqual(await acquired(store, force), successor);
    assert.equal((await store.read.terms(tenant, req.target)).length, 2);
  });

  it("a takeover of a free or expired lease is no preemption", async () => {
    const { store, elapse } = fresh();
    const free = claimForName();
    await release(store, await acquired(store, free));
    const stale = claimForName({ claimant: claimant(undefined, brief) });
    await acquired(store, stale);
    const run = await heldRun(store, {}, claimant(undefined, brief));
    await renewed(store, run);
    await elapse(pastBrief);
    for (const [target, startReason, end] of [
      [free.target, "release", "released"],
      [stale.target, "timeout", "expired"],
      [{ run: run.id }, "recovery", "expired"],
    ] as const) {
      const { reason } = await acquired(store, { ...anotherClaim(stale, preempting), target });
      assert.equal(reason, startReason);
      const [first, second] = await store.read.terms(tenant, target);
      assert.deepEqual(
        [first!.endReason, second!.startReason, second!.by, second!.auditReason],
        [end, startReason, "ann", "it hangs"],
      );
    }
  });

  it("a takeover for a cancellation ends the holder's term as cancelled", async () => {
    const { store } = fresh();
    const run = await heldRun(store, {}, claimant(undefined, lasting));
    await acquired(store, request({ run: run.id }, { ...preempting, reason: "cancellation" }));
    assert.deepEqual(await termSummary(store, { run: run.id }), [
      [1n, "start", "cancelled"],
      [2n, "cancellation", undefined],
    ]);
    const wrong = request({ run: run.id }, { ...preempting, reason: "whim" as "manual" });
    await refused("TAPE_BAD_INPUT", store.claim.acquire(tenant, wrong));
  });

  it("of concurrent takeovers the last stands, and all earlier ones are fenced", async () => {
    const { store, another } = fresh();
    const stores = [store, await another()];
    const req = claimForName();
    await acquired(store, req);
    const asks = Array.from({ length: 6 }, () => anotherClaim(req, preempting));
    const results = await Promise.all(asks.map((ask, k) => stores[k % 2]!.claim.acquire(tenant, ask)));
    const terms = results.flatMap((result) => (result.ok ? [result.term] : []));
    for (const result of results) if (!result.ok) refusedClaim("TAPE_LEASE_HELD", result); // another takeover was faster
    assert.ok(terms.length > 0);
    const { token } = await leaseOf(store, req.target);
    assert.equal(new Set(terms.map(({ fence }) => fence.token)).size, terms.length);
    const verdicts = await store.claim.renew(terms.map(({ fence }) => ({ fence, progress: 0 })));
    for (const [k, verdict] of verdicts.entries()) assert.equal(verdict.ok, terms[k]!.fence.token === token);
    assert.equal(verdicts.filter(({ ok }) => ok).length, 1);
  });

  it("an append of 100 records during a takeover is written completely or not at all", async () => {
    const { store, another } = fresh();
    const rival = await another();
    const runs = await heldRuns(store, 12, claimant(undefined, lasting));
    const records = Array.from({ length: 100 }, (_, k) =>
      k === 50 ? record("gate.opened", { pos: 50, name: "g" }) : step(k),
    );
    const outcomes = await Promise.all(
      runs.map(async (run, k) => {
        const take = () =>
          acquired(rival, request({ run: run.id }, { ...preempting, claimant: claimant(undefined, lasting) }));
        const early = k % 2 === 0 ? undefined : take();
        const writing = store.fenced.append(run.fence, { after: 1, records });
        const taking = early ?? take();
        const [written] = await Promise.allSettled([writing, taking]);
        const landed = written.status === "fulfilled";
        if (!landed) await refused("TAPE_FENCED", writing);
        return { run, landed, successor: await taking };
      }),
    );
    for (const { run, landed, successor } of outcomes) {
      const journal = await store.read.journal(tenant, { run: run.id });
      const own = journal.filter(({ token, seq }) => seq > 1 && token === run.fence.token);
      assert.equal(own.length, landed ? 100 : 0);
      assert.equal((await store.read.gates(tenant, { run: run.id })).length, landed ? 1 : 0);
      assert.equal(successor.head, landed ? 102 : 2);
      assert.equal(journal.at(-1)!.token, successor.fence.token, "nothing of the old holder is behind the new term");
    }
  });

  it("a lease renewed between find and claim is not taken", async () => {
    const { store, another, elapse } = fresh();
    const rival = await another();
    const runs = await heldRuns(store, 8, claimant());
    await elapse(ttlMs + 20);
    const ask = findRequest({ claimant: claimant(undefined, { reactor: "recovery" }) });
    const finding = rival.claim.find(ask); // may scan before the renewal, and must check again when it claims
    const renewing = store.claim.renew(runs.map(({ fence }) => ({ fence, progress: 1 })));
    const [found, verdicts] = await Promise.all([finding, renewing]);
    const taken = new Map(found.map((term) => [term.journal, term]));
    for (const [k, run] of runs.entries()) {
      const successor = taken.get(run.journal);
      assert.equal(verdicts[k]!.ok, successor === undefined, `run ${k} is either renewed or taken`);
      const write = store.fenced.append(run.fence, { after: 1, records: [step(0)] });
      if (successor === undefined) assert.equal((await write).head, 2);
      else await refused("TAPE_FENCED", write);
    }
    for (const term of found) await renewed(rival, term);
  });

  it("a conditional claim of an expired lease fails once its holder has renewed it", async () => {
    const { store, another, elapse } = fresh();
    const rival = await another();
    const req = claimForName({ claimant: claimant() });
    const term = await acquired(store, req);
    await elapse(ttlMs + 20);
    const { owner, token, state } = await leaseOf(rival, req.target);
    assert.equal(state, "EXPIRED");
    await renewed(store, term);
    for (const expect of ["expired", "free_or_expired", { owner, token }] as const) {
      refusedClaim("TAPE_LEASE_HELD", await rival.claim.acquire(tenant, anotherClaim(req, { expect, nonce: nonce() })));
    }
    await renewed(store, term);
  });
};
