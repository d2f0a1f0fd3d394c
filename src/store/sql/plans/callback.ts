import type { CallbackRef } from "../../../model/callback-token.ts";
import { isTapeError, TapeError } from "../../../model/errors.ts";
import type { RecordData } from "../../../model/records.ts";
import type { CallbackBody } from "../../contract/store.ts";
import { unknownCallback } from "../../validate/arguments.ts";
import { type Plan, type PlanContext, query, queryRow } from "../plan.ts";
import { note } from "./intake.ts";

type DeliverResult = { readonly duplicate: boolean };

/** A callback: sends its signal and marks the gate as called, both or nothing. */
export function* deliverPlan(
  context: PlanContext,
  tenant: string | undefined,
  { journal, pos }: CallbackRef,
  body: CallbackBody,
): Plan<DeliverResult> {
  const gate = yield* queryRow("callback.find", { run: journal, pos });
  if (gate === undefined || (tenant !== undefined && gate.tenant !== tenant)) throw unknownCallback();
  if (gate.called !== null) return { duplicate: true };
  if (gate.status !== "OPEN") throw unknownCallback();
  const data: RecordData<"signal.sent"> = { name: gate.name, value: valueFor(body, gate.callback === "raw"), pos };
  // The note first, as in every append: the order of the locks is the same.
  const n = (yield* note(context, { tenant: gate.tenant, journal }, "signal.sent", data))!;
  if ((yield* query("gate.call", { run: journal, pos, note: n })).count > 0) return { duplicate: false };
  throw new TapeError("TAPE_ILLEGAL_TRANSITION", "another call was faster, or the gate has timed out", {
    journal,
    pos,
  });
}

/** A call that another has overtaken is repeated: then it reads what the other has done. */
export async function deliverOnce(deliver: () => Promise<DeliverResult>): Promise<DeliverResult> {
  try {
    return await deliver().catch((error: unknown) => {
      if (isTapeError(error, "TAPE_ILLEGAL_TRANSITION")) return deliver();
      throw error;
    });
  } catch (error) {
    throw isTapeError(error, "TAPE_RUN_ENDED") ? unknownCallback() : error;
  }
}

function valueFor({ value, raw }: CallbackBody, isRaw: boolean): unknown {
  if (isRaw && raw !== undefined) return raw;
  if (raw === undefined || value !== undefined) return value;
  throw new TapeError("TAPE_BAD_INPUT", "the body of this callback must be JSON", { field: "body" });
}
