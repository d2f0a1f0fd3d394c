import { strict as assert } from "node:assert";
import { isTapeError } from "../../src/model/errors.ts";
import type { Term } from "../../src/model/lease.ts";
import type { FindRequest, Store } from "../../src/store/contract/store.ts";
import {
  acquired,
  type Cases,
  claimant,
  heldRun,
  nonce,
  record,
  refused,
  request,
  spec,
  step,
  tenant,
} from "./frame.ts";
import { everything } from "./holder.ts";
import {
  brief,
  findRequest,
  heldRuns,
  lasting,
  leaseOf,
  notRenewed,
  pastBrief,
  release,
  renewed,
  termSummary,
  waitingRuns,
} from "./lease-fixtures.ts";

const journalsOf = (terms: readonly { journal: number }[]): number[] =>
  terms.map(({ journal }) => journal).sort((a, b) => a - b);

const outboxed = record("effect.intended", {
  pos: 0,
  name: "wire",
  semantics: "idempotent",
  dispatch: "outbox",
  key: "k",
  argsHash: "h",
  args: 1,
});

/** Retries while the store is busy, with the same nonce, so that no granted term is lost. */
async function insisting(store: Store, request: FindRequest): Promise<Term[]> {
  for (;;) {
    try {
      return await store.claim.find(request);
    } catch (error) {
      if (!isTapeError(error) || error.retry === "no") throw error;
    }
  }
}

