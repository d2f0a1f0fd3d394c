import type { DatabaseSync } from "node:sqlite";
import { type Applied, loadMigrations, pendingMigrations } from "../sql/migrations.ts";

export const migrations = loadMigrations(new URL("migrations/", import.meta.url));

/** Runs inside one BEGIN IMMEDIATE: other processes wait, a crash leaves the schema as it was. Returns the version. */
export function migrate(db: DatabaseSync): number {
  db.exec("begin immediate");
  try {
    db.exec(
      "create table if not exists migrations(number integer primary key, name text not null, checksum text not null) strict",
    );
    const applied = db
      .prepare("select number, name, checksum from migrations order by number")
      .all() as unknown as Applied[];
    for (const migration of pendingMigrations(migrations, applied)) {
      for (const statement of migration.statements) db.exec(statement);
      const { number, name, checksum } = migration;
      db.prepare("insert into migrations(number, name, checksum) values (?, ?, ?)").run(number, name, checksum);
    }
    db.exec("commit");
  } catch (error) {
    if (db.isTransaction) db.exec("rollback");
    throw error;
  }
  return migrations.at(-1)?.number ?? 0;
}
