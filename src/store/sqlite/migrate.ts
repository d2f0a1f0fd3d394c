import type { DatabaseSync } from "node:sqlite";
import type { Log } from "../../base/log.ts";
import { sqlFiles } from "../sql/files.ts";
import {
  type AppliedMigration,
  appliedOf,
  loadMigrations,
  type Migration,
  newestOf,
  pendingMigrations,
} from "../sql/migrations.ts";
import { Statements } from "./statements.ts";

export const migrations = loadMigrations(sqlFiles(new URL("migrations/", import.meta.url)));
const noTimes = { at: 0, now: 0, steady: 0 };

/**
 * Applies each file in one BEGIN IMMEDIATE: other processes wait no longer than that, and a crash leaves each applied
 * or not. A new store gets all of them at once. Returns the version.
 */
export function migrate(db: DatabaseSync, log: Log, known: readonly Migration[] = migrations): number {
  const statements = new Statements(db);
  const apply = (migration: Migration): void => {
    for (const { text } of migration.steps) db.exec(text);
    const { number, name, checksum } = migration;
    statements.run("migrations.add", { number, name, checksum }, noTimes);
  };
  const fresh = inTransaction(db, statements, () => {
    statements.run("migrations.create", {}, noTimes);
    if (applied(statements).length > 0) return false;
    for (const migration of known) apply(migration);
    return true;
  });
  if (fresh) return newestOf(known);
  for (const migration of pendingMigrations(known, applied(statements))) {
    log("info", "store.migrating", { migration: migration.name });
    inTransaction(db, statements, () => {
      // Another process may have been faster.
      if (pendingMigrations(known, applied(statements)).includes(migration)) apply(migration);
    });
    log("info", "store.migrated", { migration: migration.name });
  }
  return newestOf(known);
}

/** Whether a process has to migrate this file, or is about to: true for a readable store that is behind. */
export function isBehind(db: DatabaseSync, known: readonly Migration[] = migrations): boolean {
  try {
    const done = applied(new Statements(db)).length;
    return done > 0 && done < known.length;
  } catch {
    return false; // not a store yet, or locked for readers, too
  }
}

const applied = (statements: Statements): AppliedMigration[] =>
  appliedOf(statements.run("migrations.list", {}, noTimes).rows);

function inTransaction<T>(db: DatabaseSync, statements: Statements, work: () => T): T {
  statements.begin();
  try {
    const result = work();
    statements.commit();
    return result;
  } catch (error) {
    if (db.isTransaction) db.exec("rollback");
    throw error;
  }
}
