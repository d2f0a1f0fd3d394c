import { restartOf } from "../../model/attempt.ts";
import type { Item } from "./item.ts";

/** What is owed has nobody else to try it: if it may be repeated, at least so often, whatever the policy of the act says. */
const minCompensationAttempts = 10;
/** So many senders that vanished in the middle of one item are no coincidence: it takes its process down. */
const maxInterruptions = 20;

/** Its policy has no attempt left. */
export function isExhausted(item: Item): boolean {
  const { attempts } = item.definition!;
  const limit = item.isCompensation ? Math.max(attempts, minCompensationAttempts) : attempts;
  return isPoison(item) || item.history().failures >= limit;
}

/** Its senders vanish in the middle of it, again and again. */
export function isPoison({ records }: Pick<Item, "records">): boolean {
  const lost = records.slice(restartOf(records) + 1).filter((record) => {
    const settled = record.kind === "effect.settled" || record.kind === "obligation.settled";
    return settled && record.data.reason === "lease_lost";
  });
  return lost.length >= maxInterruptions;
}
