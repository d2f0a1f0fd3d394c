import { strict as assert } from "node:assert";
import type { Term } from "../../src/model/lease.ts";
import type { NewRecord } from "../../src/model/records.ts";
import type { FindRequest, RunSpec, Store } from "../../src/store/contract/store.ts";
import { type Cases, claimant, nonce, record, spec, step, tenant, unique } from "./frame.ts";
import { begin, type Holder, lasting, statusOf } from "./holder.ts";

const sleep = (inMs: number, pos = 0): NewRecord => record("timer.set", { pos, purpose: "sleep", delayMs: inMs });
const preload = { withinMs: 60_000, limit: 100 };
/** Due within the preload window, and far enough away that no machine reaches it. */
const within = 30_000;
const beyond = 3_600_000;

async function sleeping(store: Store, inMs: number, workflow = "pay"): Promise<Holder> {
  const run = await begin(store, { workflow });
  await run.write(sleep(inMs));
  await run.release();
  return run;
}

function findAhead(store: Store, more: Partial<Pick<FindRequest, "preload" | "workflows">> = {}): Promise<Term[]> {
  const finder = claimant(undefined, { ...lasting, reactor: "recovery" });
  const plain = { claimant: finder, nextReactor: "recovery", staleOf: [], limit: 100, nonce: nonce(), tenant };
  return store.claim.find({ ...plain, preload, ...more });
}

const journalsOf = (terms: readonly { readonly journal: number }[]): number[] => terms.map(({ journal }) => journal);