/** Finding work: queued leases and leases without a holder, each found exactly once. */
export const finding: Cases = ({ it }, fresh) => {
  it("a run created without a holder is RUNNABLE, and is found once", async () => {
    const { store } = fresh();
    const [run] = await waitingRuns(store, 1);
    assert.equal((await store.read.run(tenant, run!.id))?.status, "RUNNABLE");
    const ask = findRequest();
    const [term, ...more] = await store.claim.find(ask);
    assert.equal(more.length, 0);
    const { journal, kind, run: of, reason, head, fence, ttlMs } = term!;
    assert.deepEqual(
      { journal, kind, of, reason, head, token: fence.token, nonce: fence.nonce, ttlMs },
      {
        journal: run!.journal,
        kind: "run",
        of: run!.journal,
        reason: "start",
        head: 2,
        token: 1n,
        nonce: ask.nonce,
        ttlMs: lasting.ttlMs,
      },
    );
    assert.equal((await store.read.run(tenant, run!.id))?.status, "RUNNING");
    assert.equal((await store.fenced.append(fence, { after: head, records: [step(0)] })).head, 3);
    assert.deepEqual(await store.claim.find(findRequest()), []);
  });

  it("two concurrent finds never return the same run", async () => {
    const { store, another } = fresh();
    const rival = await another();
    const runs = await waitingRuns(store, 30);
    const [mine, theirs] = await Promise.all([store.claim.find(findRequest()), rival.claim.find(findRequest())]);
    assert.deepEqual(journalsOf([...mine, ...theirs]), journalsOf(runs));
    const verdicts = await store.claim.renew([...mine, ...theirs].map(({ fence }) => ({ fence, progress: 0 })));
    assert.ok(verdicts.every(({ ok }) => ok));
  });

  it("200 leases that expire together are each claimed exactly once by four claimants", async () => {
    const { store, another, elapse } = fresh();
    const stores = [store, await another()];
    const runs = await heldRuns(store, 200, claimant(undefined, brief));
    await elapse(pastBrief);
    const claimed: Term[] = [];
    const hunter = async (k: number): Promise<void> => {
      // All see the same first page; a claimant that loses all of it finds again.
      for (let round = 0; round < 50 && claimed.length < runs.length; round++) {
        claimed.push(...(await insisting(stores[k % 2]!, findRequest({ limit: 60 }))));
      }
    };
    await Promise.all([0, 1, 2, 3].map(hunter));
    assert.deepEqual(journalsOf(claimed), journalsOf(runs));
    assert.ok(claimed.every(({ reason, fence }) => reason === "recovery" && fence.token === 2n));
  });

  it("a find returns only leases queued for, or last held by, its reactors", async () => {
    const { store, elapse } = fresh();
    const [due] = await waitingRuns(store, 1);
    const [stale] = await heldRuns(store, 1, claimant(undefined, { ...brief, reactor: "agent" }));
    await heldRuns(store, 1, claimant(undefined, { ...lasting, reactor: "agent" }));
    await elapse(pastBrief);
    assert.deepEqual(await store.claim.find(findRequest({ nextReactor: "reconciler", staleOf: [] })), []);
    assert.deepEqual(
      await store.claim.find(findRequest({ nextReactor: "reconciler", staleOf: ["outbox", "agen", "agent "] })),
      [],
    );
    const found = await store.claim.find(findRequest({ nextReactor: "reconciler", staleOf: ["outbox", "agent"] }));
    assert.deepEqual(journalsOf(found), [stale!.journal]);
    assert.deepEqual(journalsOf(await store.claim.find(findRequest({ staleOf: [] }))), [due!.journal]);
  });

  it("a find respects its tenant and its limit, longest due first", async () => {
    const { store, elapse } = fresh();
    const [old] = await waitingRuns(store, 1);
    await elapse(5);
    const mine = await waitingRuns(store, 3);
    const theirs = await waitingRuns(store, 2, "other");
    const [first, ...none] = await store.claim.find(findRequest({ limit: 1 }));
    assert.deepEqual([first!.journal, none.length], [old!.journal, 0]);
    const others = await store.claim.find(findRequest({ tenant: "other" }));
    assert.deepEqual(journalsOf(others), journalsOf(theirs));
    assert.ok(others.every((term) => term.tenant === "other"));
    assert.equal((await store.claim.find(findRequest({ limit: 2 }))).length, 2);
    assert.equal((await store.claim.find(findRequest({ limit: 2 }))).length, mine.length - 2);
    assert.deepEqual(await store.claim.find(findRequest({ limit: 2 })), []);
  });

  it("a find for some workflows neither takes nor counts others", async () => {
    const { store, elapse } = fresh();
    const named = (workflow: string) => spec({ workflow });
    const names = ["a,b", "a", 'b"', "a"];
    const held = claimant(undefined, { ...brief, reactor: "agent" });
    const stale = await store.intake.createRuns(tenant, [named("a,b"), named("c")], { ...held, nonce: nonce() });
    await elapse(pastBrief);
    const due = await store.intake.createRuns(tenant, names.map(named));
    const journals = [...stale, ...due].map((verdict) => (verdict.ok ? verdict.journal : 0));
    const [staleAb, staleC, ab, a, b, aToo] = journals as [number, number, number, number, number, number];
    assert.deepEqual(await store.claim.find(findRequest({ workflows: [] })), []);
    assert.deepEqual(await store.claim.find(findRequest({ workflows: ["b", "A", ""].slice(0, 2) })), []);
    assert.deepEqual(journalsOf(await store.claim.find(findRequest({ workflows: ['b"'], limit: 1 }))), [b]);
    assert.deepEqual(journalsOf(await store.claim.find(findRequest({ workflows: ["a"] }))), [a, aToo]);
    assert.deepEqual(journalsOf(await store.claim.find(findRequest({ workflows: ["a,b"] }))), [staleAb, ab]);
    assert.deepEqual(journalsOf(await store.claim.find(findRequest())), [staleC]);
  });

  it("a find for some workflows returns no items", async () => {
    const { store } = fresh();
    const run = await heldRun(store, {}, claimant(undefined, lasting));
    await store.fenced.append(run.fence, { after: 1, records: [outboxed] });
    const asks = { nextReactor: "outbox", staleOf: ["outbox"] };
    assert.deepEqual(await store.claim.find(findRequest({ ...asks, workflows: ["w"] })), []);
    assert.equal((await store.claim.find(findRequest(asks))).length, 1);
  });

  it("lists unserved workflows and how long their runs have waited", async () => {
    const { store, elapse } = fresh();
    const held = claimant(undefined, { ...brief, reactor: "agent" });
    await store.intake.createRuns(tenant, [spec({ workflow: "gone" })], { ...held, nonce: nonce() });
    await heldRuns(store, 1, claimant(undefined, lasting)); // driven, so not unserved
    await store.intake.createRuns(tenant, [spec({ workflow: "b" }), spec({ workflow: "a" }), spec({ workflow: "b" })]);
    await store.intake.createRuns("other", [spec({ workflow: "a" })]);
    await elapse(pastBrief + 10);
    const counted = async (...of: Parameters<typeof store.read.unserved>) =>
      (await store.read.unserved(...of)).map(({ workflow, runs }) => [workflow, runs]);
    assert.deepEqual(await counted([], 0), [["a", 2], ["b", 2], ["gone", 1]]); // biome-ignore format: a table
    assert.deepEqual(await counted(["b"], 0, tenant), [["a", 1], ["gone", 1]]); // biome-ignore format: a table
    assert.deepEqual(await counted([], 3_600_000), []);
    const [a] = await store.read.unserved(["b", "gone"], 0);
    assert.ok(a!.lagMs >= pastBrief && a!.lagMs < 3_600_000, String(a!.lagMs));
    await store.claim.find(findRequest());
    assert.deepEqual(await store.read.unserved([], 0), []);
  });

  it("a tenant's own find recovers only that tenant's expired holders", async () => {
    const { store, elapse } = fresh();
    const [mine] = await heldRuns(store, 1, claimant(undefined, brief));
    await elapse(pastBrief);
    assert.deepEqual(await store.claim.find(findRequest({ tenant: "other" })), []);
    assert.deepEqual(journalsOf(await store.claim.find(findRequest({ tenant }))), [mine!.journal]);
  });

  it("a find repeated with its nonce returns the same terms and claims nothing twice", async () => {
    const { store, another } = fresh();
    await waitingRuns(store, 5);
    const ask = findRequest({ limit: 3 });
    const first = await store.claim.find(ask);
    const same = await (await another()).claim.find(ask);
    assert.equal(first.length, 3);
    // Lateness is reported with the first response only.
    const known = (terms: readonly Term[]) =>
      terms.map(({ lagMs: _, ...term }) => term).sort((a, b) => a.journal - b.journal);
    assert.deepEqual(known(same), known(first));
    const { fence, head } = first[0]!;
    await store.fenced.append(fence, { after: head, records: [step(0)] });
    const late = (await store.claim.find(ask)).find(({ journal }) => journal === fence.journal);
    assert.deepEqual([late?.fence, late?.head], [fence, head + 1]);
    const terms = await Promise.all(first.map(({ journal }) => store.read.terms(tenant, { journal })));
    assert.ok(terms.every((ledger) => ledger.length === 1));
    assert.equal((await store.claim.find(findRequest())).length, 2, "the others are still to be had");
  });

  it("a repeated find returns terms that expired, but none that were taken over", async () => {
    const { store, elapse } = fresh();
    const runs = await waitingRuns(store, 2);
    const ask = findRequest({ claimant: claimant(undefined, { reactor: "recovery", ...brief }) });
    const terms = await store.claim.find(ask);
    await elapse(pastBrief);
    const [lost, kept] = runs;
    const successor = await acquired(store, request({ run: lost!.id }, { claimant: claimant(undefined, lasting) }));
    const again = await store.claim.find(ask);
    const own = terms.find(({ journal }) => journal === kept!.journal)!;
    assert.deepEqual(
      again.map(({ fence }) => fence),
      [own.fence],
    );
    await renewed(store, successor);
    await renewed(store, own);
  });

  it("a parked run is not found until a note arrives, then with reason wake", async () => {
    const { store } = fresh();
    const run = await heldRun(store);
    await release(store, run);
    assert.equal((await store.read.run(tenant, run.id))?.status, "WAITING");
    assert.deepEqual(await store.claim.find(findRequest()), []);
    await store.intake.signal(tenant, run.id, { name: "s", value: 1 });
    assert.equal((await store.read.run(tenant, run.id))?.status, "RUNNABLE");
    const [term] = await store.claim.find(findRequest());
    assert.deepEqual([term!.journal, term!.reason, term!.notes, term!.head], [run.journal, "wake", 1, 3]);
  });

  it("a note to a held run queues nothing; after expiry it is found for recovery", async () => {
    const { store, elapse } = fresh();
    const live = await heldRun(store, {}, claimant(undefined, lasting));
    const dead = await heldRun(store, {}, claimant(undefined, brief));
    await store.intake.signal(tenant, live.id, { name: "s", value: 1 });
    await store.intake.signal(tenant, dead.id, { name: "s", value: 1 });
    await elapse(pastBrief);
    const [term, ...more] = await store.claim.find(findRequest());
    assert.deepEqual([term!.journal, term!.reason, term!.notes, more.length], [dead.journal, "recovery", 1, 0]);
    assert.equal((await leaseOf(store, { run: live.id })).nextReactor, null);
    await renewed(store, live);
    await notRenewed("TAPE_FENCED", store, dead);
  });

  it("an ending run without a holder is found; an ended one never is", async () => {
    const { store, elapse } = fresh();
    const [ending, done] = await heldRuns(store, 2, claimant(undefined, brief));
    const decided = record("run.decided", { cause: "failed", outcome: "no" });
    await store.fenced.append(ending!.fence, { after: 1, records: [decided] });
    const ended = record("run.ended", { status: "COMPLETED", notesTaken: 0, outcome: 1 });
    await store.fenced.append(done!.fence, { after: 1, records: [ended] });
    await elapse(pastBrief);
    assert.deepEqual(journalsOf(await store.claim.find(findRequest())), [ending!.journal]);
    assert.equal((await store.read.run(tenant, ending!.id))?.status, "ENDING");
  });

  it("a drained run is found by another claimant immediately", async () => {
    const { store, another } = fresh();
    const run = await heldRun(store, {}, claimant(undefined, lasting));
    await release(store, run, { reason: "drained", nextReactor: "recovery" });
    const [term] = await (await another()).claim.find(findRequest());
    assert.deepEqual([term!.journal, term!.fence.token], [run.journal, run.fence.token + 2n]);
    assert.equal((await termSummary(store, { run: run.id }))[0]![2], "drained");
  });

  it("work that is due later is not found before", async () => {
    const { store, elapse } = fresh();
    const [soon, later] = await heldRuns(store, 2, claimant(undefined, lasting));
    await release(store, soon!, { nextReactor: "recovery", delayMs: 400 });
    await release(store, later!, { nextReactor: "recovery", delayMs: 3_600_000 });
    assert.deepEqual(await store.claim.find(findRequest()), []);
    await elapse(420);
    assert.deepEqual(journalsOf(await store.claim.find(findRequest())), [soon!.journal]);
    await store.intake.signal(tenant, later!.id, { name: "s", value: 1 });
    assert.deepEqual(
      journalsOf(await store.claim.find(findRequest())),
      [later!.journal],
      "a note does not wait for it",
    );
  });

  it("a delay that is no whole number of milliseconds is refused", async () => {
    const { store } = fresh();
    const run = await heldRun(store, {}, claimant(undefined, lasting));
    const before = await everything(store);
    for (const delayMs of [0.5, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      const parked = record("term.ended", { reason: "released", notesTaken: 0, nextReactor: "recovery", delayMs });
      const timer = record("timer.set", { pos: 0, purpose: "sleep", delayMs });
      const gate = record("gate.opened", { pos: 0, name: "g", timeoutMs: delayMs });
      for (const bad of [parked, timer, gate]) {
        await refused("TAPE_BAD_INPUT", store.fenced.append(run.fence, { after: 1, records: [bad] }));
      }
    }
    assert.equal(await everything(store), before);
  });

  it("a stalled run is found with reason stalled", async () => {
    const { store, elapse } = fresh();
    const run = await heldRun(store, {}, claimant(undefined, { ...lasting, maxStallMs: 50 }));
    await elapse(80);
    assert.deepEqual(await store.claim.find(findRequest()), [], "no renewal has been refused for it yet");
    await notRenewed("TAPE_LEASE_STALLED", store, run);
    const [term] = await store.claim.find(findRequest());
    assert.deepEqual([term!.journal, term!.reason], [run.journal, "stalled"]);
  });

  it("an outbox effect has its own lease, found independently of its run", async () => {
    const { store, elapse } = fresh();
    const run = await heldRun(store, {}, claimant(undefined, lasting));
    const { head } = await store.fenced.append(run.fence, { after: 1, records: [outboxed] });
    assert.deepEqual(await store.claim.find(findRequest()), [], "the run is held, and its effect asks for the outbox");
    const who = claimant(undefined, { ...brief, reactor: "outbox" });
    const asks = { nextReactor: "outbox", staleOf: ["outbox"] };
    const [item, ...more] = await store.claim.find(findRequest({ ...asks, claimant: who }));
    assert.deepEqual(
      [item!.kind, item!.run, item!.tenant, item!.reason, item!.head, more.length],
      ["item", run.journal, tenant, "start", 2, 0],
    );
    assert.equal(item!.fence.token, run.fence.token + 1n, "an item's first token is the run's plus one");
    const sent = record("effect.dispatched", { run: run.journal, pos: 0, attempt: 1, sendWithinMs: 1_000 });
    await store.fenced.append(item!.fence, { after: 2, records: [sent] });
    await elapse(pastBrief);
    const [successor] = await store.claim.find(findRequest(asks));
    assert.deepEqual([successor!.journal, successor!.reason, successor!.head], [item!.journal, "recovery", 4]);
    await notRenewed("TAPE_FENCED", store, item!);
    assert.equal((await store.fenced.append(run.fence, { after: head, records: [step(1)] })).head, head + 1);
  });

  it("the agenda lists which reactors have work, and when", async () => {
    const { store, elapse } = fresh();
    const when = async (of = tenant) =>
      new Map((await store.read.agenda(of)).map(({ reactor, dueInMs }) => [reactor ?? "anybody", dueInMs]));
    assert.deepEqual([...(await when()).keys()], []);
    const run = await heldRun(store, {}, claimant(undefined, lasting));
    const held = await when();
    assert.deepEqual([...held.keys()], ["anybody"]);
    assert.ok(held.get("anybody")! > 0 && held.get("anybody")! <= lasting.ttlMs);
    await store.fenced.append(run.fence, { after: 1, records: [outboxed] });
    const timer = record("timer.set", { pos: 1, purpose: "sleep", delayMs: 60_000 });
    await store.fenced.append(run.fence, { after: 2, records: [timer] });
    const [waiting] = await waitingRuns(store, 1);
    const busy = await when();
    assert.deepEqual([...busy.keys()].sort(), ["anybody", "outbox", "recovery", "timers"]);
    assert.deepEqual([busy.get("outbox"), busy.get("recovery")], [0, 0]);
    assert.ok(busy.get("timers")! > 30_000 && busy.get("timers")! <= 60_000);
    assert.deepEqual([...(await when("globex")).keys()], [], "nothing of another tenant's, its timers neither");
    await heldRun(store, {}, claimant(undefined, brief));
    await elapse(pastBrief);
    assert.equal((await when()).get("anybody"), 0);
    const [first] = await store.claim.find(findRequest({ limit: 1, staleOf: [] }));
    assert.equal(first!.journal, waiting!.journal);
    assert.equal((await when()).has("recovery"), false);
    // Released with a delay: queued again, at its time.
    await store.fenced.append(first!.fence, {
      after: first!.head,
      records: [record("term.ended", { reason: "released", notesTaken: 0, nextReactor: "recovery", delayMs: 45_000 })],
    });
    const later = (await when()).get("recovery")!;
    assert.ok(later > 20_000 && later <= 45_000);
  });
};
