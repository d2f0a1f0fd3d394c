import type pg from "pg";
import { sqlFiles } from "../sql/files.ts";
import { type Applied, loadMigrations, pendingMigrations } from "../sql/migrations.ts";
import { qualify } from "../sql/statement.ts";
import type { Connections } from "./connections.ts";

export const migrations = loadMigrations(sqlFiles(new URL("migrations/", import.meta.url)));
const newest = migrations.at(-1)?.number ?? 0;

/** Any number, the same for every Tape: two processes must not migrate one schema at once. */
const lockKey = 7_216_503;

/** One transaction under an advisory lock: others wait, a crash leaves the schema as it was. Returns the version. */
export async function migrate(client: pg.ClientBase, connections: Connections): Promise<number> {
  const { schema } = connections.settings;
  const done = await appliedBefore(client, connections);
  if (done !== undefined && pendingMigrations(migrations, done).length === 0) return newest;
  await client.query("begin");
  try {
    await client.query("set local statement_timeout = 0; set local lock_timeout = 0");
    await client.query("select pg_advisory_xact_lock($1, hashtext($2))", [lockKey, schema]);
    await client.query(`create schema if not exists "${schema}"`);
    await connections.query(client, "migrations.create", {});
    for (const migration of pendingMigrations(migrations, (await appliedBefore(client, connections)) ?? [])) {
      for (const statement of migration.statements) await client.query(qualify(statement, schema));
      const { number, name, checksum } = migration;
      await connections.query(client, "migrations.add", { number, name, checksum });
    }
    await client.query("commit");
  } catch (error) {
    await client.query("rollback").catch(() => {});
    throw error;
  }
  return newest;
}

/** undefined: the schema is not there yet. */
async function appliedBefore(client: pg.ClientBase, connections: Connections): Promise<Applied[] | undefined> {
  const { rows } = await client.query("select to_regclass($1) as found", [
    `"${connections.settings.schema}".migrations`,
  ]);
  if ((rows[0] as { found: string | null }).found === null) return undefined;
  return (await connections.query(client, "migrations.list", {})).rows as unknown as Applied[];
}
