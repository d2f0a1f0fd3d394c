import type { Bug } from "../bug.ts";

export const endingBugs: readonly Bug[] = [
  {
    name: "obligation due immediately",
    planted: "an obligation is due as soon as its effect is confirmed",
    why: "The compensation is queued beside the effect, and a fast worker takes it.",
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
    planted: "obligations are compensated in the order in which their effects happened",
    why: "A queue is first in, first out; compensation is not: the hotel is cancelled before the flight that required it.",
    patches: [
      {
        file: "store/sqlite/sql/effects.sql",
        find: "and (n.pos > e.pos or (n.pos = e.pos and n.sub > e.sub))",
        replace: "and (n.pos < e.pos or (n.pos = e.pos and n.sub < e.sub))",
      },
    ],
    detectedBy: ["newestFirst"],
    kind: "with several compensations",
    within: 500,
  },
  {
    name: "obligation forgotten after UNKNOWN",
    planted: "an effect whose response was lost is observed and confirmed, but no obligation is armed for it",
    why: "The compensation is registered where the call returns, and the path on which it does not return was written later.",
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
    name: "effect in doubt withdrawn",
    planted: "the end of a run withdraws every effect that waits to be sent, also one whose response was lost",
    why: "PENDING reads as not sent yet, which is not true during a back-off.",
    patches: [
      {
        file: "store/sqlite/sql/effects.sql",
        find: "where run = :run and role = 'effect' and status = 'PENDING' and (not uncertain or semantics = 'read');",
        replace: "where run = :run and role = 'effect' and status = 'PENDING';",
      },
    ],
    detectedBy: ["happenedIsKnown"],
    kind: "with an end in doubt",
    within: 50,
  },
  {
    name: "children keep their obligations",
    planted: "a child's obligations belong to the child alone, and are discharged when it completes",
    why: "Each service compensates its own saga, and no service compensates the saga of sagas.",
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
    planted: "a run may end while one of its children is still open",
    why: "Fire and forget: the order is closed, and its shipment continues with no owner to stop it.",
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
    name: "cancelled and continues",
    planted: "the cancellation is taken from the inbox, and the code is not notified",
    why: "A flag that is set, and never checked before the next payment.",
    patches: [
      {
        file: "engine/context/operations.ts",
        find: "    if ((drive.cancelled || scope !== undefined) && operation.evenIfCancelled !== true) {",
        replace: "    if (scope !== undefined && operation.evenIfCancelled !== true) {",
      },
      {
        file: "engine/core/operation.ts",
        find: "    if (this.#operation.evenIfCancelled !== true && this.stopped) return;\n",
        replace: "",
      },
      { file: "engine/drive/drive.ts", find: "    this.context.cancelWaits();\n", replace: "" },
    ],
    detectedBy: ["noIntentAfterCancel"],
    within: 50,
  },
  {
    name: "budget without reservation",
    planted: "a call is admitted if the amount spent so far leaves room; open reservations do not count",
    why: "Check the balance, then buy: ten calls at the same time each find enough.",
    patches: [
      {
        file: "store/sqlite/sql/values.sql",
        find: "budgets.reserved + budgets.spent + :amount <= case",
        replace: "budgets.spent + :amount <= case",
      },
    ],
    detectedBy: ["budgetsHold"],
    kind: "with budgets",
    within: 50,
  },
];
