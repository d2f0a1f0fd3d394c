import { strict as assert } from "node:assert";
import type { NewRecord } from "../../src/model/records.ts";
import type { EffectFilter, Store } from "../../src/store/contract/store.ts";
import { bigintText, type Cases, record, tenant } from "./frame.ts";
import {
  begin,
  confirmed,
  dataOf,
  decided,
  dispatched,
  ended,
  find,
  Holder,
  holdItem,
  intent,
  type Settlement,
  settled,
  statusOf,
  unchanged,
} from "./holder.ts";

type Step = "DISPATCHED" | Settlement;
const everyStep: readonly Step[] = ["DISPATCHED", "CONFIRMED", "FAILED", "UNKNOWN", "PENDING", "STUCK"];

/**
 * The legal transitions of each status; all others must be rejected. For withdrawal, a decision of the run, see phases.
 */
const legal: Readonly<Record<string, readonly Step[]>> = {
  PENDING: ["DISPATCHED", "STUCK"],
  DISPATCHED: ["CONFIRMED", "FAILED", "UNKNOWN", "PENDING"],
  UNKNOWN: ["CONFIRMED", "FAILED", "PENDING", "STUCK"],
  STUCK: ["CONFIRMED", "FAILED", "PENDING"],
  CONFIRMED: [],
  FAILED: [],
  WITHDRAWN: [],
};

/** How an effect reaches each status under one authority. */
const ways: Readonly<Record<string, readonly Step[]>> = {
  PENDING: [],
  DISPATCHED: ["DISPATCHED"],
  UNKNOWN: ["DISPATCHED", "UNKNOWN"],
  STUCK: ["DISPATCHED", "UNKNOWN", "STUCK"],
  CONFIRMED: ["DISPATCHED", "CONFIRMED"],
  FAILED: ["DISPATCHED", "FAILED"],
  WITHDRAWN: [],
};

function stepRecord(run: number, to: Step, reason = "returned"): NewRecord {
  return to === "DISPATCHED" ? dispatched(0, { run }) : settled(0, to, { run, reason });
}

/** An effect in this status under the authority of an item journal; the holder is the item's. */
async function itemIn(store: Store, status: string): Promise<{ run: Holder; item: Holder }> {
  const run = await begin(store);
  await run.write(intent(0, { dispatch: "outbox" }));
  const item = await holdItem(store, run.id, 0);
  for (const to of ways[status]!) await item.write(stepRecord(run.journal, to));
  if (status === "WITHDRAWN") await run.write(decided("cancelled"));
  assert.equal((await run.effect(0)).status, status);
  return { run, item };
}

