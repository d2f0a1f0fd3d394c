import type { Bug, Patch } from "../bug.ts";

/** Disables the store's own check: a system that makes this mistake has no such check. */
const withoutStoreCheck: Patch = {
  file: "store/sqlite/sql/effects.sql",
  find: "and (:to <> 'PENDING' or semantics <> 'non_idempotent' or :reason in ('not_sent', 'operator')\n",
  replace: "and (true\n",
};

export const effectBugs: readonly Bug[] = [
  {
    name: "blind retry",
    planted: "an effect whose response was lost is sent again, whatever its semantics",
    why: "Most clients retry every call by default: a payment whose response was lost is paid twice.",
    patches: [
      withoutStoreCheck,
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
    name: "inline attempt repeated after a crash",
    planted: "the next owner repeats an attempt that has no outcome",
    why: "At-least-once: a worker that died during the call is treated as one that never called.",
    patches: [
      withoutStoreCheck,
      {
        file: "engine/effects/inline.ts",
        find: "verdictOnCrash(call.effect.semantics)",
        replace: 'verdictOnCrash("idempotent")',
      },
    ],
    detectedBy: ["noBlindRetry", "nonIdempotentOnce"],
    within: 200,
  },
  {
    name: "outbox attempt repeated after a crash",
    planted: "an outbox effect whose sender vanished is queued again",
    why: "A visibility timeout does exactly this: the message of a slow or dead consumer is delivered again.",
    patches: [
      withoutStoreCheck,
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
    name: "effect before its intent is durable",
    planted: "the code is notified that a record is written when it is sent, not when it is durable",
    why: "Acknowledging before the commit is the cheapest way to win a benchmark.",
    patches: [
      {
        file: "engine/journal/journal-writer.ts",
        find: "      appended = appender.append(fence, { after: this.#head, records, ...this.#generation });\n",
        replace:
          "      appended = appender.append(fence, { after: this.#head, records, ...this.#generation });\n      for (const write of batch) this.#deliver(write);\n",
      },
      {
        file: "engine/journal/journal-writer.ts",
        find: "    for (const write of batch) this.#deliver(write);\n    this.#options.onWritten",
        replace: "    void batch;\n    this.#options.onWritten",
      },
    ],
    detectedBy: ["intentBeforeCall"],
    within: 50,
  },
  {
    name: "outbox dispatch before its record",
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
    planted: "an observation that does not find the effect settles it as FAILED or sends it again immediately",
    why: "Not there yet is taken for never: the request may still be in flight, or an index may lag.",
    patches: [
      {
        file: "reactor/reconciler.ts",
        find: "if (openMs > 0) return [[]",
        replace: "if (openMs > 1e9) return [[]",
      },
    ],
    detectedBy: ["verdictMatchesWorld", "nonIdempotentOnce", "noBlindRetry"],
    within: 200,
  },
  {
    name: "late response as the verdict",
    planted:
      "a response that arrives after the effect became UNKNOWN is written as its outcome by the process that received it",
    why: "The callback of a call that timed out still fires, and overwrites a decision made since.",
    patches: [
      {
        file: "engine/effects/inline.ts",
        find: 'if (timeout.signal.aborted && effect.semantics === "non_idempotent") void response?.then(evidence);',
        replace: `if (timeout.signal.aborted && effect.semantics === "non_idempotent") {
    drive.activeBodies++;
    void response
      ?.then((late) => (late.kind === "returned" && !drive.finished ? confirm(drive, call, handle, late) : evidence(late)))
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
    name: "idempotency key per attempt",
    planted: "the idempotency key names the attempt, not the decision",
    why: "A fresh random key for each attempt: the upstream deduplicates by key, so it never deduplicates.",
    patches: [
      {
        file: "engine/effects/inline.ts",
        find: "    key: idempotencyKeyOf(drive, handle.pos),\n    token: lease.token,",
        replace: "    key: `$" + "{idempotencyKeyOf(drive, handle.pos)}/$" + "{attempt}`,\n    token: lease.token,",
      },
    ],
    detectedBy: ["keysHaveIntents", "idempotentOnce"],
    within: 50,
  },
  {
    name: "outbox forgets",
    planted: "outbox effects whose sender died are never claimed again",
    why: 'A job in the state "running" whose worker is gone stays there until a customer complains.',
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
    name: "duplicate forgotten",
    planted: "an effect that is observed to have happened twice is confirmed, and the duplicate is forgotten",
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
    planted: "the second effect with a business key is admitted too",
    why: "Select, see that the invoice is not being paid, insert: two processes do so at the same time.",
    patches: [
      {
        file: "store/sqlite/sql/values.sql",
        find: "insert into business_keys(tenant, scope, business_key, run, pos)\nselect r.tenant, :scope, :business_key, :run, :pos from runs r where r.journal = :run\non conflict do nothing;",
        replace:
          "insert or replace into business_keys(tenant, scope, business_key, run, pos)\nselect r.tenant, :scope, :business_key, :run, :pos from runs r where r.journal = :run;",
      },
    ],
    detectedBy: ["businessKeysHold"],
    kind: "with shared keys",
    within: 500,
  },
];
