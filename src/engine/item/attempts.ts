import { maxInterruptions, restartOf } from "../../model/attempt.ts";
import type { Item } from "./item.ts";

/** Nothing else retries an obligation: a repeatable one gets at least this many attempts, whatever the policy. */
const minCompensationAttempts = 10;

/** The policy allows no further attempt. */
export function isExhausted(item: Item): boolean {
  const { attempts } = item.definition!;
  const limit = item.isCompensation ? Math.max(attempts, minCompensationAttempts) : attempts;
  return isPoison(item) || item.history().failures >= limit;
}

/** Its senders crash during the attempt, again and again. */
export function isPoison({ records }: Pick<Item, "records">): boolean {
  const lost = records.slice(restartOf(records) + 1).filter((record) => {
    const settled = record.kind === "effect.settled" || record.kind === "obligation.settled";
    return settled && record.data.reason === "lease_lost";
  });
  return lost.length >= maxInterruptions;
}
