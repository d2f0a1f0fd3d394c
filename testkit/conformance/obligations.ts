import { strict as assert } from "node:assert";
import type { NewRecord } from "../../src/model/records.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { type Cases, record, step, tenant, unique } from "./frame.ts";
import {
  armed,
  begin,
  childEnded,
  compensated,
  confirmed,
  dataOf,
  decided,
  dispatched,
  ended,
  find,
  Holder,
  holdItem,
  intent,
  type Release,
  settled,
  startChild,
  unchanged,
} from "./holder.ts";

const compensating = record("run.compensating", {});
const due = (pos: number, sub = 1) => record("obligation.due", { pos, sub, reason: "asked" });

function surplus(pos: number, sub: number, more: { run?: number; name?: string } = {}): NewRecord {
  return record("obligation.surplus", { pos, sub, semantics: "idempotent", key: `surplus-${sub}`, args: 1, ...more });
}

const statuses = async (store: Store, run: string): Promise<string[]> =>
  (await store.read.effects(tenant, { run, role: "compensation" })).map(
    ({ pos, sub, status }) => `${pos}.${sub} ${status}`,
  );

/** The compensation reactor's next item, or undefined; there must never be two. */
async function nextCompensation(store: Store, id: string): Promise<Holder | undefined> {
  const terms = await find(store, "compensation");
  assert.ok(terms.length <= 1, "strictly one after the other");
  return terms[0] === undefined ? undefined : new Holder(store, terms[0], id);
}

type Step = "COMMITTED" | Release;
const everyStep: readonly Step[] = ["COMMITTED", "COMPENSATED", "UNKNOWN", "PENDING", "STUCK"];
const legal: Readonly<Record<string, readonly Step[]>> = {
  ARMED: [],
  PENDING: ["COMMITTED", "STUCK"],
  COMMITTED: ["COMPENSATED", "UNKNOWN", "PENDING", "STUCK"],
  UNKNOWN: ["COMPENSATED", "PENDING", "STUCK"],
  STUCK: ["COMPENSATED", "PENDING"],
  COMPENSATED: [],
  DISCHARGED: [],
};
const ways: Readonly<Record<string, readonly Step[]>> = {
  PENDING: [],
  COMMITTED: ["COMMITTED"],
  UNKNOWN: ["COMMITTED", "UNKNOWN"],
  STUCK: ["COMMITTED", "UNKNOWN", "STUCK"],
  COMPENSATED: ["COMMITTED", "COMPENSATED"],
};

function stepRecord(run: number, to: Step): NewRecord {
  return to === "COMMITTED" ? dispatched(0, { run, sub: 1 }) : compensated(run, 0, to);
}

async function obligationIn(store: Store, status: string): Promise<{ run: Holder; item: Holder }> {
  const run = await begin(store);
  await run.write(...confirmed(0), armed(0));
  const item = await holdItem(store, run.id, 0, 1);
  const way = ways[status];
  if (way !== undefined) await run.write(due(0));
  for (const to of way ?? []) await item.write(stepRecord(run.journal, to));
  if (status === "DISCHARGED") await run.write(ended("COMPLETED", { outcome: 1 }));
  assert.equal((await run.effect(0, 1)).status, status);
  return { run, item };
}

