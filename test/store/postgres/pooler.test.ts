import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { Store, WakeHint } from "../../../src/store/contract/store.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import {
  acquired,
  claimant,
  forged,
  heldRun,
  record,
  refused,
  request,
  step,
  tenant,
  unique,
} from "../../../testkit/conformance/frame.ts";
import { dropDatabase, freshDatabase } from "../../postgres/database.ts";
import { type Pooler, startPooler } from "../../postgres/pooler.ts";
import { adminOf, codeOf, until } from "./scene.ts";

/** Behind a transaction pooler SET, LISTEN and named statements last no longer than a transaction. */
describe("behind a transaction pooler", () => {
  let direct: string;
  let pooler: Pooler;
  let store: Store;
  let rival: Store;

  beforeAll(async () => {
    direct = await freshDatabase(inject("postgres18"));
    pooler = await startPooler(direct);
    const url = `${pooler.url}?pooler=transaction`;
    [store, rival] = await Promise.all([openPostgres({ url }), openPostgres({ url })]);
  });
  afterAll(async () => {
    await Promise.all([store.close(), rival.close()]);
    await pooler.close();
    await dropDatabase(direct);
  });
  const held = () => heldRun(store, {}, claimant(undefined, { ttlMs: 60_000 }));

  it("a setting does not outlive its transaction, and many clients share two connections", async () => {
    const client = new pg.Client(pooler.url);
    await client.connect();
    await client.query("set lock_timeout = 1234");
    expect((await client.query("show lock_timeout")).rows).toEqual([{ lock_timeout: "0" }]);
    const inside = await client.query("begin; set local lock_timeout = 77; show lock_timeout; commit");
    expect((inside as unknown as pg.QueryResult[])[2]?.rows).toEqual([{ lock_timeout: "77ms" }]);
    const named = { name: "twice", text: "select 1 as one" };
    await client.query(named);
    expect(await codeOf(client.query(named))).toBe("26000");
    await client.end();
    const admin = await adminOf(direct);
    const { rows } = await admin.query(
      "select count(*)::int as n from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
    );
    await admin.end();
    expect(rows[0].n).toBeLessThanOrEqual(2);
    expect((await store.read.settings()).facts).toMatchObject({ pooler: "transaction", synchronousCommit: "on" });
  });

  it("groups, transactions, renewals, takeovers and reads work as usual", async () => {
    const before = pooler.transactions();
    const runs = await Promise.all(Array.from({ length: 100 }, held));
    const verdicts = await store.fenced.appendAll(
      runs.map((run, k) => [k === 7 ? forged(run, { token: 9n }) : run.fence, { after: 1, records: [step(0)] }]),
    );
    expect(verdicts.filter((verdict) => verdict.ok)).toHaveLength(99);
    expect(verdicts[7]).toMatchObject({ ok: false, error: { code: "TAPE_FENCED" } });
    const beats = await store.claim.renew(runs.slice(0, 50).map(({ fence }) => ({ fence, progress: 1 })));
    expect(beats.every((beat) => beat.ok)).toBe(true);
    const [run] = runs;
    const entry = { after: 2, records: [record("gate.opened", { pos: 1, name: "g" }), step(2)] };
    expect((await store.fenced.append(run!.fence, entry)).head).toBe(4);
    const successor = await acquired(
      rival,
      request({ run: run!.id }, { expect: "any", by: "ann", auditReason: "it hangs" }),
    );
    expect(successor.head).toBe(5);
    await refused("TAPE_FENCED", store.fenced.append(run!.fence, { after: 4, records: [step(3)] }));
    await rival.fenced.append(successor.fence, {
      after: 5,
      records: [record("term.ended", { reason: "released", notesTaken: 0 })],
    });
    const name = { name: unique("lease") };
    const terms = await Promise.all([store, rival, store].map((s) => s.claim.acquire(tenant, request(name))));
    expect(terms.filter((term) => term.ok)).toHaveLength(1);
    expect(pooler.transactions() - before).toBeGreaterThan(20);
    await until(async () => {
      const { records } = await rival.read.feed(undefined, 1_000, tenant);
      return records.filter(({ kind }) => kind === "step.done").length === 100;
    }, "the feed does not deliver");
  });

  it("values are compared and set, and hints arrive over a separate address", async () => {
    const url = `${pooler.url}?pooler=transaction&listen_url=${encodeURIComponent(direct)}`;
    const listening = await openPostgres({ url });
    const wakes: WakeHint[] = [];
    const stop = listening.onWake((wake) => wakes.push(wake));
    await until(async () => wakes.length > 0, "it does not listen"); // the first hint to check everything
    const key = unique("key");
    const puts = [store, rival].map((s) => codeOf(s.intake.putValue(tenant, key, 1, "must_create")));
    expect((await Promise.all(puts)).sort()).toEqual(["TAPE_VERSION_CONFLICT", "done"]);
    await until(async () => wakes.some((wake) => wake.of === "value" && wake.key === key), "no hint arrives");
    stop();
    await listening.close();
  });

  it("a takeover of a lease that a transaction holds does not starve", async () => {
    const run = await held();
    const hand = new pg.Client(direct);
    await hand.connect();
    await hand.query("begin");
    await hand.query("select 1 from tape.leases where journal = $1 for key share", [run.journal]);
    const taking = acquired(rival, request({ run: run.id }, { expect: "any", by: "ann", auditReason: "it hangs" }));
    await until(async () => (await store.read.lease(tenant, { run: run.id }))?.state === "DOOMED", "not announced");
    await hand.query("commit");
    expect((await taking).fence.token).toBe(run.fence.token + 1n);
    await hand.end();
  });
});

describe("without the setting", () => {
  it.each(["refuse", "forget"] as const)(
    "a pooler that would %s our settings is noticed when opening",
    async (options) => {
      const direct = await freshDatabase(inject("postgres18"));
      const pooler = await startPooler(direct, { options });
      try {
        const error = await openPostgres({ url: pooler.url }).catch((e: Error) => e);
        expect(error).toMatchObject({ message: expect.stringContaining("pooler=transaction") });
      } finally {
        await pooler.close();
        await dropDatabase(direct);
      }
    },
  );
});
