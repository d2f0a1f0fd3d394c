import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import type { Fence } from "../../../src/model/fence.ts";
import {
  acquired,
  claimant,
  heldRun,
  nonce,
  record,
  request,
  step,
  tenant,
} from "../../../testkit/conformance/frame.ts";
import { begin, dispatched, holdItem, intent, settled } from "../../../testkit/conformance/holder.ts";
import { codeOf, fenced, type Hand, type Scene, sceneOn, stepAt, taking, until } from "./scene.ts";

const lasting = claimant("holder", { ttlMs: 60_000 });
const byForce = { expect: "any", by: "ann", auditReason: "it hangs" } as const;
const ended = record("term.ended", { reason: "released", notesTaken: 0 });

let scene: Scene;
beforeAll(async () => {
  scene = await sceneOn(inject("postgres18"));
  // Every time a lease is announced as doomed, or its token changes, in the order of the commits.
  await scene.admin.query(`
    create table public.seen(n serial, journal bigint, what text);
    create function public.see() returns trigger language plpgsql as $$ begin
      if new.doomed and not old.doomed then insert into public.seen(journal, what) values (new.journal, 'doomed'); end if;
      if new.token <> old.token then insert into public.seen(journal, what) values (new.journal, 'taken'); end if;
      return null;
    end $$;
    create trigger see after update on tape.leases for each row execute function public.see()`);
});
afterAll(() => scene.close());

const held = () => heldRun(scene.store, {}, lasting);
const seen = async (journal: number): Promise<string[]> => {
  const { rows } = await scene.admin.query("select what from public.seen where journal = $1 order by n", [journal]);
  return rows.map((row) => row.what as string);
};
const headOf = async (journal: number) => (await scene.store.read.journal(tenant, { journal })).at(-1)!.seq;

describe("overlapping guarded transactions", () => {
  let run: Awaited<ReturnType<typeof held>>;
  let hands: Hand[];
  let load: Load;

  beforeEach(async () => {
    run = await held();
    hands ??= await Promise.all(Array.from({ length: 5 }, () => scene.hand()));
    load = new Load(hands.slice(0, 4), run.fence);
    await load.overlapping();
  });

  it("starve a plain takeover", async () => {
    const rival = hands[4]!;
    await rival.sql("set statement_timeout = 600; set lock_timeout = 400");
    const code = await codeOf(rival.run("lease.take", taking(run.fence, "holder", nonce())));
    // lock_timeout counts for each wait: behind shorter transactions it never expires.
    expect(code).toBe("57014");
    await rival.sql("reset statement_timeout; reset lock_timeout");
    load.stop();
    expect(await load.done).toEqual(["stopped", "stopped", "stopped", "stopped"]);
  });

  it("ours announces itself, lets no new one start, and succeeds; they are rejected", async () => {
    const rival = await scene.open();
    const before = load.written;
    const successor = await acquired(rival, request({ run: run.id }, { ...byForce, claimant: lasting }));
    expect(await load.done).toEqual(["refused", "refused", "refused", "refused"]);
    expect(successor.fence.token).toBe(run.fence.token + 1n);
    expect(await seen(run.journal)).toEqual(["doomed", "taken"]);
    // Their earlier writes are under their token and before the new term; nothing came after it.
    const journal = await rival.read.journal(tenant, { run: run.id });
    expect(journal.length).toBe(load.written + 2);
    // Those of the first short try and those already open came in between. A starved takeover would see hundreds.
    expect(load.written - before).toBeGreaterThan(0);
    expect(load.written - before).toBeLessThan(100);
    expect(journal.at(-1)).toMatchObject({ kind: "term.started", token: successor.fence.token, seq: successor.head });
    await rival.fenced.append(successor.fence, { after: successor.head, records: [step(0)] });
    const [beat] = await scene.store.claim.renew([{ fence: run.fence, progress: 1 }]);
    expect(beat).toMatchObject({ ok: false });
  });
});

/**
 * Transactions under one fence, each open for some 20 ms, one starting every 5 ms: there is never a moment without one,
 * and none of them lasts as long as the first try of a takeover waits.
 */
