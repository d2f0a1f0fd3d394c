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

/**
 * Evidence of attempts that happened beside the verdict: any after FAILED, and those of earlier attempts after the last
 * one has returned. Without those that are owed already. A read changed nothing, so it needs no compensation.
 */
export function surplusEvidence({ effect, evidence, records, status }: SurplusItem): readonly Evidence[] {
  const returned = status === "CONFIRMED" && records.some(isReturn) && effect.semantics === "non_idempotent";
  if (effect.role === "compensation" || effect.semantics === "read" || !(status === "FAILED" || returned)) return [];
  const happened = new Map<number, Evidence>();
  for (const entry of evidence) {
    const own = status === "FAILED" || entry.attempt < effect.attempt;
    // Attempts of an idempotent effect are one effect upstream.
    if (entry.happened && own) happened.set(effect.semantics === "idempotent" ? 0 : entry.attempt, entry);
  }
  return [...happened.values()].slice(records.filter(({ kind }) => kind === "obligation.surplus").length);
}

type Evidence = Item["evidence"][number];
type SurplusItem = Pick<Item, "effect" | "evidence" | "records" | "status">;

const isReturn = (record: Item["records"][number]): boolean =>
  record.kind === "effect.settled" && record.data.to === "CONFIRMED" && record.data.reason === "returned";
