import { makeFence } from "../../src/model/fence.ts";
import type { NewRecord } from "../../src/model/records.ts";
import type { AppendRequest, Store } from "../../src/store/contract/store.ts";

/**
 * What must not compile. Never run: `tsc --noEmit` is part of the test command, and an expected error that does not occur
 * is an error itself.
 */
export async function unfenced(store: Store, entry: AppendRequest): Promise<void> {
  // @ts-expect-error a journal write without a fence
  await store.fenced.append(entry);
  // @ts-expect-error a fence written down as an object: it must come from a term that the store granted
  await store.fenced.append({ tenant: "t", journal: 1, token: 1n, nonce: 1n }, entry);
  // @ts-expect-error the same in a batch
  await store.fenced.appendAll([[{ tenant: "t", journal: 1, token: 1n, nonce: 1n }, entry]]);
  // @ts-expect-error records cannot be given to any other group of the contract
  await store.intake.append(makeFence("t", 1, 1n, 1n), entry);
  // @ts-expect-error a renewal needs a fence too
  await store.claim.renew([{ fence: { tenant: "t", journal: 1, token: 1n, nonce: 1n }, progress: 0 }]);
}

export const wrong: NewRecord[] = [
  // @ts-expect-error there is no such kind
  { kind: "step.dome", data: { pos: 0, name: "a" } },
  // @ts-expect-error a step has a position
  { kind: "step.done", data: { name: "a" } },
  // @ts-expect-error tokens are never numbers
  { kind: "run.pruned", data: { tenant: "t", id: "r", token: 1 } },
];

export const right: NewRecord[] = [
  { kind: "step.done", data: { pos: 0, name: "a", value: 1 } },
  { kind: "run.ended", data: { status: "COMPLETED", notesTaken: 0, outcome: undefined } },
];
