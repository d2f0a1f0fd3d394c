import { strict as assert } from "node:assert";
import type { AcquireCondition } from "../../src/model/lease.ts";
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
  ttlMs,
  unique,
} from "./frame.ts";
import {
  again,
  brief,
  briefTerms,
  byForce,
  claimOf,
  lasting,
  leaseOf,
  letGo,
  notRenewed,
  pastBrief,
  renewed,
  storyOf,
  timeless,
  turnedAway,
} from "./holding.ts";
import { everything } from "./scenes.ts";

/** Who may try: acquiring and releasing. Renewals are in renewals.ts, pre-emption in takeover.ts. */
export const leases: Cases = ({ it }, fresh) => {
  it("a fresh name begins with token 1, in a journal of its own", async () => {
    const { store } = fresh();
    const req = claimOf();
    const term = await acquired(store, req);
    const { token, nonce: given } = term.fence;
    assert.deepEqual({ token, given }, { token: 1n, given: req.nonce });
    assert.equal(term.fence.journal, term.journal);
    const { kind, tenant: of, run, ttlMs: ttl, head, notes, reason } = term;
    assert.deepEqual(
      { kind, of, run, ttl, head, notes, reason },
      { kind: "name", of: tenant, run: term.journal, ttl: lasting.ttlMs, head: 2, notes: 0, reason: "start" },
    );
    const records = await store.read.journal(tenant, req.target);
    assert.deepEqual(
      records.map(({ seq, token: t, kind: k }) => [seq, t, k]),
      [
        [1, 0n, "lease.named"],
        [2, 1n, "term.started"],
      ],
    );
  });

  it("[INV-3] every new term and every release increases the token, also for the same owner", async () => {
    const { store, elapse } = fresh();
    const who = claimant(undefined, brief);
    const req = claimOf({ claimant: who });
    const first = await acquired(store, req);
    await letGo(store, first);
    const second = await acquired(store, again(req, { claimant: who }));
    await elapse(pastBrief);
    const third = await acquired(store, again(req, { claimant: who }));
    assert.deepEqual([first.fence.token, second.fence.token, third.fence.token], [1n, 3n, 4n]);
    await notRenewed("TAPE_FENCED", store, second);
    await refused("TAPE_FENCED", letGo(store, second));
    await renewed(store, third);
  });

  it("an owner object that acquires twice does not get the lease twice, one after the other or at once", async () => {
    const { store } = fresh();
    const req = claimOf();
    const term = await acquired(store, req);
    const holder = turnedAway("TAPE_LEASE_HELD", await store.claim.acquire(tenant, { ...req, nonce: nonce() }));
    assert.equal(holder?.token, term.fence.token);
    await renewed(store, term);
    const twice = claimOf();
    const answers = await Promise.all(
      [nonce(), nonce()].map((attempt) => store.claim.acquire(tenant, { ...twice, nonce: attempt })),
    );
    assert.equal(answers.filter((answer) => answer.ok).length, 1);
  });

  it("a restart with the same label while the old term lives waits for its end, and no longer", async () => {
    const { store, elapse } = fresh();
    const label = unique("host");
    const req = claimOf({ claimant: claimant(undefined, { label }) });
    const old = await acquired(store, req);
    const reborn = { ...again(req), claimant: claimant(undefined, { label, ...lasting }) };
    const holder = turnedAway("TAPE_LEASE_HELD", await store.claim.acquire(tenant, reborn));
    assert.equal(holder?.label, label);
    await elapse(ttlMs + 20);
    const term = await acquired(store, reborn);
    assert.equal(term.fence.token, old.fence.token + 1n);
    assert.equal(term.reason, "timeout");
    await notRenewed("TAPE_FENCED", store, old);
  });

  it("of two processes with one label one holds; the other cannot renew or release in its name", async () => {
    const { store, another } = fresh();
    const twin = await another();
    const label = unique("host");
    const req = claimOf({ claimant: claimant(undefined, { label, ...lasting }) });
    const twins = [req, again(req, { claimant: claimant(undefined, { label, ...lasting }) })] as const;
    const answers = await Promise.all([store.claim.acquire(tenant, twins[0]), twin.claim.acquire(tenant, twins[1])]);
    const winner = answers.findIndex((answer) => answer.ok);
    const loser = answers[1 - winner]!;
    assert.ok(winner >= 0);
    assert.equal(turnedAway("TAPE_LEASE_HELD", loser)?.owner, twins[winner]!.claimant.owner);
    const won = answers[winner]!;
    assert.ok(won.ok);
    const impostor = { ...won.term, fence: forged(won.term, { nonce: twins[1 - winner]!.nonce }) };
    await notRenewed("TAPE_FENCED", twin, impostor);
    await refused("TAPE_FENCED", letGo(twin, impostor));
    await renewed(store, won.term);
  });

  it("repeating an acquire with its nonce returns the same term: no new token, no new record", async () => {
    const { store, another } = fresh();
    const req = claimOf();
    const term = await acquired(store, req);
    const before = await everything(store);
    assert.deepEqual(await acquired(await another(), req), term);
    assert.equal(await everything(store), before);
    const rival = { ...req, claimant: claimant(undefined, lasting) };
    turnedAway("TAPE_LEASE_HELD", await store.claim.acquire(tenant, rival)); // the nonce alone is not an identity
  });

  it("repeating an acquire after renewals and writes returns the same term at its present head", async () => {
    const { store } = fresh();
    const run = await heldRun(store, {}, claimant("repeater", lasting));
    const { head } = await store.fenced.append(run.fence, { after: 1, records: [step(0), step(1)] });
    await renewed(store, run, 3);
    const req = request({ run: run.id }, { claimant: claimant("repeater", lasting), nonce: run.fence.nonce });
    const same = await acquired(store, { ...req, expect: "free" });
    assert.deepEqual(same.fence, run.fence);
    assert.deepEqual([same.head, same.reason, same.ttlMs], [head, "start", lasting.ttlMs]);
    assert.equal((await leaseOf(store, { run: run.id })).renewals, 1);
    assert.equal((await store.fenced.append(same.fence, { after: same.head, records: [step(2)] })).head, head + 1);
  });

  it("a repeated acquire tells the TTL that the term has, not the one that is asked for now", async () => {
    const { store } = fresh();
    const req = claimOf();
    await acquired(store, req);
    const longer = { ...req, claimant: { ...req.claimant, ttlMs: 10 * lasting.ttlMs } };
    assert.equal((await acquired(store, longer)).ttlMs, lasting.ttlMs);
  });

  it("repeating an acquire after its term ended does not bring the term back", async () => {
    const { store } = fresh();
    const req = claimOf();
    const term = await acquired(store, req);
    await letGo(store, term);
    const next = await acquired(store, req); // free: a fresh term, and the old fence stays shut
    assert.equal(next.fence.token, term.fence.token + 2n);
    await notRenewed("TAPE_FENCED", store, term);
    await refused("TAPE_FENCED", letGo(store, term, {}, next.head));
    const heir = await acquired(store, again(req, byForce));
    turnedAway("TAPE_LEASE_HELD", await store.claim.acquire(tenant, req));
    await renewed(store, heir);
  });

  it("of two claimants that read the same expired lease one gets it, and the other knows that it lost", async () => {
    const { store, another, elapse } = fresh();
    const rival = await another();
    const [old] = await briefTerms(store, 1);
    await elapse(pastBrief);
    const { owner, token } = await leaseOf(store, { name: old!.name });
    const expect = { owner, token };
    const asks = [0, 1].map(() => request({ name: old!.name }, { expect, claimant: claimant(undefined, lasting) }));
    const answers = await Promise.all(asks.map((ask, k) => (k === 0 ? store : rival).claim.acquire(tenant, ask)));
    const winner = answers.findIndex((answer) => answer.ok);
    assert.equal(answers.filter((answer) => answer.ok).length, 1);
    assert.equal(turnedAway("TAPE_LEASE_HELD", answers[1 - winner]!)?.owner, asks[winner]!.claimant.owner);
    assert.deepEqual(await storyOf(store, { name: old!.name }), [
      [1n, "start", "expired"],
      [2n, "timeout", undefined],
    ]);
  });

  it("an acquire succeeds exactly where its expectation holds", async () => {
    const { store, elapse } = fresh();
    type Now = { readonly owner: string | null; readonly token: bigint };
    const kinds: readonly (readonly [string, (now: Now) => AcquireCondition, readonly string[]])[] = [
      ["free", () => "free", ["FREE"]],
      ["expired", () => "expired", ["EXPIRED"]],
      ["free_or_expired", () => "free_or_expired", ["FREE", "EXPIRED"]],
      ["as read", ({ owner, token }) => ({ owner, token }), ["FREE", "EXPIRED"]],
      ["an older token", ({ owner, token }) => ({ owner, token: token - 1n }), []],
      ["a token of 2^53 more", ({ owner, token }) => ({ owner, token: token + 2n ** 53n }), []],
      ["the highest token", ({ owner }) => ({ owner, token: 2n ** 63n - 1n }), []],
      ["another owner", ({ token }) => ({ owner: "somebody", token }), []],
    ];
    const stale = await briefTerms(store, kinds.length);
    await elapse(pastBrief);
    for (const [k, [name, expectOf, holdsIn]] of kinds.entries()) {
      const held = claimOf();
      await acquired(store, held);
      const free = claimOf();
      await letGo(store, await acquired(store, free));
      for (const target of [held.target, free.target, { name: stale[k]!.name }]) {
        const now = await leaseOf(store, target);
        const ask = request(target, { expect: expectOf(now), claimant: claimant(undefined, lasting) });
        const answer = await store.claim.acquire(tenant, ask);
        const what = `${name} where the lease is ${now.state}`;
        assert.equal(answer.ok, holdsIn.includes(now.state), what);
        if (answer.ok) assert.equal(answer.term.fence.token, now.token + 1n, what);
        else {
          turnedAway("TAPE_LEASE_HELD", answer);
          assert.deepEqual(timeless(await leaseOf(store, target)), timeless(now), what);
        }
      }
    }
  });

  it("an acquire of a name that never was does not bring it into being where it is refused", async () => {
    const { store } = fresh();
    for (const expect of ["expired", { owner: "o", token: 0n }, { owner: null, token: 1n }] as const) {
      const name = unique("never");
      turnedAway("TAPE_LEASE_HELD", await store.claim.acquire(tenant, request({ name }, { expect })));
      assert.equal(await store.read.lease(tenant, { name }), undefined);
    }
    const named = request({ name: unique("new") }, { expect: { owner: null, token: 0n } });
    assert.equal((await acquired(store, named)).fence.token, 1n);
  });

  it("a refusal names the holder and how long it has left", async () => {
    const { store, elapse } = fresh();
    const req = claimOf();
    const term = await acquired(store, req);
    await elapse(20);
    const answer = await store.claim.acquire(tenant, again(req));
    const holder = turnedAway("TAPE_LEASE_HELD", answer)!;
    const { owner, label, token, state } = holder;
    assert.deepEqual(
      { owner, label, token, state },
      { owner: req.claimant.owner, label: req.claimant.label, token: term.fence.token, state: "HELD" },
    );
    assert.ok(holder.remainingMs > 0 && holder.remainingMs <= lasting.ttlMs - 19, String(holder.remainingMs));
    assert.ok(!answer.ok && Number(answer.error.details.remainingMs) <= lasting.ttlMs - 19);
  });

  it("with mixed TTLs a lease ends by its own holder's, whatever the claimant's is", async () => {
    const { store, elapse } = fresh();
    const long = claimOf();
    const short = claimOf({ claimant: claimant(undefined, brief) });
    await acquired(store, long);
    await acquired(store, short);
    await elapse(pastBrief);
    turnedAway(
      "TAPE_LEASE_HELD",
      await store.claim.acquire(tenant, again(long, { claimant: claimant(undefined, brief) })),
    );
    assert.equal((await acquired(store, again(short))).ttlMs, lasting.ttlMs);
    assert.ok((await leaseOf(store, short.target)).remainingMs > brief.ttlMs, "the row has the new holder's TTL");
  });

  it("a release while eight wait lets exactly one of them in, at once", async () => {
    const { store, another } = fresh();
    const stores = [store, await another()];
    const req = claimOf();
    const term = await acquired(store, req);
    const asks = Array.from({ length: 8 }, () => again(req));
    for (const ask of asks) turnedAway("TAPE_LEASE_HELD", await store.claim.acquire(tenant, ask));
    await letGo(store, term);
    const answers = await Promise.all(asks.map((ask, k) => stores[k % 2]!.claim.acquire(tenant, ask)));
    const winners = answers.filter((answer) => answer.ok);
    assert.equal(winners.length, 1);
    assert.deepEqual([winners[0]!.term.fence.token, winners[0]!.term.reason], [term.fence.token + 2n, "release"]);
  });

  it("a release keeps the row and bumps the token; whatever the former holder sends is refused", async () => {
    const { store } = fresh();
    const req = claimOf();
    const term = await acquired(store, req);
    const { head } = await letGo(store, term);
    const { state, token, owner, label, remainingMs } = await leaseOf(store, req.target);
    assert.deepEqual(
      { state, token, owner, label, remainingMs },
      { state: "FREE", token: 2n, owner: null, label: null, remainingMs: 0 },
    );
    const before = await everything(store);
    const acted = record("operator.action", { who: "me", action: "late", reason: "none" });
    await refused("TAPE_FENCED", store.fenced.append(term.fence, { after: head, records: [acted] }));
    await refused("TAPE_FENCED", letGo(store, term, { reason: "drained" }));
    assert.equal((await letGo(store, term)).head, head, "the very same release again: it was done");
    await notRenewed("TAPE_FENCED", store, term);
    const guess = { ...term, fence: forged(term, { token }) }; // the token that nobody holds opens nothing either
    await refused("TAPE_FENCED", letGo(store, guess, {}, head));
    await notRenewed("TAPE_FENCED", store, guess);
    assert.equal(await everything(store), before);
  });

  it("a release after a takeover is refused and leaves the new holder alone", async () => {
    const { store } = fresh();
    const req = claimOf();
    const old = await acquired(store, req);
    const heir = await acquired(store, again(req, byForce));
    const before = await everything(store);
    await refused("TAPE_FENCED", letGo(store, old));
    await refused("TAPE_FENCED", letGo(store, old, {}, heir.head));
    assert.equal(await everything(store), before);
    await renewed(store, heir);
  });

  it("nobody acquires what is not there, what has ended, or what is another tenant's", async () => {
    const { store } = fresh();
    const run = await heldRun(store);
    const ask = (target: Parameters<typeof request>[0], of = tenant) => store.claim.acquire(of, request(target));
    await refused("TAPE_RUN_NOT_FOUND", ask({ run: "nowhere" }));
    await refused("TAPE_RUN_NOT_FOUND", ask({ run: run.id }, "other"));
    await refused("TAPE_LEASE_NOT_FOUND", ask({ journal: run.journal }, "other"));
    await refused("TAPE_LEASE_NOT_FOUND", ask({ journal: 987_654_321 }));
    const end = record("run.ended", { status: "COMPLETED", notesTaken: 0, outcome: 1 });
    await store.fenced.append(run.fence, { after: 1, records: [end] });
    const before = await everything(store);
    turnedAway("TAPE_RUN_ENDED", await ask({ run: run.id }));
    turnedAway("TAPE_RUN_ENDED", await store.claim.acquire(tenant, request({ run: run.id }, byForce)));
    assert.equal(await everything(store), before);
  });
};
