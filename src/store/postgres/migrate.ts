import type pg from "pg";
import { type Applied, loadMigrations, pendingMigrations } from "../sql/migrations.ts";
import { qualify } from "../sql/statement.ts";

export const migrations = loadMigrations(new URL("migrations/", import.meta.url));

/** Any number, the same for every Tape: two processes must not migrate one schema at once. */
const lockKey = 7_216_503;

/** One transaction under an advisory lock: others wait, a crash leaves the schema as it was. Returns the version. */
export async function migrate(client: pg.ClientBase, schema: string): Promise<number> {
  const done = await appliedBefore(client, schema);
  if (done !== undefined && pendingMigrations(migrations, done).length === 0) return migrations.at(-1)?.number ?? 0;
  await client.query("begin");
  try {
    await client.query("set local statement_timeout = 0; set local lock_timeout = 0");
    await client.query("select pg_advisory_xact_lock($1, hashtext($2))", [lockKey, schema]);
    await client.query(`create schema if not exists "${schema}"`);
    await client.query(
      `create table if not exists "${schema}".migrations(number bigint primary key, name text not null, checksum text not null)`,
    );
    for (const migration of pendingMigrations(migrations, (await appliedBefore(client, schema)) ?? [])) {
      for (const statement of migration.statements) await client.query(qualify(statement, schema));
      const { number, name, checksum } = migration;
      await client.query(`insert into "${schema}".migrations(number, name, checksum) values ($1, $2, $3)`, [
        number,
        name,
        checksum,
      ]);
    }
    await client.query("commit");
  } catch (error) {
    await client.query("rollback").catch(() => {});
    throw error;
  }
  return migrations.at(-1)?.number ?? 0;
}

/** undefined: the schema is not there yet. */
async function appliedBefore(client: pg.ClientBase, schema: string): Promise<Applied[] | undefined> {
  const { rows } = await client.query("select to_regclass($1) as found", [`"${schema}".migrations`]);
  if ((rows[0] as { found: string | null }).found === null) return undefined;
  const applied = await client.query(`select number, name, checksum from "${schema}".migrations order by number`);
  return (applied.rows as { number: string | number; name: string; checksum: string }[]).map((row) => ({
    ...row,
    number: Number(row.number),
  }));
}
