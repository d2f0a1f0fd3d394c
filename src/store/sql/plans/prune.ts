import { erasedText } from "../../../model/erasure.ts";
import { encodeBody } from "../../../model/projection.ts";
import type { RecordData } from "../../../model/records.ts";
import type { ArchivedFile } from "../../contract/retention.ts";
import type { AuditInfo } from "../../contract/store.ts";
import { type Plan, query, queryRows } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";
import { passedPosition } from "./events.ts";
import { recordOperatorAction } from "./service.ts";

/** Tables with rows of runs; the run itself is last. */
const pruned = [
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
  "labels",
  "due",
  "runs",
] as const;

/** Which finished runs to delete. `open`: a cursor's position; undefined: also what a sink has not passed. */
export interface PruneRequest {
  readonly tenant: string;
  readonly before: number;
  readonly limit: number;
  readonly audit: AuditInfo | undefined;
  readonly open: ((cursor: string) => string) | undefined;
}

/** Trees of one set of statements: their parameters stay small. */
const treesAtOnce = 500;

export function* prunePlan({ tenant, before, limit, audit, open }: PruneRequest): Plan<number> {
  const passed = open === undefined ? undefined : yield* passedPosition(tenant, open);
  const [stamp = null, afterJournal = null, afterSeq = null] = passed ?? [];
  const found = yield* queryRows("prune.find", { tenant, before, limit, stamp, afterJournal, afterSeq });
  const roots = found.map(({ journal }) => Number(journal));
  let count = 0;
  for (let k = 0; k < roots.length; k += treesAtOnce) {
    const members = yield* membersOf(tenant, roots.slice(k, k + treesAtOnce));
    count += yield* deleteRuns(tenant, members, yield* headsOf(members));
  }
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

export type Member = RowOf<"prune.members">;
export type Head = RowOf<"prune.heads">;

const journalsOf = (members: readonly Member[]): string =>
  JSON.stringify(members.map(({ journal }) => Number(journal)));

export const membersOf = (tenant: string, roots: readonly number[]): Plan<readonly Member[]> =>
  queryRows("prune.members", { tenant, roots: JSON.stringify(roots), erased: erasedText });

export const headsOf = (members: readonly Member[]): Plan<readonly Head[]> =>
  queryRows("prune.heads", { runs: journalsOf(members) });

/** Runs among them with an obligation or effect that is not settled. */
export function* unsettledOf(members: readonly Member[]): Plan<ReadonlySet<number>> {
  const rows = yield* queryRows("prune.doubt", { runs: journalsOf(members) });
  return new Set(rows.map(({ run }) => Number(run)));
}

/** Deletes runs with everything of theirs; tombstones and one record for each stay. Whole trees, by its caller. */
export function* deleteRuns(
  tenant: string,
  members: readonly Member[],
  heads: readonly Head[],
  file?: ArchivedFile,
): Plan<number> {
  if (members.length === 0) return 0;
  const runs = journalsOf(members);
  const own = new Set([...members, ...heads].map(({ journal }) => Math.abs(Number(journal))));
  const journals = JSON.stringify(heads.map(({ journal }) => Number(journal)));
  yield* query("prune.tombstones", { runs, archive: file?.archive ?? null });
  const bodies = members.map(({ id, token }) => {
    const data: RecordData<"run.pruned"> = { tenant, id, token: token!, ...file };
    return encodeBody(data);
  });
  yield* query("store.records", { kind: "run.pruned", bodies: JSON.stringify(bodies) });
  yield* query("prune.usage", { tenant, runs, journals });
  yield* query("prune.records", { journals });
  for (const table of pruned) yield* query(`prune.${table}`, { runs });
  yield* query("prune.leases", { journals: JSON.stringify([...own]) });
  return members.length;
}
