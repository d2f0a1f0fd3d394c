import { isInterrupted } from "../../model/attempt.ts";
import type { JournalRecord } from "../../model/records.ts";
import type { Item } from "./item.ts";

/** What is owed has nobody else to try it: if it may be repeated, at least so often, whatever the policy of the act says. */
const minCompensationAttempts = 10;
/** So many senders that vanished in the middle of one item are no coincidence: it takes its process down. */
const maxInterruptions = 20;

/**
 * Attempts that failed, inline ones before it was handed over included. One that was cut short by a crash or a drain is
 * not charged, and none is charged twice. A person who has it sent again begins the count afresh.
 */
export function failedAttempts(item: Pick<Item, "records">): number {
  const { records } = item;
  const again = records.findLastIndex(isAgain);
  const [opened] = records;
  let failures = again < 0 && opened?.kind === "item.opened" ? (opened.data.failures ?? 0) : 0;
  let open = false;
  for (const record of records.slice(again + 1)) {
    if (record.kind === "effect.dispatched") open = true;
    if (!open || !isFailure(record)) continue;
    open = false;
    failures++;
  }
  return failures;
}

/** Its policy has no attempt left. */
export function isExhausted(item: Item): boolean {
  const { attempts } = item.definition!;
  const limit = item.isCompensation ? Math.max(attempts, minCompensationAttempts) : attempts;
  return isPoison(item) || failedAttempts(item) >= limit;
}

/** Its senders vanish in the middle of it, again and again. */
export function isPoison({ records }: Pick<Item, "records">): boolean {
  const lost = records.slice(records.findLastIndex(isAgain) + 1).filter((record) => {
    const settled = record.kind === "effect.settled" || record.kind === "obligation.settled";
    return settled && record.data.reason === "lease_lost";
  });
  return lost.length >= maxInterruptions;
}

function isFailure(record: JournalRecord): boolean {
  if (record.kind !== "effect.settled" && record.kind !== "obligation.settled") return false;
  const { to, reason, error } = record.data;
  return (
    (to === "PENDING" || to === "UNKNOWN") && (reason === "not_sent" || reason === "ack_lost") && !isInterrupted(error)
  );
}

function isAgain(record: JournalRecord): boolean {
  if (record.kind !== "operator.action" || record.data.action !== "resolve") return false;
  return (record.data.detail as { as?: unknown } | undefined)?.as === "retry";
}