class Load {
  readonly done: Promise<string[]>;
  written = 0;
  #stopped = false;
  #holding = 0;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(hands: readonly Hand[], fence: Fence) {
    this.done = Promise.all(
      hands.map(async (hand, k) => {
        await sleep(5 * k);
        for (;;) {
          await hand.sql("begin");
          const admitted = (await hand.run("fence", fenced(fence))).count === 1;
          if (admitted) {
            this.#holding++;
            await sleep(18);
            await this.#inTurn(async () => {
              await hand.run("record.append", stepAt(fence, this.written + 2));
              this.written++;
              await hand.sql("commit");
            });
            this.#holding--;
            if (!this.#stopped) continue;
          } else await hand.sql("rollback");
          return admitted ? "stopped" : "refused";
        }
      }),
    );
  }

  /** The writers are one owner: they agree among themselves which one writes the next record. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(work);
    this.#turn = turn;
    return turn;
  }

  async overlapping(): Promise<void> {
    await until(async () => {
      await sleep(5);
      return this.#holding >= 3;
    }, "the transactions do not overlap");
  }

  stop(): void {
    this.#stopped = true;
  }
}

describe("a guarded transaction is open", () => {
  it("a release waits for it, and then the same holder's next write is rejected", async () => {
    const run = await held();
    const hand = await scene.hand();
    await hand.sql("begin");
    await hand.run("fence", fenced(run.fence));
    const releasing = scene.store.fenced.append(run.fence, { after: 1, records: [ended] });
    await scene.untilBlocked();
    expect(await seen(run.journal)).toEqual([]);
    await hand.sql("commit");
    expect((await releasing).head).toBe(2);
    await hand.sql("begin");
    expect((await hand.run("fence", fenced(run.fence))).count).toBe(0);
    await hand.sql("rollback");
  });

  it("a release that waited for a write of the same term learns that the journal has grown", async () => {
    const run = await held();
    const hand = await scene.hand();
    await hand.sql("begin");
    await hand.run("fence", fenced(run.fence));
    await hand.run("record.append", stepAt(run.fence, 2));
    const releasing = codeOf(scene.store.fenced.append(run.fence, { after: 1, records: [ended] }));
    await scene.untilBlocked();
    await hand.sql("commit");
    expect(await releasing).toBe("TAPE_NOT_HEAD");
    expect((await scene.store.fenced.append(run.fence, { after: 2, records: [ended] })).head).toBe(3);
  });

  it("heartbeats continue while a takeover waits for it, until it is announced", async () => {
    const run = await held();
    const [hand, rival] = [await scene.hand(), await scene.open()];
    await hand.sql("begin");
    await hand.run("fence", fenced(run.fence));
    expect((await scene.store.claim.renew([{ fence: run.fence, progress: 1 }]))[0]).toMatchObject({ ok: true });
    const taking = acquired(rival, request({ run: run.id }, byForce));
    await until(async () => (await seen(run.journal)).includes("doomed"), "the takeover is not announced");
    const [beat] = await scene.store.claim.renew([{ fence: run.fence, progress: 2 }]);
    expect(beat).toMatchObject({ ok: false, error: { code: "TAPE_FENCED" } });
    expect(await codeOf(scene.store.fenced.append(run.fence, { after: 1, records: [step(0)] }))).toBe("TAPE_FENCED");
    // A transaction opened before the announcement may still commit: the new term starts after it.
    await hand.run("record.append", stepAt(run.fence, 2));
    await hand.sql("commit");
    expect((await taking).head).toBe(3);
  });

  it("if its worker has stopped, the server ends it in time and the takeover succeeds", async () => {
    const run = await held();
    const hand = await scene.hand("?transaction_bound_ms=400");
    const lost = new Promise<string>((resolve) =>
      hand.client.once("error", (e: { code?: string }) => resolve(e.code!)),
    );
    await hand.sql("begin");
    await hand.run("fence", fenced(run.fence));
    await hand.run("record.append", stepAt(run.fence, 2));
    const successor = await acquired(await scene.open(), request({ run: run.id }, byForce));
    expect(await lost).toBe("25P03");
    expect(successor.head).toBe(2); // nothing of the stopped one was written
    expect(await codeOf(hand.sql("commit"))).not.toBe("done");
    expect(await headOf(run.journal)).toBe(2);
  });

  it("a snapshot from before the takeover is rejected by our fence", async () => {
    const run = await held();
    const hand = await scene.hand();
    await hand.sql("begin isolation level repeatable read");
    await hand.sql("select 1 from tape.meta");
    await acquired(await scene.open(), request({ run: run.id }, byForce));
    expect(await codeOf(hand.run("fence", fenced(run.fence)))).toBe("40001");
    await hand.sql("rollback");
  });
});

describe("a takeover in the middle of 100 records under one token", () => {
  const records = Array.from({ length: 100 }, (_, k) => step(k));

  /** Holds the entry's transaction between two of its records, by a row that may still collide with it. */
  async function heldUp(fence: Fence): Promise<{ hand: Hand; pid: number; writing: Promise<string> }> {
    const hand = await scene.hand();
    await hand.sql("begin");
    await hand.sql(`insert into tape.records values (${fence.journal}, 51, 0, 0, 0, 'x', 'x')`);
    const writing = codeOf(scene.store.fenced.append(fence, { after: 1, records }));
    await scene.untilBlocked();
    const [pid] = await scene.waiting();
    return { hand, pid: pid!, writing };
  }

  it("waits for the whole entry: all of it is before the new term", async () => {
    const run = await held();
    const { hand, writing } = await heldUp(run.fence);
    const rival = await scene.open();
    const taking = acquired(rival, request({ run: run.id }, byForce));
    await until(async () => (await seen(run.journal)).includes("doomed"), "the takeover is not announced");
    await hand.sql("rollback");
    expect(await writing).toBe("done");
    expect((await taking).head).toBe(102);
    expect(await codeOf(scene.store.fenced.append(run.fence, { after: 101, records }))).toBe("TAPE_FENCED");
  });

  it("or comes first: nothing of the entry was written", async () => {
    const run = await held();
    const { hand, pid, writing } = await heldUp(run.fence);
    const rival = await scene.open();
    const taking = acquired(rival, request({ run: run.id }, byForce));
    await until(async () => (await seen(run.journal)).includes("doomed"), "the takeover is not announced");
    await scene.admin.query("select pg_terminate_backend($1)", [pid]); // the entry is retried after the takeover
    await hand.sql("rollback");
    expect(await writing).toBe("TAPE_FENCED");
    const successor = await taking;
    expect(successor.head).toBe(2);
    expect(await headOf(run.journal)).toBe(2);
  });
});

