import type { DatabaseSync } from "node:sqlite";
import { sqlFiles } from "../sql/files.ts";
import { type Applied, loadMigrations, pendingMigrations } from "../sql/migrations.ts";
import { Statements } from "./database.ts";

export const migrations = loadMigrations(sqlFiles(new URL("migrations/", import.meta.url)));
const noTimes = { at: 0, now: 0 };

/** Runs inside one BEGIN IMMEDIATE: other processes wait, a crash leaves the schema as it was. Returns the version. */
export function migrate(db: DatabaseSync): number {
  const statements = new Statements(db);
  statements.begin();
  try {
    statements.run("migrations.create", {}, noTimes);
    const applied = statements.run("migrations.list", {}, noTimes).rows as unknown as Applied[];
    for (const { number, name, checksum, statements: changes } of pendingMigrations(migrations, applied)) {
      for (const change of changes) db.exec(change);
      statements.run("migrations.add", { number, name, checksum }, noTimes);
    }
    statements.commit();
  } catch (error) {
    if (db.isTransaction) db.exec("rollback");
    throw error;
  }
  return migrations.at(-1)?.number ?? 0;
}
