import { defined } from "../base/defined.ts";
import { assertKnownKeys } from "../sdk/validate.ts";
import type { OperatorReason, Store } from "../store/contract/store.ts";

/** Whose payloads are erased, and why. */
export interface EraseRequest extends OperatorReason {
  /** All runs of its tree: a part of a tree is refused, because its records have copies of each other's payloads. */
  readonly tree?: boolean;
  /** Called after each part, with the number of records so far. */
  readonly onPart?: (records: number) => void;
}

/** What an erasure has changed. */
export interface ErasureResult {
  /** The runs of the tree. */
  readonly runs: number;
  /** Records that held payloads. */
  readonly records: number;
  /** Everything had been erased before; nothing was changed. */
  readonly already?: true;
  /** Other runs with copies of its input: the run that started it, and the one from which it was forked. */
  readonly copies?: readonly string[];
}

/**
 * Erases the payloads of a run that has ended, part by part, so that no other writer waits long. If this process dies in
 * between, a repeat erases the rest.
 */
export async function eraseRun(
  { store, tenant, label }: { readonly store: Store; readonly tenant: string; readonly label: string },
  run: string,
  request: EraseRequest,
): Promise<ErasureResult> {
  assertKnownKeys("erase", request, ["reason", "by", "tree", "onPart"]);
  const { onPart, by = label, ...rest } = request;
  const step = { ...rest, by };
  const { next, runs = 1, already, copies, ...first } = await store.intake.eraseRun(tenant, run, step);
  let { records } = first;
  for (let after = next; after !== undefined; ) {
    onPart?.(records);
    const part = await store.intake.eraseRun(tenant, run, { ...step, after });
    records += part.records;
    after = part.next;
  }
  return { runs, records, ...defined({ already, copies }) };
}
