import { existsSync } from "node:fs";
import { lateBuiltins } from "../../base/late-builtins.ts";
import { type PlannedStep, plannedSteps } from "../sql/migration-plan.ts";
import { appliedOf, type Migration, pendingMigrations } from "../sql/migrations.ts";
import { migrations } from "./migrate.ts";
import { Statements } from "./statements.ts";

/** What opening this file with this version would do. Changes nothing. */
export function planSqlite(file: string, known: readonly Migration[] = migrations): PlannedStep[] {
  if (!existsSync(file)) return plannedSteps(known, new Map(), true);
  const db = new lateBuiltins.sqlite.DatabaseSync(file, { readOnly: true, timeout: 1_000 });
  try {
    const times = { at: 0, now: 0, steady: 0 };
    const statements = new Statements(db);
    const { rows } = statements.run("migrations.list", {}, times);
    const runs = Number(statements.run("migrations.size", {}, times).rows[0]?.runs ?? 0);
    // Each run has a lease, and some records.
    const sizes = new Map([
      ["runs", runs],
      ["leases", runs],
      ["records", 5 * runs],
    ]);
    return plannedSteps(pendingMigrations(known, appliedOf(rows)), sizes, true);
  } finally {
    db.close();
  }
}
