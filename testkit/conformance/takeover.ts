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
import {
  again,
  brief,
  byForce,
  claimOf,
  heldRuns,
  hunt,
  lasting,
  leaseOf,
  letGo,
  notRenewed,
  pastBrief,
  renewed,
  storyOf,
  turnedAway,
} from "./holding.ts";
import { everything } from "./scenes.ts";

/** Pre-emption of a live holder, and what happens to the work that it had under way. */
export const takeover: Cases = ({ it }, fresh) => {
  it("whoever pre-empts says who and why; otherwise nothing happens", async () => {
    const { store } = fresh();
    const req = claimOf();
    const term = await acquired(store, req);
    const before = await everything(store);
    for (const more of [
      {},
      { by: "ann" },
      { auditReason: "it hangs" },
      { by: "", auditReason: "it hangs" },
      { by: "ann", auditReason: "" },
    ]) {
      await refused("TAPE_BAD_INPUT", store.claim.acquire(tenant, again(req, { expect: "any", ...more })));
    }
    const { by: _by, auditReason: _why, ...bare } = again(req, byForce);
    await refused("TAPE_BAD_INPUT", store.claim.acquire(tenant, { ...bare, reason: "manual" }));
    assert.equal(await everything(store), before);
    await renewed(store, term);
  });

  it("a takeover fences the live holder at once, before the new one has written anything", async () => {
    const { store, another } = fresh();
    const run = await heldRun(store, {}, claimant(undefined, lasting));
    const { head } = await store.fenced.append(run.fence, { after: 1, records: [step(0)] });
    const heir = await acquired(await another(), request({ run: run.id }, byForce));
    assert.deepEqual([heir.fence.token, heir.head, heir.reason], [run.fence.token + 1n, head + 1, "manual"]);
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

  it("repeating a takeover with its nonce does not take over a second time", async () => {
    const { store } = fresh();
    const req = claimOf();
    await acquired(store, req);
    const force = again(req, byForce);
    const heir = await acquired(store, force);
    assert.deepEqual(await acquired(store, force), heir);
    assert.equal((await store.read.terms(tenant, req.target)).length, 2);
  });

  it("a takeover of what nobody holds, or of what has expired, is no pre-emption, and says so", async () => {
    const { store, elapse } = fresh();
    const free = claimOf();
    await letGo(store, await acquired(store, free));
    const stale = claimOf({ claimant: claimant(undefined, brief) });
    await acquired(store, stale);
    const run = await heldRun(store, {}, claimant(undefined, brief));
    await renewed(store, run);
    await elapse(pastBrief);
    for (const [target, startReason, end] of [
      [free.target, "release", "released"],
      [stale.target, "timeout", "expired"],
      [{ run: run.id }, "recovery", "expired"],
    ] as const) {
      const { reason } = await acquired(store, { ...again(stale, byForce), target });
      assert.equal(reason, startReason);
      const [first, second] = await store.read.terms(tenant, target);
      assert.deepEqual(
        [first!.endReason, second!.startReason, second!.by, second!.auditReason],
        [end, startReason, "ann", "it hangs"],
      );
    }
  });

  it("a takeover in order to cancel ends the holder's term as cancelled", async () => {
    const { store } = fresh();
    const run = await heldRun(store, {}, claimant(undefined, lasting));
    await acquired(store, request({ run: run.id }, { ...byForce, reason: "cancellation" }));
    assert.deepEqual(await storyOf(store, { run: run.id }), [
      [1n, "start", "cancelled"],
      [2n, "cancellation", undefined],
    ]);
    const wrong = request({ run: run.id }, { ...byForce, reason: "whim" as "manual" });
    await refused("TAPE_BAD_INPUT", store.claim.acquire(tenant, wrong));
  });

  it("of takeovers at the same time the last stands, and every earlier one is fenced", async () => {
    const { store, another } = fresh();
    const stores = [store, await another()];
    const req = claimOf();
    await acquired(store, req);
    const asks = Array.from({ length: 6 }, () => again(req, byForce));
    const answers = await Promise.all(asks.map((ask, k) => stores[k % 2]!.claim.acquire(tenant, ask)));
    const terms = answers.flatMap((answer) => (answer.ok ? [answer.term] : []));
    for (const answer of answers) if (!answer.ok) turnedAway("TAPE_LEASE_HELD", answer); // another was faster
    assert.ok(terms.length > 0);
    const { token } = await leaseOf(store, req.target);
    assert.equal(new Set(terms.map(({ fence }) => fence.token)).size, terms.length);
    const verdicts = await store.claim.renew(terms.map(({ fence }) => ({ fence, progress: 0 })));
    for (const [k, verdict] of verdicts.entries()) assert.equal(verdict.ok, terms[k]!.fence.token === token);
    assert.equal(verdicts.filter(({ ok }) => ok).length, 1);
  });

  it("a batch of 100 records with a takeover in the middle is in the journal whole, or not at all", async () => {
    const { store, another } = fresh();
    const rival = await another();
    const runs = await heldRuns(store, 12, claimant(undefined, lasting));
    const records = Array.from({ length: 100 }, (_, k) =>
      k === 50 ? record("gate.opened", { pos: 50, name: "g" }) : step(k),
    );
    const outcomes = await Promise.all(
      runs.map(async (run, k) => {
        const take = () =>
          acquired(rival, request({ run: run.id }, { ...byForce, claimant: claimant(undefined, lasting) }));
        const early = k % 2 === 0 ? undefined : take();
        const writing = store.fenced.append(run.fence, { after: 1, records });
        const taking = early ?? take();
        const [written] = await Promise.allSettled([writing, taking]);
        const landed = written.status === "fulfilled";
        if (!landed) await refused("TAPE_FENCED", writing);
        return { run, landed, heir: await taking };
      }),
    );
    for (const { run, landed, heir } of outcomes) {
      const journal = await store.read.journal(tenant, { run: run.id });
      const own = journal.filter(({ token, seq }) => seq > 1 && token === run.fence.token);
      assert.equal(own.length, landed ? 100 : 0);
      assert.equal((await store.read.gates(tenant, { run: run.id })).length, landed ? 1 : 0);
      assert.equal(heir.head, landed ? 102 : 2);
      assert.equal(journal.at(-1)!.token, heir.fence.token, "nothing of the old holder is behind the new term");
    }
  });

  it("a lease that was found expired and is renewed before the claim is not taken", async () => {
    const { store, another, elapse } = fresh();
    const rival = await another();
    const runs = await heldRuns(store, 8, claimant());
    await elapse(ttlMs + 20);
    const ask = hunt({ claimant: claimant(undefined, { reactor: "recovery" }) });
    const finding = rival.claim.find(ask); // may scan before the renewal, and must look again when it takes
    const renewing = store.claim.renew(runs.map(({ fence }) => ({ fence, progress: 1 })));
    const [found, verdicts] = await Promise.all([finding, renewing]);
    const taken = new Map(found.map((term) => [term.journal, term]));
    for (const [k, run] of runs.entries()) {
      const heir = taken.get(run.journal);
      assert.equal(verdicts[k]!.ok, heir === undefined, `run ${k} is either renewed or taken`);
      const write = store.fenced.append(run.fence, { after: 1, records: [step(0)] });
      if (heir === undefined) assert.equal((await write).head, 2);
      else await refused("TAPE_FENCED", write);
    }
    for (const term of found) await renewed(rival, term);
  });

  it("a claim of an expired lease as read fails once its holder has renewed it", async () => {
    const { store, another, elapse } = fresh();
    const rival = await another();
    const req = claimOf({ claimant: claimant() });
    const term = await acquired(store, req);
    await elapse(ttlMs + 20);
    const { owner, token, state } = await leaseOf(rival, req.target);
    assert.equal(state, "EXPIRED");
    await renewed(store, term);
    for (const expect of ["expired", "free_or_expired", { owner, token }] as const) {
      turnedAway("TAPE_LEASE_HELD", await rival.claim.acquire(tenant, again(req, { expect, nonce: nonce() })));
    }
    await renewed(store, term);
  });
};