/** Large batches: what a store does together must end as if it had been done one by one. */
export const batches: Cases = ({ it }, fresh) => {
  it("a parked run is preloaded once before its timer fires, and the timer stays set", async () => {
    const { store } = fresh();
    const [near, far] = [await sleeping(store, within), await sleeping(store, beyond)];
    assert.deepEqual(await findAhead(store, { preload: { ...preload, withinMs: 0 } }), []);
    assert.deepEqual(await findAhead(store, { preload: { ...preload, limit: 0 } }), []);
    const { claim } = store;
    const finder = claimant(undefined, { ...lasting, reactor: "recovery" });
    const plain = { claimant: finder, nextReactor: "recovery", staleOf: [], limit: 9, nonce: nonce(), tenant };
    assert.deepEqual(await claim.find(plain), [], "nothing is due");
    const [term, ...more] = await findAhead(store);
    assert.deepEqual([term?.journal, term?.preloaded, term?.name, more.length], [near.journal, true, near.id, 0]);
    assert.equal(await statusOf(store, near.id), "RUNNING");
    assert.equal(await statusOf(store, far.id), "WAITING");
    assert.deepEqual(await findAhead(store), [], "it is held");
    assert.deepEqual(
      (await store.read.timers(tenant, { run: near.id })).map(({ status }) => status),
      ["SET"],
    );
    const holder = store.fenced.append(term!.fence, { after: term!.head, records: [step(1)] });
    assert.equal((await holder).head, term!.head + 1, "it is a term like any other");
  });

  it("a run of another workflow, a stuck run and a queued run are not preloaded", async () => {
    const { store } = fresh();
    await sleeping(store, within, "other");
    const stuck = await begin(store, { workflow: "pay" });
    await stuck.write(sleep(within));
    await stuck.write(record("run.stuck", { reason: "an operator is needed" }));
    await stuck.release();
    const noted = await sleeping(store, within);
    await store.intake.signal(tenant, noted.id, { name: "go", value: 1 });
    const terms = await findAhead(store, { workflows: ["pay"] });
    assert.deepEqual(journalsOf(terms), [noted.journal]);
    assert.equal(terms[0]?.preloaded, undefined, "it was due for its note");
  });

  it("one find claims a hundred runs, each with its own token and recorded term", async () => {
    const { store, another } = fresh();
    const runs = await Promise.all(Array.from({ length: 100 }, () => sleeping(store, within)));
    const terms = (await Promise.all([findAhead(store), findAhead(await another())])).flat();
    const sorted = (journals: readonly number[]): number[] => [...journals].sort((a, b) => a - b);
    assert.deepEqual(sorted(journalsOf(terms)), sorted(journalsOf(runs)), "each by one of the two");
    for (const { journal, fence, head, name } of terms.slice(0, 20)) {
      const last = (await store.read.journal(tenant, { journal })).at(-1)!;
      assert.deepEqual([last.seq, last.kind, last.token], [head, "term.started", fence.token]);
      assert.equal(runs.find((run) => run.journal === journal)?.id, name);
      await store.fenced.append(fence, { after: head, records: [step(1)] });
    }
  });

  it("a find repeated with the same nonce returns the same terms", async () => {
    const { store } = fresh();
    await Promise.all(Array.from({ length: 5 }, () => sleeping(store, within)));
    const whose = { nonce: nonce(), claimant: claimant(undefined, { ...lasting, reactor: "recovery" }) };
    const ask = { ...whose, nextReactor: "recovery", staleOf: [], limit: 10, tenant, preload };
    const tokens = (terms: readonly Term[]): string[] => terms.map(({ journal, fence }) => `${journal} ${fence.token}`);
    const first = tokens(await store.claim.find(ask));
    assert.equal(first.length, 5);
    assert.deepEqual(tokens(await store.claim.find(ask)).sort(), first.sort());
  });

  it("two clients fire a hundred timers: each fires once, with its note", async () => {
    const { store, another } = fresh();
    const other = await another();
    const runs = await Promise.all(Array.from({ length: 50 }, () => sleeping(store, 0)));
    const held = await begin(store);
    await held.write(sleep(0), sleep(0, 1), sleep(beyond, 2));
    const ended = await begin(store);
    await ended.write(sleep(0), record("run.decided", { cause: "completed", outcome: 1 }));
    const timers = [...runs, held, ended].map(({ journal }) => ({ run: journal, pos: 0, purpose: "sleep" }));
    timers.push(...[1, 2].map((pos) => ({ run: held.journal, pos, purpose: "sleep" })));
    const fired = await Promise.all(
      [store, other].map((one) => Promise.all(timers.map((timer) => one.intake.fireTimer(tenant, timer)))),
    );
    const times = timers.map((_, k) => fired.filter((results) => results[k]).length);
    assert.deepEqual(times, [...runs.map(() => 1), 1, 0, 1, 0]);
    assert.equal(await statusOf(store, runs[7]!.id), "RUNNABLE");
    assert.equal(await statusOf(store, held.id), "RUNNING");
    for (const run of [runs[0]!, runs[49]!]) {
      const notes = await store.read.journal(tenant, { run: run.id }, { inbox: true });
      assert.deepEqual(
        notes.map(({ seq, kind, data }) => [seq, kind, data]),
        [[1, "timer.fired", { pos: 0, purpose: "sleep" }]],
      );
    }
    assert.equal((await held.view()).notes, 2);
    assert.deepEqual(
      (await store.read.journal(tenant, { run: held.id }, { inbox: true })).map(({ seq }) => seq),
      [1, 2],
    );
  });

  it("one call creates three thousand runs once each, beside other callers", async () => {
    const { store } = fresh();
    const many = (count: number, more: Partial<RunSpec> = {}) => Array.from({ length: count }, () => spec(more));
    const verdicts = await Promise.all([
      store.intake.createRuns(tenant, many(3_000)),
      store.intake.createRuns("globex", many(5)),
      store.once({ tenant, key: unique("many"), hash: "h" }).createRuns(tenant, many(5)),
      store.intake.createRuns("globex", many(5, { budget: { usd: 1 } })), // each in its own transaction
    ]);
    const journals = verdicts.flat().map((verdict) => (verdict.ok && verdict.fresh ? verdict.journal : 0));
    assert.equal(journals.length, 3_015);
    assert.ok(!journals.includes(0), "all were created");
    assert.equal(new Set(journals).size, journals.length);
  });

  it("appends to many journals at once leave each journal complete and in order", async () => {
    const { store } = fresh();
    const runs = await Promise.all(Array.from({ length: 20 }, () => begin(store)));
    const stale = await begin(store);
    await stale.release();
    const writes = runs.map((run, k) => run.write(...Array.from({ length: 1 + (k % 4) }, (_, pos) => step(pos))));
    const refused = stale.refused("TAPE_FENCED", step(0), step(1));
    await Promise.all([...writes, refused]);
    for (const [k, run] of runs.entries()) {
      const facts = (await store.read.journal(tenant, { run: run.id })).filter(({ kind }) => kind === "step.done");
      assert.deepEqual(
        facts.map(({ data }) => (data as { pos: number }).pos),
        [0, 1, 2, 3].slice(0, 1 + (k % 4)),
      );
      assert.equal(facts.at(-1)?.seq, run.head);
    }
  });
};