/** Obligations: armed with the confirmed effect, due only when the run fails, compensated newest first. */
export const obligations: Cases = ({ it }, fresh) => {
  it("[INV-16] an obligation is armed in the append that confirms its effect, or never", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await unchanged(store, () => run.refused("TAPE_ILLEGAL_TRANSITION", intent(0), settled(0, "CONFIRMED"), armed(0)));
    await run.write(...confirmed(0), armed(0, { args: { refund: 5n } }));
    const row = await run.effect(0, 1);
    const { role, status, dispatch, name, surplus: isSurplus, key } = row;
    assert.deepEqual(
      { role, status, dispatch, name, isSurplus, key },
      { role: "compensation", status: "ARMED", dispatch: "outbox", name: "refund", isSurplus: false, key: "undo-0" },
    );
    assert.ok(row.item !== null && row.authority === row.item);
    const [opened] = await store.read.journal(tenant, { journal: row.item });
    assert.deepEqual(opened?.data, { run: run.journal, pos: 0, sub: 1 });
    await unchanged(store, () => run.refused("TAPE_ILLEGAL_TRANSITION", armed(0)));
  });

  it("an obligation is also armed under the item's lease that confirms the effect", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0, { dispatch: "outbox" }), intent(1), dispatched(1), settled(1, "UNKNOWN"));
    for (const pos of [0, 1]) {
      const item = await holdItem(store, run.id, pos);
      if (pos === 0) await item.write(dispatched(0, { run: run.journal }));
      await item.write(settled(pos, "CONFIRMED", { run: run.journal }), armed(pos, { run: run.journal }));
      await item.release();
    }
    assert.deepEqual(await statuses(store, run.id), ["0.1 ARMED", "1.1 ARMED"]);
    const foreign = await begin(store);
    await unchanged(store, () => foreign.refused("TAPE_ILLEGAL_TRANSITION", armed(5, { run: run.journal })));
  });

  it("[INV-16] obligations of a completing run are never due, and are discharged", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(...confirmed(0), armed(0), ...confirmed(1), armed(1));
    assert.equal(await nextCompensation(store, run.id), undefined);
    await run.write(decided("completed"));
    assert.equal(await nextCompensation(store, run.id), undefined);
    assert.deepEqual(await statuses(store, run.id), ["0.1 ARMED", "1.1 ARMED"]);
    await run.write(ended("COMPLETED"));
    assert.deepEqual(await statuses(store, run.id), ["0.1 DISCHARGED", "1.1 DISCHARGED"]);
    assert.equal(await nextCompensation(store, run.id), undefined);
  });

  it("every legal transition of every status is accepted", async () => {
    const { store } = fresh();
    for (const [status, targets] of Object.entries(legal)) {
      for (const to of targets) {
        const { run, item } = await obligationIn(store, status);
        await item.write(stepRecord(run.journal, to));
        assert.equal((await run.effect(0, 1)).status, to, `${status} → ${to}`);
      }
    }
  });

  it("every other transition of every status is rejected and changes nothing", async () => {
    const { store } = fresh();
    let refusals = 0;
    for (const [status, targets] of Object.entries(legal)) {
      const { run, item } = await obligationIn(store, status);
      await unchanged(store, async () => {
        for (const to of everyStep) {
          if (targets.includes(to)) continue;
          const { details } = await item.refused("TAPE_ILLEGAL_TRANSITION", stepRecord(run.journal, to));
          assert.deepEqual([details.sub, details.to], [1, to], `${status} → ${to}`);
          refusals++;
        }
        if (status !== "ARMED" && status !== "DISCHARGED") await run.refused("TAPE_ILLEGAL_TRANSITION", due(0));
        // The verdicts of an effect are not those of an obligation.
        const verdict = settled(0, "CONFIRMED", { run: run.journal, sub: 1 });
        await item.refused("TAPE_ILLEGAL_TRANSITION", verdict);
      });
    }
    assert.equal(refusals, 7 * 5 - 11);
  });

  it("a non_idempotent compensation is retried only if not sent, or by an operator", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(...confirmed(0), armed(0, { semantics: "non_idempotent" }), due(0));
    const item = await holdItem(store, run.id, 0, 1);
    await item.write(dispatched(0, { run: run.journal, sub: 1 }));
    await unchanged(store, () => item.refused("TAPE_ILLEGAL_TRANSITION", compensated(run.journal, 0, "PENDING")));
    await item.write(compensated(run.journal, 0, "PENDING", 1, "not_sent"));
  });

  it("a failed run's obligations are compensated strictly newest first", async () => {
    const { store } = fresh();
    const run = await begin(store);
    for (const pos of [0, 2, 10]) await run.write(...confirmed(pos), armed(pos));
    await run.write(decided("failed"), compensating);
    assert.deepEqual(await statuses(store, run.id), ["0.1 PENDING", "2.1 PENDING", "10.1 PENDING"]);
    await run.release();
    for (const [k, pos] of [10, 2, 0].entries()) {
      const compensation = await nextCompensation(store, run.id);
      assert.ok(compensation !== undefined);
      assert.equal((await run.effect(pos, 1)).item, compensation.journal);
      await compensation.write(dispatched(pos, { run: run.journal, sub: 1 }));
      assert.equal(await nextCompensation(store, run.id), undefined, "the next waits for this one");
      await compensation.write(compensated(run.journal, pos, "UNKNOWN"));
      assert.equal(await nextCompensation(store, run.id), undefined, "also while it is in doubt");
      const driver = await find(store, "recovery");
      assert.equal(driver.length, 0);
      await compensation.write(compensated(run.journal, pos));
      await compensation.release();
      const [woken] = await find(store, "recovery");
      assert.equal(woken?.notes, k + 1, "each is noted to the run, which is woken");
      const holder = new Holder(store, woken!, run.id);
      if (pos === 0) await holder.write(ended("COMPENSATED", { notesTaken: 3 }));
      else {
        await unchanged(store, () => holder.refused("TAPE_RUN_UNSETTLED", ended("COMPENSATED", { notesTaken: k + 1 })));
        await holder.release(k + 1);
      }
    }
    const { status, cause } = await run.view();
    assert.deepEqual([status, cause], ["COMPENSATED", "failed"]);
  });

  it("a stuck obligation blocks older ones until an operator resolves it", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(...confirmed(0), armed(0), ...confirmed(1), armed(1), decided("cancelled"), compensating);
    const newest = await nextCompensation(store, run.id);
    await newest!.write(dispatched(1, { run: run.journal, sub: 1 }), compensated(run.journal, 1, "STUCK"));
    await newest!.release();
    assert.equal(await nextCompensation(store, run.id), undefined);
    assert.equal((await run.view()).notes, 1, "the run is notified");
    // The chain stays blocked, whatever else is settled meanwhile.
    await run.write(surplus(5, 2, { name: "refund" }));
    const outside = await nextCompensation(store, run.id);
    await outside!.write(dispatched(5, { run: run.journal, sub: 2 }), compensated(run.journal, 5, "COMPENSATED", 2));
    assert.equal(await nextCompensation(store, run.id), undefined);
    await unchanged(store, () => run.refused("TAPE_RUN_UNSETTLED", ended("COMPENSATED", { notesTaken: 2 })));
    const operator = await holdItem(store, run.id, 1, 1);
    await operator.write(
      record("operator.action", { by: "ann", action: "effect.resolve", reason: "refunded by hand" }),
      compensated(run.journal, 1, "COMPENSATED", 1, "operator"),
    );
    const oldest = await nextCompensation(store, run.id);
    assert.equal(oldest?.journal, (await run.effect(0, 1)).item);
  });

  it("one obligation may be made due without the others", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(...confirmed(0), armed(0), ...confirmed(1), armed(1));
    await run.write(due(0));
    assert.deepEqual(await statuses(store, run.id), ["0.1 PENDING", "1.1 ARMED"]);
    await unchanged(store, () => run.refused("TAPE_RUN_UNSETTLED", ended("COMPLETED", { outcome: 1 })));
    const compensation = await nextCompensation(store, run.id);
    assert.equal(compensation?.journal, (await run.effect(0, 1)).item);
    await compensation!.write(dispatched(0, { run: run.journal, sub: 1 }), compensated(run.journal, 0));
    await run.write(ended("COMPLETED", { outcome: 1, notesTaken: 1 }));
    assert.deepEqual(await statuses(store, run.id), ["0.1 COMPENSATED", "1.1 DISCHARGED"]);
    await unchanged(store, () => run.refused("TAPE_FENCED", due(1)));
  });

  it("a completed child's obligations stay armed until its root completes", async () => {
    const { store } = fresh();
    const root = await begin(store);
    const child = await startChild(root, 0, unique("child"));
    await child.write(...confirmed(0), armed(0));
    await childEnded(child, root, 0, "COMPLETED", { outcome: 1 });
    assert.deepEqual(await statuses(store, child.id), ["0.1 ARMED"]);
    assert.equal(await nextCompensation(store, child.id), undefined);
    await root.write(ended("COMPLETED", { outcome: 1, notesTaken: 1 }));
    assert.deepEqual(await statuses(store, child.id), ["0.1 DISCHARGED"]);
  });

  it("a failing root is compensated only after its completed children", async () => {
    const { store } = fresh();
    const root = await begin(store);
    const child = await startChild(root, 0, unique("child"));
    await child.write(...confirmed(0), armed(0), ...confirmed(1), armed(1));
    await childEnded(child, root, 0, "COMPLETED", { outcome: 1 });
    await unchanged(store, () => root.refused("TAPE_RUN_UNSETTLED", ended("FAILED", { outcome: 1, notesTaken: 1 })));
    await root.write(decided("failed"), compensating);
    assert.deepEqual(await statuses(store, child.id), ["0.1 PENDING", "1.1 PENDING"]);
    for (const [k, pos] of [1, 0].entries()) {
      const { notes } = await root.view();
      assert.equal(notes, 1 + k, "the root is notified, because the child's inbox is closed");
      await unchanged(store, () => root.refused("TAPE_RUN_UNSETTLED", ended("COMPENSATED", { notesTaken: notes })));
      const compensation = await nextCompensation(store, child.id);
      assert.equal(compensation?.journal, (await child.effect(pos, 1)).item);
      await compensation!.write(dispatched(pos, { run: child.journal, sub: 1 }));
      await unchanged(store, () => root.refused("TAPE_RUN_UNSETTLED", ended("COMPENSATED", { notesTaken: notes })));
      await compensation!.write(compensated(child.journal, pos));
      await compensation!.release();
    }
    const notes = await store.read.journal(tenant, { run: root.id }, { inbox: true });
    assert.deepEqual(
      notes
        .slice(1)
        .map((note) => dataOf(note, "effect.outcome"))
        .map(({ run, pos, status }) => [run, pos, status]),
      [
        [child.journal, 1, "COMPENSATED"],
        [child.journal, 0, "COMPENSATED"],
      ],
    );
    await root.write(ended("COMPENSATED", { notesTaken: 3 }));
    assert.equal((await root.view()).status, "COMPENSATED");
  });

  it("a settled child obligation wakes the waiting root; a surplus does not", async () => {
    const { store } = fresh();
    const root = await begin(store);
    const child = await startChild(root, 0, unique("child"));
    await child.write(...confirmed(0), armed(0), surplus(0, 2, { name: "refund" }));
    await childEnded(child, root, 0, "COMPLETED", { outcome: 1 });
    await root.write(decided("cancelled"), compensating, record("notes.taken", { through: 1 }));
    await root.release(1);
    const extra = await holdItem(store, child.id, 0, 2);
    await extra.write(dispatched(0, { run: child.journal, sub: 2 }), compensated(child.journal, 0, "COMPENSATED", 2));
    assert.deepEqual(await find(store, "recovery"), []);
    const compensation = await holdItem(store, child.id, 0, 1);
    await compensation.write(dispatched(0, { run: child.journal, sub: 1 }), compensated(child.journal, 0));
    const [woken] = await find(store, "recovery");
    assert.deepEqual([woken?.journal, woken?.notes], [root.journal, 2]);
  });

  it("a failing run within a tree compensates what is below it, and nothing else", async () => {
    const { store } = fresh();
    const root = await begin(store);
    const [aside, middle] = [
      await startChild(root, 0, unique("aside")),
      await startChild(root, 1, unique("middle")),
    ] as const;
    const below = await startChild(middle, 0, unique("below"));
    for (const run of [aside, below]) await run.write(...confirmed(0), armed(0), ...confirmed(1), armed(1));
    await childEnded(aside, root, 0, "COMPLETED", { outcome: 1 });
    await childEnded(below, middle, 0, "COMPLETED", { outcome: 1 });
    await unchanged(store, () => middle.refused("TAPE_RUN_UNSETTLED", ended("FAILED", { outcome: 1, notesTaken: 1 })));
    await middle.write(decided("failed"), compensating);
    assert.deepEqual(await statuses(store, below.id), ["0.1 PENDING", "1.1 PENDING"]);
    assert.deepEqual(await statuses(store, aside.id), ["0.1 ARMED", "1.1 ARMED"]);
    for (const [k, pos] of [1, 0].entries()) {
      const [compensation, ...others] = await find(store, "compensation");
      assert.deepEqual([compensation?.journal, others.length], [(await below.effect(pos, 1)).item, 0], "newest first");
      await unchanged(store, () => middle.refused("TAPE_RUN_UNSETTLED", ended("COMPENSATED", { notesTaken: 1 + k })));
      const holder = new Holder(store, compensation!, below.id);
      await holder.write(dispatched(pos, { run: below.journal, sub: 1 }), compensated(below.journal, pos));
      await holder.release();
      assert.deepEqual([(await middle.view()).notes, (await root.view()).notes], [2 + k, 1]);
    }
    await childEnded(middle, root, 1, "COMPENSATED", { notesTaken: 3 });
    await root.write(ended("COMPLETED", { outcome: 1, notesTaken: 2 }));
    assert.deepEqual(await statuses(store, below.id), ["0.1 COMPENSATED", "1.1 COMPENSATED"]);
    assert.deepEqual(await statuses(store, aside.id), ["0.1 DISCHARGED", "1.1 DISCHARGED"]);
  });

  it("a retry by an operator notifies the run, like every verdict", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0), dispatched(0), settled(0, "UNKNOWN"));
    const item = await holdItem(store, run.id, 0);
    const of = { run: run.journal };
    await item.write(settled(0, "STUCK", { ...of, reason: "inconclusive" }));
    await item.write(settled(0, "PENDING", { ...of, reason: "operator" }));
    const notes = await store.read.journal(tenant, { run: run.id }, { inbox: true });
    const noted = notes.map((note) => dataOf(note, "effect.outcome").status);
    assert.deepEqual(noted, ["STUCK", "PENDING"]);
  });

  it("a surplus is due in any status, outside the chain, and never discharged", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(...confirmed(0), armed(0), surplus(0, 2, { name: "refund" }));
    assert.deepEqual(await statuses(store, run.id), ["0.1 ARMED", "0.2 PENDING"]);
    const first = await nextCompensation(store, run.id);
    assert.equal(first?.journal, (await run.effect(0, 2)).item, "due in a healthy run");
    await first!.release();
    await run.write(surplus(0, 3, { name: "refund" }), decided("failed"), compensating);
    const both = await find(store, "compensation");
    const [chained, outside] = [(await run.effect(0, 1)).item!, (await run.effect(0, 3)).item!];
    const found = new Set(both.map(({ journal }) => journal));
    assert.deepEqual(found, new Set([chained, outside]), "it neither waits nor makes others wait");
    const compensation = new Holder(store, both.find(({ journal }) => journal === chained)!, run.id);
    await compensation.write(dispatched(0, { run: run.journal, sub: 1 }), compensated(run.journal, 0));
    await run.write(ended("COMPENSATED", { notesTaken: 1 }));
    assert.deepEqual(await statuses(store, run.id), ["0.1 COMPENSATED", "0.2 PENDING", "0.3 PENDING"]);
  });

  it("one append confirms a duplicate and adds its surplus, STUCK without compensate", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0), dispatched(0), settled(0, "UNKNOWN"));
    const item = await holdItem(store, run.id, 0);
    const of = run.journal;
    await item.write(
      record("effect.observed", { run: of, pos: 0, observation: "duplicate", detail: ["a", "b"] }),
      settled(0, "CONFIRMED", { run: of, reason: "observed" }),
      surplus(0, 2, { run: of }),
      surplus(0, 3, { run: of, name: "refund" }),
    );
    assert.deepEqual(await statuses(store, run.id), ["0.2 STUCK", "0.3 PENDING"]);
    const compensation = await nextCompensation(store, run.id);
    assert.equal(compensation?.journal, (await run.effect(0, 3)).item);
    await run.write(step(1), ended("COMPLETED", { outcome: 1, notesTaken: 1 }));
    const late = await holdItem(store, run.id, 0, 2);
    await late.write(compensated(of, 0, "COMPENSATED", 2, "operator"));
    assert.deepEqual(await statuses(store, run.id), ["0.2 COMPENSATED", "0.3 PENDING"]);
  });
};