/** Effects: three outcomes, one authority at a time, and no transition back that the semantics do not allow. */
export const effects: Cases = ({ it }, fresh) => {
  it("an intent creates a row before anything is sent", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(3, { connector: "bank", businessKey: "order-1", args: { a: 1n }, policy: { tries: 3 } }));
    const effect = await run.effect(3);
    const { pos, sub, role, name, connector, semantics, dispatch, status, authority, item, key } = effect;
    assert.deepEqual(
      { pos, sub, role, name, connector, semantics, dispatch, status, authority, item, key },
      {
        pos: 3,
        sub: 0,
        role: "effect",
        name: "wire",
        connector: "bank",
        semantics: "idempotent",
        dispatch: "inline",
        status: "PENDING",
        authority: run.journal,
        item: null,
        key: "key-3",
      },
    );
    assert.deepEqual([effect.attempt, effect.attemptToken, effect.outcome, effect.surplus], [0, null, null, false]);
    await unchanged(store, () => run.refused("TAPE_ILLEGAL_TRANSITION", intent(3, { key: "again" })));
  });

  it("an inline attempt carries token and send deadline, and shows no nonce", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const { token, nonce } = run.term.fence;
    await run.write(intent(0), dispatched(0, { attempt: 4, sendWithinMs: 5_000 }));
    const sent = await run.effect(0);
    assert.deepEqual([sent.status, sent.attempt], ["DISPATCHED", 4]);
    assert.equal(sent.attemptToken, token);
    assert.ok(
      !new RegExp(`(?<!\\d)${nonce}(?!\\d)`).test(JSON.stringify(sent, bigintText)), // whole numbers: a time may contain the nonce's digits
      "a reader of effects could write as their holder",
    );
    const now = await store.read.now();
    assert.ok(sent.sendUntil !== null && sent.sendUntil > now - 1 && sent.sendUntil <= now + 5_000);
    await run.write(settled(0, "CONFIRMED", { reason: "returned", value: { id: 9n } }));
    const done = await run.effect(0);
    assert.deepEqual(
      [done.status, done.reason, done.authority, done.item],
      ["CONFIRMED", "returned", run.journal, null],
    );
    assert.ok(done.outcome?.includes("9"));
    await run.write(intent(1), dispatched(1), settled(1, "FAILED", { reason: "definite", error: new Error("no") }));
    assert.deepEqual([(await run.effect(1)).status, (await run.view()).notes], ["FAILED", 0]);
    await run.write(ended("COMPLETED", { outcome: 1 }));
  });

  it("every legal transition of every status is accepted", async () => {
    const { store } = fresh();
    for (const [status, targets] of Object.entries(legal)) {
      for (const to of targets) {
        const { run, item } = await itemIn(store, status);
        await item.write(stepRecord(run.journal, to));
        assert.equal((await run.effect(0)).status, to, `${status} → ${to}`);
      }
    }
  });

  it("[INV-5] every other transition of every status is rejected and changes nothing", async () => {
    const { store } = fresh();
    let refusals = 0;
    for (const [status, targets] of Object.entries(legal)) {
      const { run, item } = await itemIn(store, status);
      await unchanged(store, async () => {
        for (const to of everyStep) {
          if (targets.includes(to)) continue;
          const { details } = await item.refused("TAPE_ILLEGAL_TRANSITION", stepRecord(run.journal, to));
          assert.deepEqual([details.pos, details.to], [0, to], `${status} → ${to}`);
          refusals++;
        }
        await item.refused("TAPE_ILLEGAL_TRANSITION", dispatched(7, { run: run.journal }));
      });
    }
    assert.equal(refusals, 7 * 6 - 13);
  });

  it("a pending effect becomes UNKNOWN only if an attempt of it may have happened", async () => {
    const { store } = fresh();
    for (const [reasons, legalStep] of [
      [[], false],
      [["not_sent"], false],
      [["ack_lost"], true],
      [["lease_lost"], true],
      [["ack_lost", "not_sent"], true],
    ] as const) {
      const run = await begin(store);
      await run.write(intent(0));
      for (const reason of reasons) await run.write(dispatched(0), settled(0, "PENDING", { reason }));
      assert.equal((await run.effect(0)).uncertain, legalStep, reasons.join());
      const unknown = settled(0, "UNKNOWN", { reason: "run_ending" });
      if (!legalStep) {
        await unchanged(store, () => run.refused("TAPE_ILLEGAL_TRANSITION", unknown));
        continue;
      }
      await run.write(unknown);
      const { status, item, authority } = await run.effect(0);
      assert.deepEqual([status, item !== null && authority === item], ["UNKNOWN", true]);
    }
  });

  it("an outbox effect that was never sent is in doubt only because it waited long; then it can be confirmed", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0, { dispatch: "outbox" }));
    const item = await holdItem(store, run.id, 0);
    const ref = { run: run.journal };
    const unknown = (reason: string) => settled(0, "UNKNOWN", { ...ref, reason });
    await unchanged(store, async () => {
      await item.refused("TAPE_ILLEGAL_TRANSITION", unknown("ack_lost"));
      await item.refused("TAPE_ILLEGAL_TRANSITION", settled(0, "CONFIRMED", { ...ref, reason: "observed" }));
    });
    await item.write(unknown("long_pending"), settled(0, "CONFIRMED", { ...ref, reason: "observed", value: 1 }));
    const { status, attempt, uncertain } = await run.effect(0);
    assert.deepEqual([status, attempt, uncertain], ["CONFIRMED", 0, false]);
  });

  it("the run settles an inline effect; when UNKNOWN, an item gets the authority", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0));
    await unchanged(store, async () => {
      for (const to of ["CONFIRMED", "FAILED", "UNKNOWN", "PENDING"] as const) {
        await run.refused("TAPE_ILLEGAL_TRANSITION", settled(0, to));
      }
    });
    await run.write(dispatched(0), settled(0, "UNKNOWN", { reason: "ack_lost" }));
    const inDoubt = await run.effect(0);
    assert.ok(inDoubt.item !== null && inDoubt.authority === inDoubt.item);
    const [opened] = await store.read.journal(tenant, { journal: inDoubt.item });
    assert.deepEqual([opened?.kind, opened?.seq], ["item.opened", 1]);
    assert.deepEqual(opened?.data, { run: run.journal, pos: 0, sub: 0 });
    await unchanged(store, async () => {
      for (const to of ["CONFIRMED", "FAILED", "PENDING", "STUCK"] as const) {
        await run.refused("TAPE_ILLEGAL_TRANSITION", settled(0, to));
      }
    });
    const [term, ...rest] = await find(store, "reconciler");
    assert.deepEqual([term?.journal, term?.kind, term?.run, rest.length], [inDoubt.item, "item", run.journal, 0]);
    assert.equal(term?.fence.token, run.term.fence.token + 1n, "an item's first token is the run's plus one");
    const item = new Holder(store, term, run.id);
    await item.write(
      record("effect.observed", { run: run.journal, pos: 0, observation: "confirmed", detail: 1 }),
      settled(0, "CONFIRMED", { run: run.journal, reason: "observed", value: 1 }),
    );
    assert.equal((await run.effect(0)).status, "CONFIRMED");
    assert.equal((await run.view()).notes, 1, "settling an UNKNOWN effect notifies the run");
  });

  it("neither another run nor another item can settle an effect", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0), dispatched(0), intent(1, { dispatch: "outbox" }), intent(2, { dispatch: "outbox" }));
    const foreign = await begin(store);
    const item = await holdItem(store, run.id, 1);
    const other = await holdItem(store, run.id, 2);
    await item.write(dispatched(1, { run: run.journal }));
    await unchanged(store, async () => {
      await foreign.refused("TAPE_ILLEGAL_TRANSITION", settled(0, "CONFIRMED", { run: run.journal }));
      await run.refused("TAPE_ILLEGAL_TRANSITION", settled(1, "CONFIRMED"));
      await run.refused("TAPE_ILLEGAL_TRANSITION", dispatched(2));
      await item.refused("TAPE_ILLEGAL_TRANSITION", settled(0, "CONFIRMED", { run: run.journal }));
      await other.refused("TAPE_ILLEGAL_TRANSITION", settled(1, "CONFIRMED", { run: run.journal }));
      await item.refused("TAPE_ILLEGAL_TRANSITION", settled(1, "CONFIRMED"));
    });
  });

  it("an outbox intent opens an item, and settling the item wakes the run", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0, { dispatch: "outbox" }));
    const effect = await run.effect(0);
    assert.ok(effect.item !== null && effect.authority === effect.item);
    await run.release();
    assert.deepEqual(await find(store, "outbox", { tenant: "globex" }), []);
    const [term, ...rest] = await find(store, "outbox", { tenant });
    assert.ok(term !== undefined && rest.length === 0);
    assert.deepEqual([term.journal, term.run, term.tenant], [effect.item, run.journal, tenant]);
    assert.equal(term.fence.token, run.term.fence.token + 1n);
    const item = new Holder(store, term, run.id);
    await item.write(dispatched(0, { run: run.journal }));
    assert.equal(await statusOf(store, run.id), "WAITING", "a dispatch wakes no reactor");
    await item.write(settled(0, "CONFIRMED", { run: run.journal, value: "sent" }));
    await item.release();
    const woken = await run.view();
    assert.deepEqual([woken.status, woken.notes], ["RUNNABLE", 1]);
    const [note] = await store.read.journal(tenant, { run: run.id }, { inbox: true });
    const { pos, sub, status, value } = dataOf(note, "effect.outcome");
    assert.deepEqual({ pos, sub, status, value }, { pos: 0, sub: 0, status: "CONFIRMED", value: "sent" });
    assert.deepEqual(await find(store, "outbox"), []);
  });

  it("only an outcome notifies the run, not UNKNOWN or a retry", async () => {
    const { store } = fresh();
    const notesAfter: Record<string, number> = { CONFIRMED: 1, FAILED: 1, STUCK: 1, UNKNOWN: 0, PENDING: 0 };
    for (const [to, expected] of Object.entries(notesAfter)) {
      const { run, item } = await itemIn(store, to === "UNKNOWN" ? "DISPATCHED" : "UNKNOWN");
      await item.write(stepRecord(run.journal, to as Step));
      assert.equal((await run.view()).notes, expected, to);
    }
  });

  it("[INV-14] a non_idempotent effect is retried only if not sent, absent, or by an operator", async () => {
    const { store } = fresh();
    for (const semantics of ["non_idempotent", "idempotent", "read"] as const) {
      const run = await begin(store);
      await run.write(intent(0, { semantics }), dispatched(0));
      if (semantics === "non_idempotent") {
        await unchanged(store, async () => {
          for (const reason of ["lease_lost", "absent", "ABSENT", "returned", "not_sent "]) {
            await run.refused("TAPE_ILLEGAL_TRANSITION", settled(0, "PENDING", { reason }));
          }
        });
        await run.write(settled(0, "PENDING", { reason: "not_sent" }), dispatched(0, { attempt: 2 }));
        await run.write(settled(0, "UNKNOWN", { reason: "lease_lost" }));
        const item = await holdItem(store, run.id, 0);
        const again = (reason: string) => settled(0, "PENDING", { run: run.journal, reason });
        await unchanged(store, () => item.refused("TAPE_ILLEGAL_TRANSITION", again("absent")));
        await item.write(again("ABSENT"), dispatched(0, { run: run.journal, attempt: 3 }));
        await item.write(settled(0, "UNKNOWN", { run: run.journal, reason: "ack_lost" }), again("operator"));
      } else {
        await run.write(settled(0, "PENDING", { reason: "lease_lost" }));
      }
      assert.equal((await run.effect(0)).status, "PENDING");
    }
  });

  it("evidence after the end of a run goes into the item's journal only", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(...confirmed(0));
    await run.write(
      record("obligation.surplus", { pos: 0, sub: 2, name: "undo", semantics: "idempotent", key: "s", args: 1 }),
      ended("COMPLETED", { outcome: 1 }),
    );
    const item = await holdItem(store, run.id, 0, 2);
    await item.write(
      dispatched(0, { run: run.journal, sub: 2 }),
      record("obligation.settled", { run: run.journal, pos: 0, sub: 2, to: "COMPENSATED", reason: "returned" }),
    );
    assert.equal((await run.effect(0, 2)).status, "COMPENSATED");
    const view = await run.view();
    assert.deepEqual([view.status, view.notes], ["COMPLETED", 0]);
    assert.deepEqual(await store.read.journal(tenant, { run: run.id }, { inbox: true }), []);
    await item.release();
  });

  it("effects are filtered by run, role, status and age", async () => {
    const { store, elapse } = fresh();
    const run = await begin(store);
    const other = await begin(store);
    const armed = record("obligation.armed", { pos: 1, sub: 1, name: "u", semantics: "read", key: "k", args: 1 });
    await run.write(intent(0), ...confirmed(1), armed, intent(2), dispatched(2));
    await other.write(...confirmed(0));
    const table: [EffectFilter, string[]][] = [
      [{}, ["0.0", "0.0", "1.0", "1.1", "2.0"]],
      [{ run: run.id }, ["0.0", "1.0", "1.1", "2.0"]],
      [{ run: "nobody" }, []],
      [{ role: "compensation" }, ["1.1"]],
      [{ role: "effect", status: ["CONFIRMED"] }, ["0.0", "1.0"]],
      [{ status: ["PENDING", "ARMED"], run: run.id }, ["0.0", "1.1"]],
      [{ status: ["STUCK"] }, []],
      [{ run: run.id, limit: 2 }, ["0.0", "1.0"]],
      [{ minAgeMs: 3_600_000 }, []],
      [{ minAgeMs: 0, run: other.id }, ["0.0"]],
      [{ run: run.id, from: 1 }, ["1.0", "1.1", "2.0"]],
      [{ run: run.id, from: 1, role: "effect", limit: 1 }, ["1.0"]],
      [{ run: run.id, from: 3 }, []],
    ];
    for (const [filter, expected] of table) {
      const found = await store.read.effects(tenant, filter);
      assert.deepEqual(found.map(({ pos, sub }) => `${pos}.${sub}`).sort(), expected, JSON.stringify(filter));
    }
    await elapse(120);
    await run.write(settled(2, "CONFIRMED"));
    const before = await store.read.now();
    const old = (await store.read.effects(tenant, { minAgeMs: 100 })).map(({ run: of, pos }) => `${of}/${pos}`);
    const after = await store.read.now();
    const all = await store.read.effects(tenant);
    for (const { run: of, pos, changedAt } of all) {
      if (changedAt <= before - 100) assert.ok(old.includes(`${of}/${pos}`));
      if (changedAt > after - 100) assert.ok(!old.includes(`${of}/${pos}`));
    }
    assert.ok(old.length >= 4);
    assert.deepEqual(await store.read.effects("globex"), []);
  });
};
