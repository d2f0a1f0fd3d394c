import type { Bug } from "../bug.ts";

export const endingBugs: readonly Bug[] = [
  {
    name: "obligation due at once",
    planted: "what would undo an act is due as soon as the act is confirmed",
    why: "The compensation is enqueued beside the act, and a worker that is quick takes it.",
    patches: [
      {
        file: "model/projection-effects.ts",
        find: 'pos, sub, status: "ARMED", surplus: false },\n    ...openItem(item, run, pos, sub, place, null),',
        replace:
          'pos, sub, status: "PENDING", surplus: false },\n    ...openItem(item, run, pos, sub, place, "compensation"),',
      },
    ],
    detectedBy: ["compensatedExactly"],
    within: 50,
  },
  {
    name: "oldest first",
    planted: "obligations are undone in the order in which the acts were done",
    why: "A queue is first in, first out; a stack of undo is not: the hotel is cancelled before the flight that led to it.",
    patches: [
      {
        file: "store/sqlite/sql/effects.sql",
        find: "and (n.pos > e.pos or (n.pos = e.pos and n.sub > e.sub))",
        replace: "and (n.pos < e.pos or (n.pos = e.pos and n.sub < e.sub))",
      },
    ],
    detectedBy: ["newestFirst"],
    kind: "with several to undo",
    within: 500,
  },
  {
    name: "obligation forgotten after a doubt",
    planted:
      "an act whose answer got lost and that is found to have happened is confirmed, and nothing is armed to undo it",
    why: "The undo is registered where the call returns; the path on which it does not return was written later, by another hand.",
    patches: [
      {
        file: "engine/item/item.ts",
        find: '    return [this.settled({ to: "CONFIRMED", reason, value }), ...this.armedObligation(value)];',
        replace: '    return [this.settled({ to: "CONFIRMED", reason, value })];',
      },
    ],
    detectedBy: ["obligationsArmed"],
    within: 50,
  },
  {
    name: "children keep what they owe",
    planted: "a child's obligations belong to the child alone: they are discharged when it ends well",
    why: "Each service undoes its own saga, and the saga of sagas has nobody.",
    patches: [
      {
        file: "store/sqlite/sql/effects.sql",
        find: "select :run, :pos, :sub, r.tenant, r.root, :role",
        replace: "select :run, :pos, :sub, r.tenant, r.journal, :role",
      },
    ],
    detectedBy: ["compensatedExactly"],
    kind: "with children",
    within: 500,
  },
  {
    name: "parent ends first",
    planted: "a run may end while a child of it lives",
    why: "Fire and forget: the order is closed, and its shipment goes on without anybody who would stop it.",
    patches: [
      {
        file: "store/sqlite/sql/runs.sql",
        find: "\n  and not exists (select 1 from runs c where c.parent = :journal and c.ended_at is null)",
        replace: "",
      },
    ],
    detectedBy: ["parentsOutliveChildren"],
    kind: "with children",
    within: 200,
  },
  {
    name: "cancelled and goes on",
    planted: "the cancellation is taken, and the code is not told",
    why: "A flag that is set and looked at by nobody before the next payment.",
    patches: [
      {
        file: "engine/context/operations.ts",
        find: "    if (drive.cancelled && operation.evenIfCancelled !== true) return ignoreRejection(Promise.reject(cancelledError()));\n",
        replace: "",
      },
      {
        file: "engine/core/operation.ts",
        find: "if (drive.finished || (drive.cancelRequested && this.#operation.evenIfCancelled !== true)) return;",
        replace: "if (drive.finished) return;",
      },
      { file: "engine/drive/drive.ts", find: "    this.context.cancelWaits();\n", replace: "" },
    ],
    detectedBy: ["noIntentAfterCancel"],
    within: 50,
  },
  {
    name: "budget without reservation",
    planted:
      "a call is let through if what was spent so far leaves room for it; what others have reserved does not count",
    why: "Check the balance, then buy: ten calls at the same time each find enough.",
    patches: [
      {
        file: "store/sqlite/sql/values.sql",
        find: "reserved + spent + :amount <= cap",
        replace: "spent + :amount <= cap",
      },
    ],
    detectedBy: ["budgetsHold"],
    kind: "with budgets",
    within: 50,
  },
];
