import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { Term } from "../../../src/model/lease.ts";
import type { Store } from "../../../src/store/contract/store.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import {
  acquired,
  claimant,
  heldRun,
  nonce,
  record,
  request,
  spec,
  step,
  tenant,
  unique,
} from "../../../testkit/conformance/frame.ts";
import { type PostgresProxy, startProxy } from "../../postgres/proxy.ts";
import { codeOf, type Scene, sceneOn, until } from "./scene.ts";

/**
 * The answer to a write is lost on its way, after the server has carried it out or before it got the request. The caller
 * gets its verdict all the same, nothing is written twice, and nobody needs a new term.
 */
const lasting = { ttlMs: 60_000 };
const held = (store: Store) => heldRun(store, {}, claimant(undefined, lasting));

let scene: Scene;
let proxy: PostgresProxy;
let store: Store;

beforeAll(async () => {
  scene = await sceneOn(inject("postgres18"));
  proxy = await startProxy(scene.url);
  store = await openPostgres({ url: proxy.url });
});
afterAll(async () => {
  await store.close();
  await proxy.close();
  await scene.close();
});

const cut = (when: "after" | "before", match: RegExp): Promise<void> =>
  when === "after" ? proxy.cutAfterRequest(match) : proxy.cutBeforeRequest(match);
/** A named statement, in the message that names it. */
const statement = (name: string): RegExp => new RegExp(`tape\\.${name.replaceAll(".", "\\.")}\\0`);
const commit = /^commit\0$/;

const lengthOf = async (run: { journal: number }): Promise<number> =>
  (await scene.store.read.journal(tenant, { journal: run.journal })).length;

