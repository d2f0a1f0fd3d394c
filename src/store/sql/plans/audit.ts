import { defined } from "../../../base/defined.ts";
import type { RecordContext } from "../../../model/projection.ts";
import type { RecordData } from "../../../model/records.ts";
import { auditHash } from "../../audit.ts";
import type { AuditInfo } from "../../contract/store.ts";
import { auditEntryOf } from "../../decode-rows.ts";
import type { CheckedEntry } from "../../validate/entry.ts";
import { type Plan, query, queryRow } from "../plan.ts";

export interface AuditedAction {
  readonly tenant: string;
  readonly journal: number;
  readonly subject: string | null;
  /** The text of an `operator.action` record. */
  readonly body: string;
}

/**
 * Adds an entry to the tenant's audit log, sealed by a hash over it and the previous hash. Last in a transaction: the
 * next writer of an entry of this tenant waits for it.
 */
export function* auditPlan({ tenant, journal, subject, body }: AuditedAction): Plan<void> {
  const head = (yield* queryRow("audit.head", { tenant }))!;
  const moment = Number(head.at);
  const row = { tenant, n: Number(head.n), at: moment, journal, subject, body };
  const hash = auditHash(head.hash, auditEntryOf({ ...row, id: 0, hash: "" }));
  yield* query("audit.add", { ...row, moment, hash });
  yield* query("audit.seal", { tenant, hash });
}

/** One entry for each operator action among the records of an append. */
export function* auditRecords(place: RecordContext & { readonly tenant: string }, entry: CheckedEntry): Plan<void> {
  const { journal, tenant } = place;
  for (const [k, record] of entry.records.entries()) {
    if (record.kind !== "operator.action") continue;
    const subject = (yield* queryRow("audit.subject", { journal }))?.subject ?? null;
    yield* auditPlan({ tenant, journal, subject, body: entry.bodies[k]! });
  }
}

export function operatorActionBy(action: string, audit: AuditInfo, detail?: unknown): RecordData<"operator.action"> {
  const { by, reason, via } = audit;
  return { by, action, reason, ...defined({ detail, via }) };
}
