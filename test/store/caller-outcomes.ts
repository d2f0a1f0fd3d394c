import type { NewRecord } from "../../src/model/records.ts";
import type { AppendResult, StepTransaction } from "../../src/store/contract/store.ts";
import { BodyThrew } from "../../src/store/contract/transaction.ts";
import { record } from "../../testkit/conformance/frame.ts";
import { codeOf } from "./postgres/scene.ts";

/** The record of a transactional step at position 0. */
export const done = (value: unknown): NewRecord =>
  record("step.done", { pos: 0, name: "take", value, transaction: true });

/** The code of a rejection, or the error of the body. */
export async function outcomeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return "done";
  } catch (error) {
    if (!(error instanceof BodyThrew)) return codeOf(Promise.reject(error));
    return `body: ${await codeOf(Promise.reject(error.cause))}`;
  }
}

/** Executes a step whose run has only its first record. */
export async function stepOn(
  transaction: StepTransaction,
  run: { readonly fence: Parameters<StepTransaction["commit"]>[0] },
): Promise<AppendResult> {
  await transaction.execute();
  return transaction.commit(run.fence, 1, done);
}
