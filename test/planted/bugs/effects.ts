import type { Bug, Patch } from "../bug.ts";

/** The store would refuse it: a system that makes this mistake has no such store. */
const storeLetsIt: Patch = {
  file: "store/sqlite/sql/effects.sql",
  find: "and (:to <> 'PENDING' or semantics <> 'non_idempotent' or :reason in ('not_sent', 'operator'))",
  replace: "",
};

export const effectBugs: readonly Bug[] = [
  {
    name: "blind retry",
    planted: "an act whose answer got lost is sent again, whatever its kind",
    why: "A retry policy around every call is the default of most clients: a payment whose answer was lost is paid twice.",
    patches: [
      storeLetsIt,
      {
        file: "model/attempt.ts",
        find: 'const repeatable = notSent || semantics !== "non_idempotent";',
        replace: "const repeatable = true;",
      },
    ],
    detectedBy: ["noBlindRetry", "nonIdempotentOnce"],
    within: 50,
  },
  {
    name: "expired attempt made again, inline",
    planted: "a successor that finds an attempt without an outcome makes it again",
    why: "At-least-once: a worker that died in mid-call is taken for one that never called.",
    patches: [
      storeLetsIt,
      {
        file: "engine/effects/inline.ts",
        find: "verdictOnCrash(act.effect.semantics)",
        replace: 'verdictOnCrash("idempotent")',
      },
    ],
    detectedBy: ["noBlindRetry", "nonIdempotentOnce"],
    within: 200,
  },
  {
    name: "expired attempt back to pending, outbox",
    planted: "an outbox act whose sender vanished is put back into the line",
    why: "A visibility time-out does exactly this: the message of a slow or dead consumer is delivered again.",
    patches: [
      storeLetsIt,
      {
        file: "reactor/reconciler.ts",
        find: "verdictOnCrash(item.effect.semantics, isPoison(item))",
        replace: 'verdictOnCrash("idempotent")',
      },
    ],
    detectedBy: ["noBlindRetry", "nonIdempotentOnce"],
    kind: "with an outbox",
    within: 500,
  },
  {
    name: "act before its intent",
    planted: "the code is told that a record is written when it is sent, not when it is durable",
    why: "Acknowledging before the commit is the cheapest way to win a benchmark.",
    patches: [
      {
        file: "engine/journal/journal-writer.ts",
        find: "      appended = door.append(fence, { after: this.#head, records });\n",
        replace:
          "      appended = door.append(fence, { after: this.#head, records });\n      for (const writing of batch) this.#tell(writing);\n",
      },
      {
        file: "engine/journal/journal-writer.ts",
        find: "    for (const writing of batch) this.#tell(writing);\n    this.#options.onWritten",
        replace: "    void batch;\n    this.#options.onWritten",
      },
    ],
    detectedBy: ["intentBeforeCall"],
    within: 50,
  },
  {
    name: "dispatch before its record, outbox",
    planted: "the outbox does not wait for the record that authorises its attempt",
    why: "One missing await: the record is on its way, and the call is faster.",
    patches: [
      {
        file: "engine/item/attempt.ts",
        find: '  await item.write([...before, { kind: "effect.dispatched"',
        replace: '  const writing = item.write([...before, { kind: "effect.dispatched"',
      },
      {
        file: "engine/item/attempt.ts",
        find: "  try {\n    await conclude(",
        replace: "  try {\n    await writing;\n    await conclude(",
      },
    ],
    detectedBy: ["intentBeforeCall"],
    within: 50,
  },
  {
    name: "absent too soon",
    planted: "a look that does not find the act settles it as failed at once",
    why: "Not there yet is taken for never: a request may be under way, and an index behind.",
    patches: [
      {
        file: "reactor/reconciler.ts",
        find: "if (!seen.final && begun <= until) return",
        replace: "if (!seen.final && begun <= until - 1e9) return",
      },
    ],
    detectedBy: ["verdictMatchesWorld", "nonIdempotentOnce"],
    within: 200,
  },
  {
    name: "late answer as a verdict",
    planted:
      "an answer that comes after the act was given up as UNKNOWN is written as its outcome, by whoever heard it",
    why: "The callback of a call that timed out still fires, and overwrites what somebody else has decided since.",
    patches: [
      {
        file: "engine/effects/inline.ts",
        find: 'if (timeout.signal.aborted && effect.semantics === "non_idempotent") void answer?.then(evidence);',
        replace: `if (timeout.signal.aborted && effect.semantics === "non_idempotent") {
    drive.activeBodies++;
    void answer
      ?.then((late) => (late.kind === "returned" && !drive.finished ? confirm(drive, act, turn, late) : evidence(late)))
      .finally(() => {
        drive.activeBodies--;
        drive.parkIfIdle();
      });
  }`,
      },
      {
        file: "store/sqlite/sql/effects.sql",
        find: "and tenant = :tenant and authority = :by\n",
        replace: "and tenant = :tenant and (:by = :by)\n",
      },
    ],
    detectedBy: ["onlyAuthorityWrites", "oneVerdict"],
    within: 200,
  },
  {
    name: "a key for each attempt",
    planted: "the idempotency key names the attempt, not the decision",
    why: "A fresh random key for each try: the other side dedupes by it, and so never dedupes.",
    patches: [
      {
        file: "engine/effects/inline.ts",
        find: "    key: idempotencyKeyOf(drive, turn.pos),\n    token: lease.token,",
        replace: "    key: `$" + "{idempotencyKeyOf(drive, turn.pos)}/$" + "{attempt}`,\n    token: lease.token,",
      },
    ],
    detectedBy: ["keysHaveIntents", "idempotentOnce"],
    within: 50,
  },
  {
    name: "outbox forgets",
    planted: "nobody looks after outbox acts whose sender died",
    why: 'A job in the state "running" whose worker is gone stays there until somebody complains.',
    patches: [
      {
        file: "reactor/reconciler.ts",
        find: 'staleOf: ["outbox", "reconciler"]',
        replace: 'staleOf: ["reconciler"]',
      },
    ],
    detectedBy: ["unknownIsNeverLost", "clientCallsAnswered"],
    kind: "with an outbox",
    within: 50,
  },
  {
    name: "second act forgotten",
    planted: "an act that is found to have happened twice is confirmed, and the second one forgotten",
    why: "Found is found: few programs ask how often.",
    patches: [
      {
        file: "reactor/reconciler.ts",
        find: '[[...item.confirmed("duplicate", seen), ...(await surplusObligations(deps, item, seen.refs))], done]',
        replace: '[[...item.confirmed("duplicate", seen)], done]',
      },
    ],
    detectedBy: ["surplusCompensated"],
    kind: "with a careless upstream",
    within: 500,
  },
  {
    name: "business key for two",
    planted: "the second asker for a business key gets it as well",
    why: "Select, see that the invoice is not being paid, insert: two do so at the same time.",
    patches: [
      {
        file: "store/sqlite/sql/values.sql",
        find: "insert into business_keys",
        replace: "insert or replace into business_keys",
      },
      { file: "store/sqlite/sql/values.sql", find: "\non conflict do nothing", replace: "" },
    ],
    detectedBy: ["businessKeysHold"],
    kind: "with shared keys",
    within: 500,
  },
];
