import type pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { TapeError } from "../../../src/model/errors.ts";
import type { Fence } from "../../../src/model/fence.ts";
import { joinedTexts } from "../../../src/store/postgres/arrays.ts";
import { forged, heldRun, nonce, step } from "../../../testkit/conformance/frame.ts";
import {
  adminOf,
  codeOf,
  fenced,
  impatiently,
  lockTimeout,
  type Scene,
  sceneOn,
  stepAt,
  taking,
  until,
} from "./scene.ts";

/**
 * Why the fence is as it is. Every simpler form is shown to fail here, on the oldest and newest supported versions, so
 * that ours is not simplified. Ours is shown to hold, on scratch tables and with the store's own statements.
 */
describe.each(["postgres14", "postgres18"] as const)("%s", (server) => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await sceneOn(inject(server));
  });
  afterAll(() => scene.close());

  describe("forms of the fence on scratch tables", () => {
    let holder: pg.Client;
    let rival: pg.Client;
    let heart: pg.Client;
    beforeAll(async () => {
      [holder, rival, heart] = await Promise.all([adminOf(scene.url), adminOf(scene.url), adminOf(scene.url)]);
    });
    afterAll(async () => {
      await Promise.all([holder, rival, heart].map((client) => client.end()));
    });

    /** One lease under token 1, held by "holder", and a table of what was written under which token. */
    async function fresh(index = ""): Promise<void> {
      await rival.query(`
      drop table if exists lease, written;
      create table lease(name text primary key, token bigint not null, owner text, expires_at timestamptz);
      create table written(token bigint);
      insert into lease values ('x', 1, 'holder', now());
      ${index}`);
    }
    const takeover = "update lease set token = token + 1, owner = 'rival' where name = 'x' and token = 1";
    const heartbeat = "update lease set expires_at = now() where name = 'x' and token = 1";
    const fencedBy = (lock: string) => `
    with f as materialized (select 1 from lease where name = 'x' and token = 1 ${lock})
    insert into written select 1 from f`;
    const unlocked = "insert into written select 1 where exists (select 1 from lease where name = 'x' and token = 1)";
    const count = async (work: Promise<pg.QueryResult>) => (await work).rowCount;
    const state = async () => {
      const { rows } = await rival.query(
        "select (select token::int from lease), array(select token::int from written) as written",
      );
      return rows[0];
    };
    const gives = (client: pg.Client, text: string) =>
      impatiently({ sql: (t) => client.query(t) }, () => client.query(text));

    it.each(["read committed", "repeatable read", "serializable"])(
      "unlocked, at %s: a stale write commits after the takeover",
      async (isolation) => {
        await fresh();
        await holder.query(`begin isolation level ${isolation}`);
        const early = isolation === "read committed";
        // At the higher levels the snapshot is what is stale: the write itself may even come after the takeover.
        if (early) expect(await count(holder.query(unlocked))).toBe(1);
        else await holder.query("select * from lease");
        expect(await count(rival.query(takeover))).toBe(1);
        expect(await state()).toEqual({ token: 2, written: [] });
        if (!early) expect(await count(holder.query(unlocked))).toBe(1);
        expect(await codeOf(holder.query("commit"))).toBe("done");
        expect(await state()).toEqual({ token: 2, written: [1] });
      },
    );

    it("FOR SHARE is safe, but it locks out the holder's own heartbeat", async () => {
      await fresh("create unique index on lease(name, token)");
      await holder.query("begin");
      expect(await count(holder.query(fencedBy("for share")))).toBe(1);
      expect(await gives(rival, takeover)).toBe(lockTimeout);
      expect(await gives(heart, heartbeat)).toBe(lockTimeout);
      await holder.query("commit");
    });

    it.each([
      ["no index on the token", ""],
      ["a partial one", "create unique index on lease(name, token) where owner is not null"],
      ["one over an expression", "create unique index on lease(name, (token + 0))"],
      ["the token only included", "create unique index on lease(name) include (token)"],
      ["one that is not unique", "create index on lease(name, token)"],
    ])("FOR KEY SHARE with %s: the takeover goes through an open guarded transaction", async (_, index) => {
      await fresh(index);
      await holder.query("begin");
      expect(await count(holder.query(fencedBy("for key share")))).toBe(1);
      expect(await gives(rival, takeover)).toBe("done");
      await holder.query("commit");
      expect(await state()).toEqual({ token: 2, written: [1] });
    });

    describe("FOR KEY SHARE with a unique index on (name, token)", () => {
      const index = "create unique index on lease(name, token)";

      it("heartbeats pass, and a takeover waits and finds the holder's last write", async () => {
        await fresh(index);
        await holder.query("begin");
        expect(await count(holder.query(fencedBy("for key share")))).toBe(1);
        expect(await gives(heart, heartbeat)).toBe("done");
        expect(await gives(rival, takeover)).toBe(lockTimeout);
        await holder.query("commit");
        expect(await count(rival.query(takeover))).toBe(1);
        expect(await count(holder.query(fencedBy("for key share")))).toBe(0);
        expect(await state()).toEqual({ token: 2, written: [1] });
      });

      it("a writer that had to wait for a takeover re-evaluates to no row", async () => {
        await fresh(index);
        await rival.query("begin");
        await rival.query(takeover);
        const late = count(holder.query(fencedBy("for key share")));
        await until(async () => {
          const { rows } = await heart.query(
            "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
          );
          return rows.length > 0;
        }, "the writer does not wait");
        await rival.query("commit");
        expect(await late).toBe(0);
        expect(await state()).toEqual({ token: 2, written: [] });
      });

      it("a takeover that is rolled back lets the waiting writer in", async () => {
        await fresh(index);
        await rival.query("begin");
        await rival.query(takeover);
        const late = count(holder.query(fencedBy("for key share")));
        await rival.query("rollback");
        expect(await late).toBe(1);
      });

      it("a snapshot from before the takeover is rejected", async () => {
        await fresh(index);
        await holder.query("begin isolation level repeatable read");
        await holder.query("select 1 from written");
        await rival.query(takeover);
        expect(await codeOf(holder.query(fencedBy("for key share")))).toBe("40001");
        await holder.query("rollback");
      });
    });
  });

  describe("our fence, with our own statements", () => {
    async function heldBy(owner: string) {
      const who = { owner, label: owner, reactor: "agent", ttlMs: 60_000 };
      return heldRun(scene.store, {}, who);
    }
    const tokenOf = async (journal: number) => {
      const { rows } = await scene.admin.query("select token::int from tape.leases where journal = $1", [journal]);
      return rows[0]?.token as number;
    };

    it("heartbeats pass an open guarded transaction, a takeover waits for it, and later writes are rejected", async () => {
      const { fence } = await heldBy("a");
      const [holder, rival] = await Promise.all([scene.hand(), scene.hand()]);
      await holder.sql("begin");
      expect((await holder.run("fence", fenced(fence))).count).toBe(1);
      expect((await holder.run("record.append", stepAt(fence, 2))).count).toBe(1);
      const [beat] = await scene.store.claim.renew([{ fence, progress: 1 }]);
      expect(beat?.ok).toBe(true);
      expect(
        (await rival.run("lease.renew", { ...fenced(fence), progress: 2, progressAgoMs: 0, progressNote: null })).count,
      ).toBe(1);
      const take = () => rival.run("lease.take", taking(fence, "a", nonce()));
      expect(await impatiently(rival, take)).toBe(lockTimeout);
      await holder.sql("commit");
      expect((await take()).rows[0]).toMatchObject({ token: String(fence.token + 1n) });
      expect((await holder.run("fence", fenced(fence))).count).toBe(0);
      expect((await rival.run("journal.head", { journal: fence.journal })).rows[0]).toEqual({ head: 2 });
    });

    it.each(["fence", "fence.release"] as const)(
      "%s: a writer that waited for a takeover finds no row",
      async (statement) => {
        const { fence } = await heldBy("a");
        const [holder, rival] = await Promise.all([scene.hand(), scene.hand()]);
        await rival.sql("begin");
        expect((await rival.run("lease.take", taking(fence, "a", nonce()))).count).toBe(1);
        await holder.sql("begin");
        const late = holder.run(statement, fenced(fence));
        await scene.untilBlocked(holder.pid);
        await rival.sql("commit");
        expect((await late).count).toBe(0);
        await holder.sql("rollback");
      },
    );

    it("in a batch, a journal under takeover does not delay the others", async () => {
      const [one, two] = await Promise.all([heldBy("a"), heldBy("a")]);
      const [holder, rival] = await Promise.all([scene.hand(), scene.hand()]);
      await rival.sql("begin");
      await rival.run("lease.take", taking(one.fence, "a", nonce()));
      const steps = (...fences: (typeof one.fence)[]) => {
        const list = (of: (fence: typeof one.fence) => unknown) => `{${fences.map(of).join(",")}}`;
        return {
          id: nonce(),
          journals: list((f) => f.journal),
          tenants: list((f) => f.tenant),
          tokens: list((f) => f.token),
          nonces: list((f) => f.nonce),
          afters: list(() => 1),
          seqs: list(() => 2),
          kinds: joinedTexts(fences.map(() => "step.done")),
          bodies: joinedTexts(fences.map((f) => String(stepAt(f, 2).body))),
        };
      };
      const result = await holder.run("append_many", steps(one.fence, two.fence)); // SKIP LOCKED: it does not wait
      expect(result.rows.map((row) => row.journal)).toEqual([two.journal]);
      const alone = ({ tenant, journal, token, nonce: own }: typeof one.fence, after: number) => {
        const record = { after, seq: after + 1, kind: "step.done", body: String(stepAt(one.fence, 2).body) };
        return { tenant, journal, token, nonce: own, ...record, id: nonce() };
      };
      expect((await holder.run("append_one", alone(one.fence, 1))).rows).toEqual([]);
      await rival.sql("commit");
      expect((await holder.run("append_many", steps(one.fence))).rows).toEqual([]);
      expect((await holder.run("append_one", alone(one.fence, 1))).rows).toEqual([]);
      // Of the other run: each part of the fence counts, and so does the head.
      const [right, wrong] = [alone(two.fence, 2), { token: 9n, nonce: 9n, tenant: "elsewhere", after: 7 }];
      for (const [field, value] of Object.entries(wrong))
        expect((await holder.run("append_one", { ...right, [field]: value, id: nonce() })).rows, field).toEqual([]);
      expect((await holder.run("append_one", right)).rows).toEqual([{ journal: two.journal, notes: 0 }]);
      expect(await tokenOf(one.journal)).toBe(2);
    });

    it("another tenant that names a journal neither waits for its holder's write nor delays it", async () => {
      const { store } = scene;
      const held = await heldRun(store);
      const stranger = forged(held, { tenant: "globex" });
      const write = (fence: Fence, after: number) =>
        store.fenced.append(fence, { after, records: [step(after, "x")] }).then(
          () => "written",
          (error: TapeError) => error.code,
        );
      const rival = await scene.hand();
      await rival.sql("begin");
      await rival.sql(`select from tape.leases where journal = ${held.journal} for update`);
      const waiting = write(held.fence, 1);
      await scene.untilBlocked();
      expect(await write(stranger, 1)).toBe("TAPE_FENCED"); // while the holder's own write is in flight
      await rival.sql("commit");
      expect(await waiting).toBe("written");
      for (let after = 2; after < 12; after++) {
        const together = [write(stranger, after), write(held.fence, after), write(stranger, after)];
        expect(await Promise.all(together)).toEqual(["TAPE_FENCED", "written", "TAPE_FENCED"]);
      }
    });

    it("the index closes the fence: without it the same statements let a stale write through", async () => {
      const { fence } = await heldBy("a");
      const [holder, rival] = await Promise.all([scene.hand(), scene.hand()]);
      await scene.admin.query("drop index tape.leases_fence");
      await holder.sql("begin");
      await holder.run("fence", fenced(fence));
      expect((await rival.run("lease.take", taking(fence, "a", nonce()))).count).toBe(1);
      expect((await holder.run("record.append", stepAt(fence, 2))).count).toBe(1);
      await holder.sql("commit");
      expect(await tokenOf(fence.journal)).toBe(2);
      expect((await rival.run("journal.head", { journal: fence.journal })).rows[0]).toEqual({ head: 2 });
    });
  });
});
