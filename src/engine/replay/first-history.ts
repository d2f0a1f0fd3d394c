import { fingerprint } from "../../base/canonical.ts";
import type { Term } from "../../model/lease.ts";
import type { JournalRecord } from "../../model/records.ts";
import type { RunSpec } from "../../store/contract/store.ts";
import { recordOf } from "../../store/decode-rows.ts";
import { foldHistory, type History } from "./history.ts";
import { asStored } from "./stored-value.ts";

/** Histories of runs whose code has never been called: their journals need not be read. */

/** The history of a new run. Its input goes through the codec, so that it is what replay will see. */
export function freshHistory(
  spec: Pick<RunSpec, "id" | "workflow" | "input" | "checked" | "maxStallMs" | "deadlineMs">,
): History {
  const { id, workflow, input, checked, maxStallMs, deadlineMs } = spec;
  const data = {
    id,
    workflow,
    input: asStored(input),
    ...(checked && { checked }),
    ...(maxStallMs !== undefined && { maxStallMs }),
    ...(deadlineMs !== undefined && { deadlineMs }),
    get inputHash() {
      return fingerprint(input); // rarely needed here; the store has computed it
    },
  };
  const created: JournalRecord = { kind: "run.created", data, journal: 0, seq: 1, token: 0n, at: 0 };
  return foldHistory([created], []);
}

/** The history of a run that is admitted with nothing but its first record; undefined: its journal must be read. */
export function admittedHistory({
  created: body,
  lease,
}: {
  readonly created?: string;
  readonly lease: { readonly notes: number; readonly term: Term };
}): History | undefined {
  if (body === undefined || lease.notes > 0) return undefined;
  const { journal, head } = lease.term;
  const created = recordOf({ journal, seq: 1, token: "0", at: 0, kind: "run.created", body });
  if (created.kind !== "run.created" || created.data.fork !== undefined) return undefined;
  return foldHistory([created], [], { head });
}