describe("a deadlock inside a guarded transaction", () => {
  it("is rolled back by the server and retried: the result is right and nothing is written twice", async () => {
    // Only our session checks for deadlocks, after 300 ms of waiting; the admin's would not for a long time.
    await scene.admin.query(`alter database ${new URL(scene.url).pathname.slice(1)} set deadlock_timeout = '300ms'`);
    await scene.admin.query("set deadlock_timeout = '60s'");
    const store = await scene.open();
    const run = await begin(store);
    await run.write(intent(0, { dispatch: "outbox" }));
    const item = await holdItem(store, run.id, 0);
    await item.write(dispatched(0, { run: run.journal }));
    const lock = (journal: number) =>
      scene.admin.query("select 1 from tape.leases where journal = $1 for update", [journal]);
    await scene.admin.query("begin");
    await lock(run.journal);
    let verdict: string | undefined;
    const settling = codeOf(item.write(settled(0, "CONFIRMED", { run: run.journal }))).then((code) => (verdict = code));
    await blockedOnUs();
    // It holds the item's lease and waits for the run's; we hold the run's. Getting the item's means that it gave way.
    await lock(item.journal);
    expect(verdict).toBeUndefined();
    await scene.admin.query("rollback");
    expect(await settling).toBe("done");
    expect(await store.read.journal(tenant, { run: run.id }, { inbox: true })).toHaveLength(1);
    expect(
      (await store.read.journal(tenant, { journal: item.journal })).filter(({ kind }) => kind === "effect.settled"),
    ).toHaveLength(1);
    expect((await run.effect(0)).status).toBe("CONFIRMED");
  });

  async function blockedOnUs(): Promise<void> {
    const observer = await scene.hand();
    await until(async () => {
      const { rowCount } = await observer.sql(
        "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return (rowCount ?? 0) > 0;
    }, "no process waits for us");
  }
});