describe.each(["after", "before"] as const)("cut %s the request reached the server", (when) => {
  it("[INV-7] a whole group of 100 appends is resolved, once, under the same terms", async () => {
    const runs = await Promise.all(Array.from({ length: 100 }, () => held(store)));
    const cuts = Array.from({ length: 2 }, () => cut(when, statement("append_many"))); // two batches side by side
    const verdicts = await store.fenced.appendAll(runs.map((run) => [run.fence, { after: 1, records: [step(0)] }]));
    await Promise.all(cuts);
    expect(verdicts.map((verdict) => (verdict.ok ? verdict.head : verdict.error.code))).toEqual(runs.map(() => 2));
    expect(new Set(await Promise.all(runs.map(lengthOf)))).toEqual(new Set([2]));
    const next = await store.fenced.appendAll(runs.map((run) => [run.fence, { after: 2, records: [step(1)] }]));
    expect(next.every((verdict) => verdict.ok && verdict.head === 3)).toBe(true);
    const terms = await Promise.all(runs.map((run) => scene.store.read.terms(tenant, { run: run.id })));
    expect(terms.every((ledger) => ledger.length === 1)).toBe(true);
  });

  it("in a lost group one is stale: it is refused, the others are written", async () => {
    const [stale, ...runs] = await Promise.all(Array.from({ length: 10 }, () => held(store)));
    const by = { expect: "any", by: "ann", auditReason: "it hangs" } as const;
    await acquired(scene.store, request({ run: stale!.id }, by));
    const bitten = cut(when, statement("append_many"));
    const verdicts = await store.fenced.appendAll(
      [stale!, ...runs].map((run) => [run.fence, { after: 1, records: [step(0)] }]),
    );
    await bitten;
    const [first, ...others] = verdicts.map((verdict) => (verdict.ok ? verdict.head : verdict.error.code));
    expect(first).toBe("TAPE_FENCED");
    expect(others).toEqual(runs.map(() => 2));
  });

  type Case = readonly [
    what: string,
    match: RegExp,
    prepare: () => Promise<{ act(): Promise<unknown>; check(): Promise<void> }>,
  ];
  const cases: readonly Case[] = [
    [
      "a run is created",
      statement("create_many"),
      async () => {
        const run = spec();
        const first = { ...claimant(undefined, lasting), nonce: nonce() };
        let term: Term | undefined;
        return {
          act: async () => {
            const [created] = await store.intake.createRuns(tenant, [run], first);
            expect(created).toMatchObject({ ok: true, fresh: true });
            term = created!.ok ? created!.term : undefined;
          },
          check: async () => {
            expect(await lengthOf(term!)).toBe(1);
            await store.fenced.append(term!.fence, { after: 1, records: [step(0)] });
          },
        };
      },
    ],
    [
      "a run with a budget is created, in a transaction",
      commit,
      async () => {
        const run = spec({ budget: { usd: 5 } });
        return {
          act: async () => {
            const [created] = await store.intake.createRuns(tenant, [run]);
            expect(created).toMatchObject({ ok: true, fresh: true });
          },
          check: async () => {
            expect(await scene.store.read.budgets(tenant, run.id)).toHaveLength(1);
            expect((await store.intake.createRuns(tenant, [run]))[0]).toMatchObject({ fresh: false });
          },
        };
      },
    ],
    [
      "several records with a side row are appended",
      commit,
      async () => {
        const run = await held(store);
        const records = [step(0), record("gate.opened", { pos: 1, name: "g" }), step(2)];
        return {
          act: async () => expect((await store.fenced.append(run.fence, { after: 1, records })).head).toBe(4),
          check: async () => {
            expect(await lengthOf(run)).toBe(4);
            expect(await scene.store.read.gates(tenant, { run: run.id })).toHaveLength(1);
          },
        };
      },
    ],
    [
      "a term is ended",
      statement("park_many"),
      async () => {
        const run = await held(store);
        const records = [record("term.ended", { reason: "released", notesTaken: 0 })];
        return {
          act: async () => expect((await store.fenced.append(run.fence, { after: 1, records })).head).toBe(2),
          check: async () => {
            expect(await lengthOf(run)).toBe(2);
            const lease = await scene.store.read.lease(tenant, { run: run.id });
            expect(lease).toMatchObject({ state: "FREE", token: run.fence.token + 1n });
          },
        };
      },
    ],
    [
      "a run is ended",
      statement("end_many"),
      async () => {
        const run = await held(store);
        const records = [record("run.ended", { status: "COMPLETED", notesTaken: 0, outcome: 42 })];
        return {
          act: async () => expect((await store.fenced.append(run.fence, { after: 1, records })).head).toBe(2),
          check: async () => {
            expect(await lengthOf(run)).toBe(2);
            expect(await scene.store.read.run(tenant, run.id)).toMatchObject({ status: "COMPLETED", outcome: 42 });
          },
        };
      },
    ],
    [
      "a lease is acquired; asked again with the same nonce, it is the same term",
      commit,
      async () => {
        const ask = request({ name: unique("lost") }, { claimant: claimant(undefined, lasting) });
        let term: Term | undefined;
        return {
          act: async () => {
            term = await acquired(store, ask);
            expect(term.fence.token).toBe(1n);
          },
          check: async () => {
            expect(await acquired(scene.store, ask)).toEqual(term);
            expect(await scene.store.read.terms(tenant, ask.target)).toHaveLength(1);
          },
        };
      },
    ],
    [
      "a value is written",
      commit,
      async () => {
        const key = unique("key");
        return {
          act: async () => expect((await store.intake.putValue(tenant, key, "v", "must_create")).version).toBe(1),
          check: async () => {
            expect(await scene.store.read.valueHistory(tenant, key, 0)).toHaveLength(1);
          },
        };
      },
    ],
    [
      "a signal is sent",
      commit,
      async () => {
        const run = await held(store);
        return {
          act: async () =>
            expect(await store.intake.signal(tenant, run.id, { name: "s", value: 1 })).toEqual({
              n: 1,
              duplicate: false,
            }),
          check: async () => {
            expect(await scene.store.read.journal(tenant, { run: run.id }, { inbox: true })).toHaveLength(1);
          },
        };
      },
    ],
    [
      "leases are renewed",
      statement("renew_many"),
      async () => {
        const run = await held(store);
        return {
          act: async () =>
            expect(await store.claim.renew([{ fence: run.fence, progress: 3 }])).toMatchObject([{ ok: true }]),
          check: async () => {
            expect(await scene.store.read.lease(tenant, { run: run.id })).toMatchObject({ progress: 3 });
          },
        };
      },
    ],
  ];

  it.each(cases)("%s", async (_, match, prepare) => {
    const { act, check } = await prepare();
    const bitten = cut(when, match);
    await act();
    await bitten;
    await check();
  });
});

describe("lost twice", () => {
  it("the question after the first loss is lost as well: its own mark is not taken for the write", async () => {
    const key = unique("key");
    const cuts = [cut("before", commit), cut("after", statement("witness.settle"))];
    expect((await store.intake.putValue(tenant, key, "v", "must_create")).version).toBe(1);
    await Promise.all(cuts);
    expect(await scene.store.read.value(tenant, key)).toMatchObject({ version: 1, value: "v" });
  });

  it("likewise for a group", async () => {
    const run = await held(store);
    const cuts = [cut("before", statement("append_many")), cut("after", statement("witness.settle"))];
    expect((await store.fenced.append(run.fence, { after: 1, records: [step(0)] })).head).toBe(2);
    await Promise.all(cuts);
    expect(await lengthOf(run)).toBe(2);
  });

  it("a write that arrives after the question was answered can no longer happen", async () => {
    const run = await held(store);
    const hand = await scene.hand();
    const id = nonce();
    expect((await hand.run("witness.settle", { id })).rows).toEqual([{ void: true }]);
    const params = {
      id,
      journals: `{${run.journal}}`,
      tenants: `{${run.fence.tenant}}`,
      tokens: `{${run.fence.token}}`,
      nonces: `{${run.fence.nonce}}`,
      afters: "{1}",
      seqs: "{2}",
      kinds: "step.done",
      bodies: "x",
    };
    expect(await codeOf(hand.run("append_many", params))).toBe("23505");
    expect(await lengthOf(run)).toBe(1);
  });
});

