import { strict as assert } from "node:assert";
import type { NewRecord } from "../../src/model/records.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { type Cases, record, step, tenant, unique } from "./frame.ts";
import {
  armed,
  begin,
  childEnded,
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
  undone,
} from "./scenes.ts";

const compensating = record("run.compensating", {});
const due = (pos: number, sub = 1) => record("obligation.due", { pos, sub, reason: "asked" });

function surplus(pos: number, sub: number, more: { run?: number; name?: string } = {}): NewRecord {
  return record("obligation.surplus", { pos, sub, semantics: "idempotent", key: `surplus-${sub}`, args: 1, ...more });
}

const statuses = async (store: Store, run: string): Promise<string[]> =>
  (await store.read.effects(tenant, { run, role: "compensation" })).map(
    ({ pos, sub, status }) => `${pos}.${sub} ${status}`,
  );

/** The compensation reactor's next piece of work, or undefined; there must never be two. */
async function nextInverse(store: Store, id: string): Promise<Holder | undefined> {
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
  return to === "COMMITTED" ? dispatched(0, { run, sub: 1 }) : undone(run, 0, to);
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

/** What is owed for an act that happened: armed with it, due only when something went wrong, undone newest first. */
export const obligations: Cases = ({ it }, fresh) => {
  it("[INV-16] is armed in the append that confirms its effect, or not at all", async () => {
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

  it("is armed under the item's lease too, by whoever confirms an act of the outbox or a doubt", async () => {
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

  it("[INV-16] obligations of a healthy run are never due, and are discharged when it completes", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(...confirmed(0), armed(0), ...confirmed(1), armed(1));
    assert.equal(await nextInverse(store, run.id), undefined);
    await run.write(decided("completed"));
    assert.equal(await nextInverse(store, run.id), undefined);
    assert.deepEqual(await statuses(store, run.id), ["0.1 ARMED", "1.1 ARMED"]);
    await run.write(ended("COMPLETED"));
    assert.deepEqual(await statuses(store, run.id), ["0.1 DISCHARGED", "1.1 DISCHARGED"]);
    assert.equal(await nextInverse(store, run.id), undefined);
  });

  it("every legal step of every status is taken", async () => {
    const { store } = fresh();
    for (const [status, targets] of Object.entries(legal)) {
      for (const to of targets) {
        const { run, item } = await obligationIn(store, status);
        await item.write(stepRecord(run.journal, to));
        assert.equal((await run.effect(0, 1)).status, to, `${status} → ${to}`);
      }
    }
  });

  it("every other step of every status is refused and changes nothing", async () => {
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
        // The verdicts of an act are not those of an obligation.
        const verdict = settled(0, "CONFIRMED", { run: run.journal, sub: 1 });
        await item.refused("TAPE_ILLEGAL_TRANSITION", verdict);
      });
    }
    assert.equal(refusals, 7 * 5 - 11);
  });

  it("a non_idempotent inverse is not called again unless it certainly was not sent, or an operator says so", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(...confirmed(0), armed(0, { semantics: "non_idempotent" }), due(0));
    const item = await holdItem(store, run.id, 0, 1);
    await item.write(dispatched(0, { run: run.journal, sub: 1 }));
    await unchanged(store, () => item.refused("TAPE_ILLEGAL_TRANSITION", undone(run.journal, 0, "PENDING")));
    await item.write(undone(run.journal, 0, "PENDING", 1, "not_sent"));
  });

  it("a failed run's obligations fall due together and are undone strictly newest first", async () => {
    const { store } = fresh();
    const run = await begin(store);
    for (const pos of [0, 2, 10]) await run.write(...confirmed(pos), armed(pos));
    await run.write(decided("failed"), compensating);
    assert.deepEqual(await statuses(store, run.id), ["0.1 PENDING", "2.1 PENDING", "10.1 PENDING"]);
    await run.release();
    for (const [k, pos] of [10, 2, 0].entries()) {
      const inverse = await nextInverse(store, run.id);
      assert.ok(inverse !== undefined);
      assert.equal((await run.effect(pos, 1)).item, inverse.journal);
      await inverse.write(dispatched(pos, { run: run.journal, sub: 1 }));
      assert.equal(await nextInverse(store, run.id), undefined, "the next waits for this one");
      await inverse.write(undone(run.journal, pos, "UNKNOWN"));
      assert.equal(await nextInverse(store, run.id), undefined, "also while it is in doubt");
      const driver = await find(store, "recovery");
      assert.equal(driver.length, 0);
      await inverse.write(undone(run.journal, pos));
      await inverse.release();
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

  it("one that is stuck stops the chain until a person has decided", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(...confirmed(0), armed(0), ...confirmed(1), armed(1), decided("cancelled"), compensating);
    const newest = await nextInverse(store, run.id);
    await newest!.write(dispatched(1, { run: run.journal, sub: 1 }), undone(run.journal, 1, "STUCK"));
    await newest!.release();
    assert.equal(await nextInverse(store, run.id), undefined);
    assert.equal((await run.view()).notes, 1, "the run is told");
    // Whatever else is settled meanwhile: the chain stands still.
    await run.write(surplus(5, 2, { name: "undo" }));
    const outside = await nextInverse(store, run.id);
    await outside!.write(dispatched(5, { run: run.journal, sub: 2 }), undone(run.journal, 5, "COMPENSATED", 2));
    assert.equal(await nextInverse(store, run.id), undefined);
    await unchanged(store, () => run.refused("TAPE_RUN_UNSETTLED", ended("COMPENSATED", { notesTaken: 2 })));
    const operator = await holdItem(store, run.id, 1, 1);
    await operator.write(
      record("operator.action", { who: "ann", action: "effect.resolve", reason: "refunded by hand" }),
      undone(run.journal, 1, "COMPENSATED", 1, "operator"),
    );
    const oldest = await nextInverse(store, run.id);
    assert.equal(oldest?.journal, (await run.effect(0, 1)).item);
  });

  it("one alone may be made due, without the others", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(...confirmed(0), armed(0), ...confirmed(1), armed(1));
    await run.write(due(0));
    assert.deepEqual(await statuses(store, run.id), ["0.1 PENDING", "1.1 ARMED"]);
    await unchanged(store, () => run.refused("TAPE_RUN_UNSETTLED", ended("COMPLETED", { outcome: 1 })));
    const inverse = await nextInverse(store, run.id);
    assert.equal(inverse?.journal, (await run.effect(0, 1)).item);
    await inverse!.write(dispatched(0, { run: run.journal, sub: 1 }), undone(run.journal, 0));
    await run.write(ended("COMPLETED", { outcome: 1, notesTaken: 1 }));
    assert.deepEqual(await statuses(store, run.id), ["0.1 COMPENSATED", "1.1 DISCHARGED"]);
    await unchanged(store, () => run.refused("TAPE_FENCED", due(1)));
  });

  it("a completed child's obligations stay armed until its root ends well", async () => {
    const { store } = fresh();
    const root = await begin(store);
    const child = await startChild(root, 0, unique("child"));
    await child.write(...confirmed(0), armed(0));
    await childEnded(child, root, 0, "COMPLETED", { outcome: 1 });
    assert.deepEqual(await statuses(store, child.id), ["0.1 ARMED"]);
    assert.equal(await nextInverse(store, child.id), undefined);
    await root.write(ended("COMPLETED", { outcome: 1, notesTaken: 1 }));
    assert.deepEqual(await statuses(store, child.id), ["0.1 DISCHARGED"]);
  });

  it("a failing root owes what its completed children did, and is not compensated before it is undone", async () => {
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
      assert.equal(notes, 1 + k, "the root is told, because the child's inbox is closed");
      await unchanged(store, () => root.refused("TAPE_RUN_UNSETTLED", ended("COMPENSATED", { notesTaken: notes })));
      const inverse = await nextInverse(store, child.id);
      assert.equal(inverse?.journal, (await child.effect(pos, 1)).item);
      await inverse!.write(dispatched(pos, { run: child.journal, sub: 1 }));
      await unchanged(store, () => root.refused("TAPE_RUN_UNSETTLED", ended("COMPENSATED", { notesTaken: notes })));
      await inverse!.write(undone(child.journal, pos));
      await inverse!.release();
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

  it("a root that waits for what its children owe is woken by it; a surplus act wakes nobody", async () => {
    const { store } = fresh();
    const root = await begin(store);
    const child = await startChild(root, 0, unique("child"));
    await child.write(...confirmed(0), armed(0), surplus(0, 2, { name: "undo" }));
    await childEnded(child, root, 0, "COMPLETED", { outcome: 1 });
    await root.write(decided("cancelled"), compensating, record("notes.taken", { through: 1 }));
    await root.release(1);
    const extra = await holdItem(store, child.id, 0, 2);
    await extra.write(dispatched(0, { run: child.journal, sub: 2 }), undone(child.journal, 0, "COMPENSATED", 2));
    assert.deepEqual(await find(store, "recovery"), []);
    const inverse = await holdItem(store, child.id, 0, 1);
    await inverse.write(dispatched(0, { run: child.journal, sub: 1 }), undone(child.journal, 0));
    const [woken] = await find(store, "recovery");
    assert.deepEqual([woken?.journal, woken?.notes], [root.journal, 2]);
  });

  it("a run in the middle of a tree owes what is below it, and nothing beside it; the nearest one above is told", async () => {
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
      const [inverse, ...others] = await find(store, "compensation");
      assert.deepEqual([inverse?.journal, others.length], [(await below.effect(pos, 1)).item, 0], "newest first");
      await unchanged(store, () => middle.refused("TAPE_RUN_UNSETTLED", ended("COMPENSATED", { notesTaken: 1 + k })));
      const undoing = new Holder(store, inverse!, below.id);
      await undoing.write(dispatched(pos, { run: below.journal, sub: 1 }), undone(below.journal, pos));
      await undoing.release();
      assert.deepEqual([(await middle.view()).notes, (await root.view()).notes], [2 + k, 1]);
    }
    await childEnded(middle, root, 1, "COMPENSATED", { notesTaken: 3 });
    await root.write(ended("COMPLETED", { outcome: 1, notesTaken: 2 }));
    assert.deepEqual(await statuses(store, below.id), ["0.1 COMPENSATED", "1.1 COMPENSATED"]);
    assert.deepEqual(await statuses(store, aside.id), ["0.1 DISCHARGED", "1.1 DISCHARGED"]);
  });

  it("a person who has it tried again is noted to the run, like every verdict", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0), dispatched(0), settled(0, "UNKNOWN"));
    const item = await holdItem(store, run.id, 0);
    const of = { run: run.journal };
    await item.write(settled(0, "STUCK", { ...of, reason: "inconclusive" }));
    await item.write(settled(0, "PENDING", { ...of, reason: "operator" }));
    const notes = await store.read.journal(tenant, { run: run.id }, { inbox: true });
    const told = notes.map((note) => dataOf(note, "effect.outcome").status);
    assert.deepEqual(told, ["STUCK", "PENDING"]);
  });

  it("a surplus act is owed in any status, outside the chain, and never discharged", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(...confirmed(0), armed(0), surplus(0, 2, { name: "undo" }));
    assert.deepEqual(await statuses(store, run.id), ["0.1 ARMED", "0.2 PENDING"]);
    const first = await nextInverse(store, run.id);
    assert.equal(first?.journal, (await run.effect(0, 2)).item, "due in a healthy run");
    await first!.release();
    await run.write(surplus(0, 3, { name: "undo" }), decided("failed"), compensating);
    const both = await find(store, "compensation");
    const [chained, outside] = [(await run.effect(0, 1)).item!, (await run.effect(0, 3)).item!];
    const found = new Set(both.map(({ journal }) => journal));
    assert.deepEqual(found, new Set([chained, outside]), "it neither waits nor makes others wait");
    const inverse = new Holder(store, both.find(({ journal }) => journal === chained)!, run.id);
    await inverse.write(dispatched(0, { run: run.journal, sub: 1 }), undone(run.journal, 0));
    await run.write(ended("COMPENSATED", { notesTaken: 1 }));
    assert.deepEqual(await statuses(store, run.id), ["0.1 COMPENSATED", "0.2 PENDING", "0.3 PENDING"]);
  });

  it("a duplicate is found and owed in one append of the item; without an inverse it is stuck", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0), dispatched(0), settled(0, "UNKNOWN"));
    const item = await holdItem(store, run.id, 0);
    const of = run.journal;
    await item.write(
      record("effect.observed", { run: of, pos: 0, observation: "duplicate", detail: ["a", "b"] }),
      settled(0, "CONFIRMED", { run: of, reason: "observed" }),
      surplus(0, 2, { run: of }),
      surplus(0, 3, { run: of, name: "undo" }),
    );
    assert.deepEqual(await statuses(store, run.id), ["0.2 STUCK", "0.3 PENDING"]);
    const inverse = await nextInverse(store, run.id);
    assert.equal(inverse?.journal, (await run.effect(0, 3)).item);
    await run.write(step(1), ended("COMPLETED", { outcome: 1, notesTaken: 1 }));
    const late = await holdItem(store, run.id, 0, 2);
    await late.write(undone(of, 0, "COMPENSATED", 2, "operator"));
    assert.deepEqual(await statuses(store, run.id), ["0.2 COMPENSATED", "0.3 PENDING"]);
  });
};
