import { encodeBody } from "../../../model/projection.ts";
import type { RecordData } from "../../../model/records.ts";
import type { AuditInfo } from "../../contract/store.ts";
import { type Plan, query, queryRows } from "../plan.ts";
import { passedPosition } from "./events.ts";
import { recordOperatorAction } from "./service.ts";

const pruned = [
  "usage",
  "records",
  "effects",
  "business_keys",
  "gates",
  "published",
  "replies",
  "timers",
  "budgets",
  "chunks",
  "streams",
  "blobs",
  "keys",
  "leases",
  "run",
] as const;

/** Which finished runs to delete. `open`: a cursor's position; undefined: also what a sink has not passed. */
export interface PruneRequest {
  readonly tenant: string;
  readonly before: number;
  readonly limit: number;
  readonly audit: AuditInfo | undefined;
  readonly open: ((cursor: string) => string) | undefined;
}

export function* prunePlan({ tenant, before, limit, audit, open }: PruneRequest): Plan<number> {
  const passed = open === undefined ? undefined : yield* passedPosition(tenant, open);
  const [stamp = null, afterJournal = null, afterSeq = null] = passed ?? [];
  const roots = yield* queryRows("prune.find", { tenant, before, limit, stamp, afterJournal, afterSeq });
  let count = 0;
  for (const root of roots) count += yield* pruneTree(tenant, Number(root.journal));
  if (audit !== undefined)
    yield* recordOperatorAction("runs.prune", audit, {
      tenant,
      before,
      pruned: count,
      ...(open === undefined && { past: true }),
    });
  yield* query("dead_letter.purge", { tenant, before });
  return count;
}

function* pruneTree(tenant: string, root: number): Plan<number> {
  const rows = yield* queryRows("prune.members", { run: root });
  for (const row of rows) {
    const run = Number(row.journal);
    const { id } = row;
    const token = row.token as string;
    const position = { journal: run, createdAt: row.created_at, endedAt: row.ended_at };
    yield* query("prune.tombstone", { tenant, id, token: BigInt(token), ...position });
    const data: RecordData<"run.pruned"> = { tenant, id, token };
    yield* query("store.record", { kind: "run.pruned", body: encodeBody(data) });
    for (const table of pruned) yield* query(`prune.${table}`, { run });
  }
  return rows.length;
}
