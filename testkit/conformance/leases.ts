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
import { everything } from "./holder.ts";
import {
  anotherClaim,
  brief,
  briefTerms,
  claimForName,
  lasting,
  leaseOf,
  notRenewed,
  pastBrief,
  preempting,
  refusedClaim,
  release,
  renewed,
  termSummary,
  withoutTimes,
} from "./lease-fixtures.ts";

/** Acquiring and releasing. Renewals are in renewals.ts, preemption in takeover.ts. */
export const leases: Cases = ({ it }, fresh) => {
  it("a new name starts with token 1, in its own journal", async () => {
    const { store } = fresh();
    const req = claimForName();
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
    const req = claimForName({ claimant: who });
    const first = await acquired(store, req);
    await release(store, first);
    const second = await acquired(store, anotherClaim(req, { claimant: who }));
    await elapse(pastBrief);
    const third = await acquired(store, anotherClaim(req, { claimant: who }));
    assert.deepEqual([first.fence.token, second.fence.token, third.fence.token], [1n, 3n, 4n]);
    await notRenewed("TAPE_FENCED", store, second);
    await refused("TAPE_FENCED", release(store, second));
    await renewed(store, third);
  });

  it("an owner that acquires twice gets one term, sequentially or at once", async () => {
    const { store } = fresh();
    const req = claimForName();
    const term = await acquired(store, req);
    const holder = refusedClaim("TAPE_LEASE_HELD", await store.claim.acquire(tenant, { ...req, nonce: nonce() }));
    assert.equal(holder?.token, term.fence.token);
    await renewed(store, term);
    const twice = claimForName();
    const results = await Promise.all(
      [nonce(), nonce()].map((attempt) => store.claim.acquire(tenant, { ...twice, nonce: attempt })),
    );
    assert.equal(results.filter((result) => result.ok).length, 1);
  });

  it("a restart with the same label acquires once the old term expires", async () => {
    const { store, elapse } = fresh();
    const label = unique("host");
    const req = claimForName({ claimant: claimant(undefined, { label }) });
    const old = await acquired(store, req);
    const reborn = { ...anotherClaim(req), claimant: claimant(undefined, { label, ...lasting }) };
    const holder = refusedClaim("TAPE_LEASE_HELD", await store.claim.acquire(tenant, reborn));
    assert.equal(holder?.label, label);
    await elapse(ttlMs + 20);
    const term = await acquired(store, reborn);
    assert.equal(term.fence.token, old.fence.token + 1n);
    assert.equal(term.reason, "timeout");
    await notRenewed("TAPE_FENCED", store, old);
  });

  it("of two processes with one label, only the holder can renew and release", async () => {
    const { store, another } = fresh();
    const twin = await another();
    const label = unique("host");
    const req = claimForName({ claimant: claimant(undefined, { label, ...lasting }) });
    const twins = [req, anotherClaim(req, { claimant: claimant(undefined, { label, ...lasting }) })] as const;
    const results = await Promise.all([store.claim.acquire(tenant, twins[0]), twin.claim.acquire(tenant, twins[1])]);
    const winner = results.findIndex((result) => result.ok);
    const loser = results[1 - winner]!;
    assert.ok(winner >= 0);
    assert.equal(refusedClaim("TAPE_LEASE_HELD", loser)?.owner, twins[winner]!.claimant.owner);
    const won = results[winner]!;
    assert.ok(won.ok);
    const impostor = { ...won.term, fence: forged(won.term, { nonce: twins[1 - winner]!.nonce }) };
    await notRenewed("TAPE_FENCED", twin, impostor);
    await refused("TAPE_FENCED", release(twin, impostor));
    await renewed(store, won.term);
  });

  it("an acquire repeated with its nonce returns the same term, and writes nothing", async () => {
    const { store, another } = fresh();
    const req = claimForName();
    const term = await acquired(store, req);
    const before = await everything(store);
    assert.deepEqual(await acquired(await another(), req), term);
    assert.equal(await everything(store), before);
    const rival = { ...req, claimant: claimant(undefined, lasting) };
    refusedClaim("TAPE_LEASE_HELD", await store.claim.acquire(tenant, rival)); // the nonce alone is not an identity
  });

  it("an acquire repeated after writes returns the same term at the current head", async () => {
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

  it("a repeated acquire returns the TTL of the existing term", async () => {
    const { store } = fresh();
    const req = claimForName();
    await acquired(store, req);
    const longer = { ...req, claimant: { ...req.claimant, ttlMs: 10 * lasting.ttlMs } };
    assert.equal((await acquired(store, longer)).ttlMs, lasting.ttlMs);
  });

  it("an acquire repeated after its term ended does not restore the term", async () => {
    const { store } = fresh();
    const req = claimForName();
    const term = await acquired(store, req);
    await release(store, term);
    const next = await acquired(store, req); // free: a new term, and the old fence stays invalid
    assert.equal(next.fence.token, term.fence.token + 2n);
    await notRenewed("TAPE_FENCED", store, term);
    await refused("TAPE_FENCED", release(store, term, {}, next.head));
    const successor = await acquired(store, anotherClaim(req, preempting));
    refusedClaim("TAPE_LEASE_HELD", await store.claim.acquire(tenant, req));
    await renewed(store, successor);
  });

  it("of two claimants that read the same expired lease, exactly one gets it", async () => {
    const { store, another, elapse } = fresh();
    const rival = await another();
    const [old] = await briefTerms(store, 1);
    await elapse(pastBrief);
    const { owner, token } = await leaseOf(store, { name: old!.name });
    const expect = { owner, token };
    const asks = [0, 1].map(() => request({ name: old!.name }, { expect, claimant: claimant(undefined, lasting) }));
    const results = await Promise.all(asks.map((ask, k) => (k === 0 ? store : rival).claim.acquire(tenant, ask)));
    const winner = results.findIndex((result) => result.ok);
    assert.equal(results.filter((result) => result.ok).length, 1);
    assert.equal(refusedClaim("TAPE_LEASE_HELD", results[1 - winner]!)?.owner, asks[winner]!.claimant.owner);
    assert.deepEqual(await termSummary(store, { name: old!.name }), [
      [1n, "start", "expired"],
      [2n, "timeout", undefined],
    ]);
  });

  it("an acquire succeeds exactly if its condition holds", async () => {
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
      const held = claimForName();
      await acquired(store, held);
      const free = claimForName();
      await release(store, await acquired(store, free));
      for (const target of [held.target, free.target, { name: stale[k]!.name }]) {
        const now = await leaseOf(store, target);
        const ask = request(target, { expect: expectOf(now), claimant: claimant(undefined, lasting) });
        const result = await store.claim.acquire(tenant, ask);
        const what = `${name} where the lease is ${now.state}`;
        assert.equal(result.ok, holdsIn.includes(now.state), what);
        if (result.ok) assert.equal(result.term.fence.token, now.token + 1n, what);
        else {
          refusedClaim("TAPE_LEASE_HELD", result);
          assert.deepEqual(withoutTimes(await leaseOf(store, target)), withoutTimes(now), what);
        }
      }
    }
  });

  it("a refused acquire of an unknown name does not create the name", async () => {
    const { store } = fresh();
    for (const expect of ["expired", { owner: "o", token: 0n }, { owner: null, token: 1n }] as const) {
      const name = unique("never");
      refusedClaim("TAPE_LEASE_HELD", await store.claim.acquire(tenant, request({ name }, { expect })));
      assert.equal(await store.read.lease(tenant, { name }), undefined);
    }
    const named = request({ name: unique("new") }, { expect: { owner: null, token: 0n } });
    assert.equal((await acquired(store, named)).fence.token, 1n);
  });

  it("a refusal names the holder and how long it has left", async () => {
    const { store, elapse } = fresh();
    const req = claimForName();
    const term = await acquired(store, req);
    await elapse(20);
    const result = await store.claim.acquire(tenant, anotherClaim(req));
    const holder = refusedClaim("TAPE_LEASE_HELD", result)!;
    const { owner, label, token, state } = holder;
    assert.deepEqual(
      { owner, label, token, state },
      { owner: req.claimant.owner, label: req.claimant.label, token: term.fence.token, state: "HELD" },
    );
    assert.ok(holder.remainingMs > 0 && holder.remainingMs <= lasting.ttlMs - 19, String(holder.remainingMs));
    assert.ok(!result.ok && Number(result.error.details.remainingMs) <= lasting.ttlMs - 19);
  });

  it("a lease expires by its holder's TTL, whatever the claimant's is", async () => {
    const { store, elapse } = fresh();
    const long = claimForName();
    const short = claimForName({ claimant: claimant(undefined, brief) });
    await acquired(store, long);
    await acquired(store, short);
    await elapse(pastBrief);
    refusedClaim(
      "TAPE_LEASE_HELD",
      await store.claim.acquire(tenant, anotherClaim(long, { claimant: claimant(undefined, brief) })),
    );
    assert.equal((await acquired(store, anotherClaim(short))).ttlMs, lasting.ttlMs);
    assert.ok((await leaseOf(store, short.target)).remainingMs > brief.ttlMs, "the row has the new holder's TTL");
  });

  it("a release lets exactly one of eight waiting claimants acquire", async () => {
    const { store, another } = fresh();
    const stores = [store, await another()];
    const req = claimForName();
    const term = await acquired(store, req);
    const asks = Array.from({ length: 8 }, () => anotherClaim(req));
    for (const ask of asks) refusedClaim("TAPE_LEASE_HELD", await store.claim.acquire(tenant, ask));
    await release(store, term);
    const results = await Promise.all(asks.map((ask, k) => stores[k % 2]!.claim.acquire(tenant, ask)));
    const winners = results.filter((result) => result.ok);
    assert.equal(winners.length, 1);
    assert.deepEqual([winners[0]!.term.fence.token, winners[0]!.term.reason], [term.fence.token + 2n, "release"]);
  });

  it("a release increases the token, and rejects the former holder's calls", async () => {
    const { store } = fresh();
    const req = claimForName();
    const term = await acquired(store, req);
    const { head } = await release(store, term);
    const { state, token, owner, label, remainingMs } = await leaseOf(store, req.target);
    assert.deepEqual(
      { state, token, owner, label, remainingMs },
      { state: "FREE", token: 2n, owner: null, label: null, remainingMs: 0 },
    );
    const before = await everything(store);
    const acted = record("operator.action", { by: "me", action: "late", reason: "none" });
    await refused("TAPE_FENCED", store.fenced.append(term.fence, { after: head, records: [acted] }));
    await refused("TAPE_FENCED", release(store, term, { reason: "drained" }));
    assert.equal((await release(store, term)).head, head, "the very same release again: it was done");
    await notRenewed("TAPE_FENCED", store, term);
    const guess = { ...term, fence: forged(term, { token }) }; // the token of a free lease is no valid fence either
    await refused("TAPE_FENCED", release(store, guess, {}, head));
    await notRenewed("TAPE_FENCED", store, guess);
    assert.equal(await everything(store), before);
  });

  it("a release after a takeover is refused and leaves the new holder alone", async () => {
    const { store } = fresh();
    const req = claimForName();
    const old = await acquired(store, req);
    const successor = await acquired(store, anotherClaim(req, preempting));
    const before = await everything(store);
    await refused("TAPE_FENCED", release(store, old));
    await refused("TAPE_FENCED", release(store, old, {}, successor.head));
    assert.equal(await everything(store), before);
    await renewed(store, successor);
  });

  it("an acquire of a missing, an ended or a foreign target is refused", async () => {
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
    refusedClaim("TAPE_RUN_ENDED", await ask({ run: run.id }));
    refusedClaim("TAPE_RUN_ENDED", await store.claim.acquire(tenant, request({ run: run.id }, preempting)));
    assert.equal(await everything(store), before);
  });
};
