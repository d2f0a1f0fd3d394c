import { makeFence } from "../../src/model/fence.ts";
import type { NewRecord } from "../../src/model/records.ts";
import type { AppendRequest, Store } from "../../src/store/contract/store.ts";

/**
 * What must not compile. Never executed: `tsc --noEmit` is part of the test command, and it reports an expected error
 * that does not occur.
 */
export async function unfenced(store: Store, entry: AppendRequest): Promise<void> {
  // @ts-expect-error a journal write without a fence
  await store.fenced.append(entry);
  // @ts-expect-error a fence as an object literal: it must come from a granted term
  await store.fenced.append({ tenant: "t", journal: 1, token: 1n, nonce: 1n }, entry);
  // @ts-expect-error the same in a batch
  await store.fenced.appendAll([[{ tenant: "t", journal: 1, token: 1n, nonce: 1n }, entry]]);
  // @ts-expect-error no other group of the contract accepts records
  await store.intake.append(makeFence("t", 1, 1n, 1n), entry);
  // @ts-expect-error a renewal needs a fence, too
  await store.claim.renew([{ fence: { tenant: "t", journal: 1, token: 1n, nonce: 1n }, progress: 0 }]);
}

export const wrong: NewRecord[] = [
  // @ts-expect-error unknown kind
  { kind: "step.dome", data: { pos: 0, name: "a" } },
  // @ts-expect-error a step needs a position
  { kind: "step.done", data: { name: "a" } },
  // @ts-expect-error tokens are never numbers
  { kind: "run.pruned", data: { tenant: "t", id: "r", token: 1 } },
];

export const right: NewRecord[] = [
  { kind: "step.done", data: { pos: 0, name: "a", value: 1 } },
  { kind: "run.ended", data: { status: "COMPLETED", notesTaken: 0, outcome: undefined } },
];
