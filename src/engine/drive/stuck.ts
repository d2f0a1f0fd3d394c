import { TapeError } from "../../model/errors.ts";
import type { Store } from "../../store/contract/store.ts";
import { journalPages } from "../../store/read-all.ts";
import type { DriveHandle } from "../core/handle.ts";
import type { StuckRecord } from "../core/stuck-records.ts";

/**
 * Resumes a run that is STUCK on an effect once an operator has resolved that effect. true: the run resumes, and its
 * journal has the record. A run that is STUCK for another reason needs a redrive.
 */
export async function unstickIfResolved(drive: DriveHandle): Promise<boolean> {
  const { stuck } = drive.history;
  if (stuck === undefined) return true;
  if (!drive.waits.resolves(stuck)) return false;
  const { store, tenant, runId, log } = drive.options;
  const run = await store.read.run(tenant, runId);
  if (run?.status !== "STUCK") return run !== undefined;
  const to = run.stuckFrom === "ENDING" || run.stuckFrom === "COMPENSATING" ? run.stuckFrom : "LIVE";
  await drive.journal.append([{ kind: "run.unstuck", data: { to } }]);
  log("info", "run.unstuck", { run: runId });
  return true;
}

/** Why a run is STUCK, from its journal, for callers that wait for its result. */
export async function stuckError(store: Store, tenant: string, run: string): Promise<TapeError> {
  let last: { readonly data: StuckRecord; readonly at: number } | undefined;
  const { begins = 1 } = (await store.read.run(tenant, run))?.lease ?? {};
  for await (const page of journalPages((from) => store.read.journal(tenant, { run }, { from }), begins)) {
    for (const record of page) if (record.kind === "run.stuck") last = record;
  }
  const why = last?.data.reason.replace(/^TAPE_\w+: /, "") ?? "its journal has no reason";
  const detail = (last?.data.detail ?? {}) as Readonly<Record<string, unknown>>;
  const effects = last?.data.effects;
  const details = { ...detail, run, ...(last && { since: last.at }), ...(effects && { effects }) };
  const then = effects === undefined ? "; fix that, then redrive the run" : "";
  return new TapeError("TAPE_RUN_STUCK", `run ${run} needs an operator: ${why}${then}`, details);
}
