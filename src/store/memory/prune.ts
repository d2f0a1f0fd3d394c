import { sizeOf } from "../../base/codec.ts";
import { everyTenant } from "../../model/quota.ts";
import { changed, none, page, present, row, rows, type Statements } from "./statement.ts";
import { keyOf } from "./table.ts";
import type { LeaseRow, RecordRow, RunRow, Tables } from "./tables.ts";

type Run = { readonly run: number };
export interface Buried extends Record<"tenant" | "id" | "token", string> {
  readonly journal: number;
  readonly createdAt: number;
  readonly endedAt: number | null;
}

const undone: readonly string[] = ["COMPENSATED", "DISCHARGED"];

/** Deleting finished runs; one statement for each table, as the plan asks for them. */
export const prune = {
  "prune.find"(t, p: { tenant: string; before: number; limit: number }) {
    const over = ({ ended_at }: RunRow): boolean => ended_at !== null && ended_at < p.before;
    const found = t.runs.by
      .tenant(p.tenant)
      .filter(
        (run) =>
          run.parent === null &&
          t.runs.by.root(run.journal).every(over) &&
          t.effects.by.root(run.journal).every(({ role, status }) => role === "effect" || undone.includes(status)),
      );
    const oldest = page(
      found,
      p.limit,
      (run) => run.ended_at!,
      (run) => run.journal,
    );
    return rows(oldest.map(({ journal }) => ({ journal })));
  },

  "prune.members"(t, p: Run) {
    const members = t.runs.by.root(p.run);
    return rows(
      members.map(({ journal, id, created_at, ended_at }) => {
        return { journal, id, created_at, ended_at, token: String(t.leases.get(journal)?.token) };
      }),
    );
  },

  "prune.tombstone"(t, p: Buried, { at }) {
    const { tenant, id, token, journal, createdAt, endedAt } = p;
    t.tombstones.insert({ tenant, id, token: BigInt(token), at, journal, created_at: createdAt, ended_at: endedAt });
    return changed(1);
  },

  "prune.usage"(t, p: Run) {
    const metered = t.quotas.get(everyTenant)?.metered ?? null;
    const quota = t.quotas.get(t.leases.get(p.run)?.tenant ?? "");
    if (metered === null || quota === undefined) return none;
    const measured = recordsOf(t, p.run).filter(({ id }) => id <= metered);
    const bytes = measured.reduce((sum, { body }) => sum + sizeOf(body), 0);
    t.quotas.update(quota, { bytes_used: Math.max(0, quota.bytes_used - bytes) });
    return changed(1);
  },

  "prune.records": (t, p: Run) => changed(t.records.deleteAll(recordsOf(t, p.run))),

  "prune.leases": (t, p: Run) => changed(t.leases.deleteAll(journalsOf(t, p.run))),
  "prune.effects": (t, p: Run) => changed(t.effects.deleteAll(t.effects.by.run(p.run))),
  "prune.business_keys": (t, p: Run) => changed(t.claims.deleteAll(t.claims.by.run(p.run))),
  "prune.gates": (t, p: Run) => changed(t.gates.deleteAll(t.gates.by.run(p.run))),
  "prune.timers": (t, p: Run) => changed(t.timers.deleteAll(t.timers.by.run(p.run))),
  "prune.budgets": (t, p: Run) => changed(t.budgets.deleteAll(t.budgets.by.run(p.run))),
  "prune.keys": (t, p: Run) =>
    changed(t.noteKeys.deleteAll([p.run, -p.run].flatMap((journal) => t.noteKeys.by.journal(journal)))),
  "prune.run": (t, p: Run) => changed(t.runs.deleteAll(present(t.runs.get(p.run)))),

  "tombstone.find"(t, p: { tenant: string; id: string }) {
    const tombstone = t.tombstones.get(keyOf(p.tenant, p.id));
    return row(tombstone && { token: String(tombstone.token) });
  },

  "tombstone.place"(t, p: { tenant: string; journal: number }) {
    return row(t.tombstones.by.journal(p.journal).find(({ tenant }) => tenant === p.tenant));
  },
} satisfies Statements;

function recordsOf(t: Tables, run: number): RecordRow[] {
  const numbers = journalsOf(t, run).flatMap(({ journal }) => [journal, -journal]);
  return numbers.flatMap((journal) => t.records.by.journal(journal));
}

/** The leases of the run's journals: its own and its items'. */
function journalsOf(t: Tables, run: number): LeaseRow[] {
  return [t.leases.get(run), ...t.leases.by.items(run)].filter((lease) => lease !== undefined);
}
