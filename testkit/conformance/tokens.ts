import { strict as assert } from "node:assert";
import { makeFence } from "../../src/model/fence.ts";
import { acquired, type Cases, claimant, forged, heldRun, nonce, refused, request, step, tenant } from "./frame.ts";
import { everything } from "./holder.ts";
import {
  anotherClaim,
  claimForName,
  findRequest,
  lasting,
  leaseOf,
  notRenewed,
  preempting,
  release,
  renewed,
  termSummary,
} from "./lease-fixtures.ts";

/** 2^40 tokens for each store epoch. */
const floorOf = (epoch: number): bigint => BigInt(epoch) << 40n;

/** Tokens: unique, increasing, ordered as numbers, also after a restore. */
export const tokens: Cases = ({ it }, fresh) => {
  it("after each restore tokens start above the store epoch's floor and increase", async () => {
    const { store } = fresh();
    const { epoch: first } = await store.read.settings();
    const req = claimForName();
    let term = await acquired(store, req);
    let head = term.head;
    // Eleven, because from 9 to 10 epochs the token gains a digit: ordered as text it would decrease.
    for (let k = 1; k <= 11; k++) {
      const early = await heldRun(store, {}, claimant(undefined, lasting));
      assert.equal(early.fence.token, floorOf(first + k - 1) + 1n, "the first term of a run");
      await release(store, early);
      const { epoch, ended } = await store.claim.restored(`drill ${k}`);
      assert.deepEqual([epoch, ended], [first + k, 1]);
      await notRenewed("TAPE_FENCED", store, term);
      await refused("TAPE_FENCED", release(store, term, {}, head));
      const next = await acquired(store, anotherClaim(req));
      assert.ok(next.fence.token > term.fence.token);
      assert.equal(next.fence.token, floorOf(epoch) + 1n);
      await renewed(store, next);
      term = next;
      head = next.head;
    }
    assert.equal((await store.read.settings()).epoch, first + 11);
    const run = await heldRun(store);
    assert.equal(run.fence.token, floorOf(first + 11) + 1n);
    await store.fenced.append(run.fence, { after: 1, records: [step(0)] });
    const { head: ended } = await release(store, term, {}, head);
    const last = await acquired(store, anotherClaim(req));
    assert.deepEqual([last.fence.token, last.head], [term.fence.token + 2n, ended + 1]);
    const records = await store.read.journal(tenant, req.target);
    for (const [k, record] of records.entries()) {
      assert.equal(record.seq, k + 1);
      assert.ok(k === 0 || record.token >= records[k - 1]!.token, `seq ${record.seq}`);
    }
    const story = await termSummary(store, req.target);
    assert.equal(story.filter(([, , end]) => end === "superseded").length, 11);
  });

  it("a restore ends every term, fences old holders and frees every lease", async () => {
    const { store, another } = fresh();
    const who = claimant(undefined, lasting);
    const runs = await Promise.all([0, 1, 2].map(() => heldRun(store, {}, who)));
    const named = claimForName();
    const holder = await acquired(store, named);
    const idle = await acquired(store, claimForName());
    await release(store, idle);
    const { epoch, ended } = await (await another()).claim.restored("backup of Tuesday");
    assert.equal(ended, 4, "a free lease has no term to end");
    const young = await heldRun(store);
    assert.equal(
      young.fence.token,
      floorOf(epoch) + 1n,
      "a run that begins after it, with a client that was there before",
    );
    await store.fenced.append(young.fence, { after: 1, records: [step(0)] });
    for (const run of runs) {
      await refused("TAPE_FENCED", store.fenced.append(run.fence, { after: 1, records: [step(0)] }));
      await refused("TAPE_FENCED", release(store, run));
    }
    const verdicts = await store.claim.renew([...runs, holder].map(({ fence }) => ({ fence, progress: 1 })));
    for (const verdict of verdicts) assert.ok(!verdict.ok && verdict.error.code === "TAPE_FENCED");
    const repeat = request({ run: runs[0]!.id }, { claimant: who, nonce: runs[0]!.fence.nonce });
    const anew = await acquired(store, repeat); // the same attempt again: a new term, not the ended one
    assert.notEqual(anew.fence.token, runs[0]!.fence.token);
    await renewed(store, anew);
    const found = await store.claim.find(findRequest());
    assert.deepEqual(found.map(({ journal }) => journal).sort(), [runs[1]!.journal, runs[2]!.journal].sort());
    assert.equal((await acquired(store, anotherClaim(named))).reason, "timeout");
    for (const target of [...runs.map(({ id }) => ({ run: id })), named.target]) {
      const story = await termSummary(store, target);
      assert.deepEqual(
        story.map(([, , end]) => end),
        ["superseded", undefined],
      );
    }
  });

  it("a find repeated after a restore does not return ended terms", async () => {
    const { store } = fresh();
    const [created] = await store.intake.createRuns(tenant, [{ id: "found", workflow: "w", input: 1 }]);
    assert.ok(created?.ok);
    const ask = findRequest();
    const [before] = await store.claim.find(ask);
    await store.claim.restored("drill");
    const [after] = await store.claim.find(ask);
    assert.ok(after!.fence.token > before!.fence.token + floorOf(1) - 2n);
    await renewed(store, after!);
    await notRenewed("TAPE_FENCED", store, before!);
  });

  it("fences with tokens around 2^53 and at 2^63 - 1 are refused by their exact value", async () => {
    const { store } = fresh();
    const run = await heldRun(store, {}, claimant(undefined, lasting));
    const before = await everything(store);
    const { journal, nonce: own } = run.fence;
    for (const token of [0n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n]) {
      await refused("TAPE_FENCED", store.fenced.append(forged(run, { token }), { after: 1, records: [step(0)] }));
      await refused("TAPE_FENCED", release(store, { ...run, fence: forged(run, { token }) }));
      await notRenewed("TAPE_FENCED", store, { ...run, fence: forged(run, { token }) });
    }
    for (const token of [2n ** 63n, -1n]) {
      const entry = { after: 1, records: [step(0)] };
      await refused("TAPE_BAD_INPUT", store.fenced.append(makeFence(tenant, journal, token, own), entry));
      await refused("TAPE_BAD_INPUT", store.fenced.append(makeFence(tenant, journal, own, token), entry));
      await refused(
        "TAPE_BAD_INPUT",
        store.claim.renew([{ fence: makeFence(tenant, journal, token, own), progress: 0 }]),
      );
    }
    assert.equal(await everything(store), before);
    await renewed(store, run);
  });

  it("nonces up to 2^63 - 1 are exact, beyond the precision of a double", async () => {
    const { store } = fresh();
    for (const own of [2n ** 53n + 1n, 2n ** 63n - 2n]) {
      const req = { ...claimForName(), nonce: own };
      const term = await acquired(store, req);
      assert.equal(term.fence.nonce, own);
      for (const other of [own - 1n, own + 1n]) {
        await notRenewed("TAPE_FENCED", store, { ...term, fence: forged(term, { nonce: other }) });
        await refused("TAPE_FENCED", release(store, { ...term, fence: forged(term, { nonce: other }) }));
      }
      assert.deepEqual(await acquired(store, req), term);
      await release(store, term);
    }
    await refused("TAPE_BAD_INPUT", store.claim.acquire(tenant, { ...claimForName(), nonce: 2n ** 63n }));
    await refused("TAPE_BAD_INPUT", store.claim.acquire(tenant, { ...claimForName(), nonce: -1n }));
  });

  it("no token of a name is granted twice, however its terms start", async () => {
    const { store } = fresh();
    const req = claimForName();
    const seen: bigint[] = [];
    let term = await acquired(store, req);
    for (let k = 0; k < 12; k++) {
      seen.push(term.fence.token);
      if (k % 3 === 0) await release(store, term);
      if (k === 5) await store.claim.restored("drill");
      if (k === 7) {
        await store.claim.pause(tenant, req.target.name, true, "ann", "drill");
        await store.claim.pause(tenant, req.target.name, false, "ann", "drill over");
      }
      term = await acquired(store, anotherClaim(req, { ...preempting, nonce: nonce() }));
    }
    assert.deepEqual(
      seen,
      [...new Set(seen)].sort((a, b) => (a < b ? -1 : 1)),
    );
    assert.equal((await leaseOf(store, req.target)).token, term.fence.token);
  });
};
