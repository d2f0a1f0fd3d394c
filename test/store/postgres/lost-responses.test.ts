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
import { begin, childEnded, startChild } from "../../../testkit/conformance/holder.ts";
import { type PostgresProxy, startProxy } from "../../postgres/proxy.ts";
import { codeOf, type Scene, sceneOn, until } from "./scene.ts";

/**
 * The response to a write is lost, either after the server has executed it or before the request arrived. The caller
 * gets its result all the same, nothing is written twice, and no caller needs a new term.
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
  it("[INV-7] resolves a whole group of 100 appends, once, under the same terms", async () => {
    const runs = await Promise.all(Array.from({ length: 100 }, () => held(store)));
    const cuts = Array.from({ length: 2 }, () => cut(when, statement("append_many"))); // two batches at once
    const verdicts = await store.fenced.appendAll(runs.map((run) => [run.fence, { after: 1, records: [step(0)] }]));
    await Promise.all(cuts);
    expect(verdicts.map((verdict) => (verdict.ok ? verdict.head : verdict.error.code))).toEqual(runs.map(() => 2));
    expect(new Set(await Promise.all(runs.map(lengthOf)))).toEqual(new Set([2]));
    const next = await store.fenced.appendAll(runs.map((run) => [run.fence, { after: 2, records: [step(1)] }]));
    expect(next.every((verdict) => verdict.ok && verdict.head === 3)).toBe(true);
    const terms = await Promise.all(runs.map((run) => scene.store.read.terms(tenant, { run: run.id })));
    expect(terms.every((ledger) => ledger.length === 1)).toBe(true);
  });

  it("[INV-7] resolves an append that is alone in its batch, once", async () => {
    const run = await held(store);
    const bitten = cut(when, statement("append_one"));
    expect((await store.fenced.append(run.fence, { after: 1, records: [step(0)] })).head).toBe(2);
    await bitten;
    expect((await store.fenced.append(run.fence, { after: 2, records: [step(1)] })).head).toBe(3);
    expect(await lengthOf(run)).toBe(3);
  });

  it("[INV-7] resolves a whole group of chunks, once", async () => {
    const runs = await Promise.all(Array.from({ length: 20 }, () => held(store)));
    const write = (from: number) =>
      store.fenced.appendChunks(
        runs.map(({ fence }) => {
          const chunks = ["a", "b"].map((value) => ({ part: 0, value }));
          return [fence, { streams: [{ name: "tokens", from, chunks }] }] as const;
        }),
      );
    const bitten = cut(when, statement("stream_many"));
    expect((await write(0)).every(({ ok }) => ok)).toBe(true);
    await bitten;
    expect((await write(2)).every(({ ok }) => ok)).toBe(true);
    const pages = await scene.store.read.chunks(
      tenant,
      runs.map(({ id }) => ({ run: id, stream: "tokens", from: 0 })),
    );
    expect(new Set(pages.map((page) => page?.chunks.map(({ offset }) => offset).join()))).toEqual(new Set(["0,1,2,3"]));
  });

  it("rejects the stale item of a lost group and writes the others", async () => {
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
    prepare: () => Promise<{ call(): Promise<unknown>; check(): Promise<void> }>,
  ];
  const cases: readonly Case[] = [
    [
      "creates a run",
      statement("create_many"),
      async () => {
        const run = spec();
        const first = { ...claimant(undefined, lasting), nonce: nonce() };
        let term: Term | undefined;
        return {
          call: async () => {
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
      "creates a run with a budget, in a transaction",
      commit,
      async () => {
        const run = spec({ budget: { usd: 5 } });
        return {
          call: async () => {
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
      "appends several records with a side row",
      commit,
      async () => {
        const run = await held(store);
        const records = [step(0), record("gate.opened", { pos: 1, name: "g" }), step(2)];
        return {
          call: async () => expect((await store.fenced.append(run.fence, { after: 1, records })).head).toBe(4),
          check: async () => {
            expect(await lengthOf(run)).toBe(4);
            expect(await scene.store.read.gates(tenant, { run: run.id })).toHaveLength(1);
          },
        };
      },
    ],
    [
      "ends a term",
      statement("park_many"),
      async () => {
        const run = await held(store);
        const records = [record("term.ended", { reason: "released", notesTaken: 0 })];
        return {
          call: async () => expect((await store.fenced.append(run.fence, { after: 1, records })).head).toBe(2),
          check: async () => {
            expect(await lengthOf(run)).toBe(2);
            const lease = await scene.store.read.lease(tenant, { run: run.id });
            expect(lease).toMatchObject({ state: "FREE", token: run.fence.token + 1n });
          },
        };
      },
    ],
    [
      "ends a run",
      statement("end_many"),
      async () => {
        const run = await held(store);
        const records = [record("run.ended", { status: "COMPLETED", notesTaken: 0, outcome: 42 })];
        return {
          call: async () => expect((await store.fenced.append(run.fence, { after: 1, records })).head).toBe(2),
          check: async () => {
            expect(await lengthOf(run)).toBe(2);
            expect(await scene.store.read.run(tenant, run.id)).toMatchObject({ status: "COMPLETED", outcome: 42 });
          },
        };
      },
    ],
    [
      "starts children",
      statement("spawn_many"),
      async () => {
        const run = await held(store);
        const ids = [unique("child"), unique("child")];
        const records = ids.map((id, k) =>
          record("child.started", { pos: k + 1, id, workflow: "w", input: k, inputHash: "h" }),
        );
        return {
          call: async () => expect((await store.fenced.append(run.fence, { after: 1, records })).head).toBe(3),
          check: async () => {
            expect(await lengthOf(run)).toBe(3);
            for (const id of ids)
              expect(await scene.store.read.run(tenant, id)).toMatchObject({ status: "RUNNABLE", parent: run.journal });
          },
        };
      },
    ],
    [
      "ends a child, with one note",
      statement("end_many.children"),
      async () => {
        const parent = await begin(store);
        const child = await startChild(parent, 1, unique("child"));
        return {
          call: async () => void (await childEnded(child, parent, 1, "COMPLETED", { outcome: 42 })),
          check: async () => {
            expect(await scene.store.read.run(tenant, child.id)).toMatchObject({ status: "COMPLETED", outcome: 42 });
            const notes = await scene.store.read.journal(tenant, { journal: parent.journal }, { inbox: true });
            expect(notes.map(({ kind }) => kind)).toEqual(["child.settled"]);
          },
        };
      },
    ],
    [
      "acquires a lease; repeated with the same nonce, it is the same term",
      commit,
      async () => {
        const acquire = request({ name: unique("lost") }, { claimant: claimant(undefined, lasting) });
        let term: Term | undefined;
        return {
          call: async () => {
            term = await acquired(store, acquire);
            expect(term.fence.token).toBe(1n);
          },
          check: async () => {
            expect(await acquired(scene.store, acquire)).toEqual(term);
            expect(await scene.store.read.terms(tenant, acquire.target)).toHaveLength(1);
          },
        };
      },
    ],
    [
      "writes a value",
      commit,
      async () => {
        const key = unique("key");
        return {
          call: async () => expect((await store.intake.putValue(tenant, key, "v", "must_create")).version).toBe(1),
          check: async () => {
            expect(await scene.store.read.valueHistory(tenant, key, 0)).toHaveLength(1);
          },
        };
      },
    ],
    [
      "sends a signal",
      commit,
      async () => {
        const run = await held(store);
        return {
          call: async () =>
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
      "renews leases",
      statement("renew_many"),
      async () => {
        const run = await held(store);
        return {
          call: async () =>
            expect(await store.claim.renew([{ fence: run.fence, progress: 3 }])).toMatchObject([{ ok: true }]),
          check: async () => {
            expect(await scene.store.read.lease(tenant, { run: run.id })).toMatchObject({ progress: 3 });
          },
        };
      },
    ],
  ];

  it.each(cases)("%s", async (_, match, prepare) => {
    const { call, check } = await prepare();
    const bitten = cut(when, match);
    await call();
    await bitten;
    await check();
  });
});

describe("lost twice", () => {
  it("does not mistake its own mark for the write if the response to the check is lost, too", async () => {
    const key = unique("key");
    const cuts = [cut("before", commit), cut("after", statement("witness.settle"))];
    expect((await store.intake.putValue(tenant, key, "v", "must_create")).version).toBe(1);
    await Promise.all(cuts);
    expect(await scene.store.read.value(tenant, key)).toMatchObject({ version: 1, value: "v" });
  });

  it.each([
    ["append_one", 1],
    ["append_many", 2],
  ] as const)("likewise for %s", async (name, count) => {
    const runs = await Promise.all(Array.from({ length: count }, () => held(store)));
    const cuts = [cut("before", statement(name)), cut("after", statement("witness.settle"))];
    const verdicts = await store.fenced.appendAll(runs.map((run) => [run.fence, { after: 1, records: [step(0)] }]));
    expect(verdicts).toMatchObject(runs.map(() => ({ ok: true, head: 2 })));
    await Promise.all(cuts);
    expect(await Promise.all(runs.map(lengthOf))).toEqual(runs.map(() => 2));
  });

  it("a write that arrives after the check can no longer happen", async () => {
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
    const { tenant: owner, journal, token, nonce: own } = run.fence;
    const alone = { tenant: owner, journal, token, nonce: own, after: 1, seq: 2, kind: "step.done", body: "x", id };
    expect(await codeOf(hand.run("append_one", alone))).toBe("23505");
    expect(await lengthOf(run)).toBe(1);
  });
});

describe("the database fails", () => {
  it("permanently, between a COMMIT and its response: the caller gets TAPE_OUTCOME_UNKNOWN", async () => {
    const gate = await startProxy(scene.url);
    const lost = await openPostgres({ url: `${gate.url}?transaction_bound_ms=300` });
    const acquire = request({ name: unique("lost") }, { claimant: claimant(undefined, lasting) });
    const bitten = gate.cutAfterRequest(commit);
    const code = codeOf(lost.claim.acquire(tenant, acquire));
    await bitten;
    await gate.close();
    expect(await code).toBe("TAPE_OUTCOME_UNKNOWN");
    // The advice of that error: acquire, then read. With the same nonce it is the same term.
    const term = await acquired(scene.store, acquire);
    expect([term.fence.token, term.fence.nonce]).toEqual([1n, acquire.nonce]);
    expect(await scene.store.read.terms(tenant, acquire.target)).toHaveLength(1);
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

  it("and recovers: all server processes are ended during 200 appends, each is stored once", async () => {
    const other = await scene.open();
    const runs = await Promise.all(Array.from({ length: 200 }, () => held(other)));
    for (let round = 0; round < 2; round++) {
      // The lock keeps the batches on the server until we know that they have arrived.
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
