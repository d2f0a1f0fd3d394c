import { TapeError } from "../../../model/errors.ts";
import type { ShardSession } from "./access.ts";
import { type TenantTable, tenantTables } from "./tables.ts";

/** Rows of one round trip. A row may have a megabyte, so there are not many. */
const rowsAtOnce = 100;
/** Rows deleted in one transaction: some milliseconds. */
const deletedAtOnce = 2_000;

/** What one table has of a tenant. */
interface Sum {
  readonly table: string;
  readonly rows: string;
  readonly sum: string;
}

/** Called in the transaction of each batch, and throws if another process has taken the move over. */
export type Holds = (session: ShardSession) => Promise<void>;

/** Copies all rows of a tenant, in short transactions: a long one would hold back the feed of the other tenants there. */
export async function copyTenant(
  source: ShardSession,
  target: ShardSession,
  tenant: string,
  holds: Holds,
): Promise<number> {
  let copied = 0;
  await source.transaction(async () => {
    for (const table of tenantTables) {
      const columns = (await columnsOf(target, table)).join(", ");
      const insert = `insert into tape.${table.name}(${columns}) select ${columns} from jsonb_populate_recordset(null::tape.${table.name}, $1::jsonb)`;
      const order = table.name === "audit" ? " order by t.n" : "";
      await source.rows(
        `declare moved no scroll cursor for select ${textOf(table)} as row from tape.${table.name} t where ${bound(table, tenant)}${order}`,
      );
      for (;;) {
        const rows = await source.rows<{ row: string }>(`fetch ${rowsAtOnce} from moved`);
        if (rows.length === 0) break;
        await target.transaction(async () => {
          await holds(target);
          await target.rows(insert, [`[${rows.map(({ row }) => row).join(",")}]`]);
        });
        copied += rows.length;
      }
      await source.rows("close moved");
    }
  }, "begin isolation level repeatable read read only");
  return copied;
}

/** Deletes all rows of a tenant, in short transactions. */
export async function clearTenant(session: ShardSession, tenant: string, holds: Holds): Promise<void> {
  for (const table of tenantTables.toReversed()) {
    for (;;) {
      const deleted = await session.transaction(async () => {
        await holds(session);
        return session.rows(
          `delete from tape.${table.name} x where x.ctid = any(array(
             select t.ctid from tape.${table.name} t where ${table.rows} limit ${deletedAtOnce})) returning 1`,
          [tenant],
        );
      });
      if (deleted.length < deletedAtOnce) break;
    }
  }
}

/** Compares counts and checksums of both copies, table by table. */
export async function compareTenant(source: ShardSession, target: ShardSession, tenant: string): Promise<void> {
  const [ours, theirs] = await Promise.all([sumsOf(source, tenant), sumsOf(target, tenant)]);
  for (const [k, { table, rows, sum }] of ours.entries()) {
    const copy = theirs[k]!;
    if (copy.rows === rows && copy.sum === sum) continue;
    const message = `the copy of ${table} differs: ${rows} rows here, ${copy.rows} there`;
    throw new TapeError("TAPE_SHARD_REFUSED", message, { table });
  }
}

async function sumsOf(session: ShardSession, tenant: string): Promise<Sum[]> {
  const sums: Sum[] = [];
  for (const table of tenantTables) {
    const [sum] = await session.rows<Omit<Sum, "table">>(
      `select count(*)::text as rows, coalesce(sum(('x' || substr(md5(${textOf(table)}), 1, 15))::bit(60)::bigint), 0)::text as sum
       from tape.${table.name} t where ${table.rows}`,
      [tenant],
    );
    sums.push({ table: table.name, ...sum! });
  }
  return sums;
}

/** A row as text, the same on every server: the keys of jsonb have an order of their own. */
const textOf = ({ without }: TenantTable): string =>
  without === undefined ? "to_jsonb(t)::text" : `(to_jsonb(t) - '${without}')::text`;

/** A cursor takes no parameters. */
const bound = ({ rows }: TenantTable, tenant: string): string =>
  rows.replaceAll("$1", () => `'${tenant.replaceAll("'", "''")}'`);

/** Without computed columns. */
async function columnsOf(session: ShardSession, { name, without = "" }: TenantTable): Promise<string[]> {
  const rows = await session.rows<{ name: string }>(
    `select quote_ident(a.attname) as name from pg_catalog.pg_attribute a
     where a.attrelid = 'tape.${name}'::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
       and a.attname <> $1 order by a.attnum`,
    [without],
  );
  return rows.map((row) => row.name);
}