describe("the database goes away", () => {
  it("for good, between a COMMIT and its answer: nobody can tell, and the caller is told so", async () => {
    const gate = await startProxy(scene.url);
    const lost = await openPostgres({ url: `${gate.url}?transaction_bound_ms=300` });
    const ask = request({ name: unique("lost") }, { claimant: claimant(undefined, lasting) });
    const bitten = gate.cutAfterRequest(commit);
    const code = codeOf(lost.claim.acquire(tenant, ask));
    await bitten;
    await gate.close();
    expect(await code).toBe("TAPE_OUTCOME_UNKNOWN");
    // The advice of that error: acquire, then read. With the same nonce it is the same term.
    const term = await acquired(scene.store, ask);
    expect([term.fence.token, term.fence.nonce]).toEqual([1n, ask.nonce]);
    expect(await scene.store.read.terms(tenant, ask.target)).toHaveLength(1);
    await lost.close();
  });

  it.each(["refuses", "is silent"] as const)("and %s: every call ends, and nothing was written", async (how) => {
    const gate = await startProxy(scene.url);
    const lost = await openPostgres({ url: `${gate.url}?transaction_bound_ms=200` });
    const run = await held(lost);
    const key = unique("key");
    const records = [step(0), record("gate.opened", { pos: 1, name: "g" })];
    if (how === "refuses") await gate.close();
    else gate.hang(true);
    const calls = {
      append: lost.fenced.append(run.fence, { after: 1, records: [step(0)] }),
      transaction: lost.fenced.append(run.fence, { after: 1, records }),
      create: lost.intake.createRuns(tenant, [spec()]).then(([verdict]) => {
        if (!verdict!.ok) throw verdict!.error;
      }),
      acquire: lost.claim.acquire(tenant, request({ name: key })),
      value: lost.intake.putValue(tenant, key, 1, "must_create"),
      signal: lost.intake.signal(tenant, run.id, { name: "s", value: 1 }),
      read: lost.read.run(tenant, run.id),
      feed: lost.read.feed(undefined),
      settings: lost.read.settings(),
    };
    const codes = await Promise.all(
      Object.entries(calls).map(async ([name, work]) => [name, await codeOf(work)] as const),
    );
    const allowed = how === "refuses" ? ["TAPE_STORE_UNREACHABLE"] : ["TAPE_STORE_UNREACHABLE", "TAPE_OUTCOME_UNKNOWN"];
    for (const [name, code] of codes) expect(allowed, `${name}: ${code}`).toContain(code);
    if (how === "is silent") await gate.close();
    expect(await lengthOf(run)).toBe(1);
    expect(await scene.store.read.value(tenant, key)).toBeUndefined();
    await lost.close();
  });

  it("and comes back: all server processes are ended in the midst of 200 appends, each is stored once", async () => {
    const other = await scene.open();
    const runs = await Promise.all(Array.from({ length: 200 }, () => held(other)));
    for (let round = 0; round < 2; round++) {
      // The lock keeps the batches on the server until we know that they are there.
      await scene.admin.query("begin; lock table tape.records in share mode");
      const writing = other.fenced.appendAll(
        runs.map((run) => [run.fence, { after: 1 + round, records: [step(round)] }]),
      );
      await until(async () => (await scene.waiting()).length >= 4, "the batches do not arrive");
      const { rowCount } = await scene.admin.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'durable-tape' and datname = current_database()",
      );
      expect(rowCount).toBeGreaterThanOrEqual(4);
      await scene.admin.query("commit");
      const verdicts = await writing;
      expect(verdicts.map((v) => (v.ok ? v.head : v.error.code))).toEqual(runs.map(() => 2 + round));
    }
    const { rows } = await scene.admin.query(
      "select count(*)::int as all, count(distinct journal)::int as journals, max(seq)::int as head from tape.records where journal = any($1)",
      [runs.map((run) => run.journal)],
    );
    expect(rows[0]).toEqual({ all: 600, journals: 200, head: 3 });
  });
});
