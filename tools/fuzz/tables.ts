import { createHash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";

/** Every row of one tenant as text, by table. */
export type Dump = ReadonlyMap<string, ReadonlySet<string>>;

export interface Tables {
  dump(tenant: string): Promise<Dump>;
  close(): Promise<void>;
}

interface Table {
  readonly name: string;
  readonly columns: readonly string[];
}

/** Tables of the whole store, or written with every call. */
const notTenants: ReadonlySet<string> = new Set(["meta", "migrations", "witness", "audit_heads"]);
/** Columns that any call may change: the last use of a token; a stall, which the store notices when it rejects a renewal. */
const volatile: ReadonlySet<string> = new Set([
  "used_at",
  "stalled",
  // Counts for a quota: a rejected call stores its count, so that the next calls need no count of their own.
  "runs_used",
  "runs_at",
  "bytes_used",
  "metered",
  "metered_at",
]);
/**
 * Rows that rejected calls may leave behind: an audit entry, the error under the call's idempotency key, and the row that
 * counts a tenant under a default quota.
 */
const rejectionRows: Readonly<Record<string, RegExp>> = {
  audit: /"action":"(call\.refused|signin\.failed|token\.bootstrap_used)"/,
  idempotency_keys: /"types":\{"":"error"\}/,
  quotas: /^(?!.*"(runs|bytes|schedules|streams)":"?-?\d)/,
};
const maxRowLength = 4_000;

export async function openTables(url: string): Promise<Tables> {
  return url.startsWith("sqlite:") ? sqliteTables(url.slice("sqlite:".length)) : postgresTables(url);
}

function sqliteTables(file: string): Tables {
  const database = new DatabaseSync(file, { readOnly: true });
  const tables = database
    .prepare(
      "select m.name, group_concat(c.name) columns from sqlite_schema m, pragma_table_info(m.name) c where m.type = 'table' group by m.name",
    )
    .all()
    .map(({ name, columns }) => ({ name: String(name), columns: String(columns).split(",") }));
  const reads = queriesOf(tables, "", "?").map(({ name, sql }) => {
    const statement = database.prepare(sql);
    statement.setReadBigInts(true);
    return { name, statement };
  });
  const text = (_key: string, value: unknown): unknown => (typeof value === "bigint" ? String(value) : value);
  return {
    dump: async (tenant) =>
      new Map(
        reads.map(({ name, statement }) => [
          name,
          rowsOf(
            name,
            statement.all(tenant).map((row) => JSON.stringify(row, text)),
          ),
        ]),
      ),
    close: async () => database.close(),
  };
}

async function postgresTables(url: string): Promise<Tables> {
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query<{ name: string; columns: string }>(
    "select table_name as name, string_agg(column_name, ',') as columns from information_schema.columns where table_schema = 'tape' group by 1",
  );
  const tables = rows.map(({ name, columns }) => ({ name, columns: columns.split(",") }));
  const reads = queriesOf(tables, "tape.", "$1");
  return {
    async dump(tenant) {
      const dump = new Map<string, ReadonlySet<string>>();
      for (const { name, sql } of reads) {
        const query = {
          name: `fuzz ${name}`,
          text: `select row_to_json(r)::text as row from (${sql}) r`,
          values: [tenant],
        };
        const { rows: found } = await client.query<{ row: string }>(query);
        dump.set(
          name,
          rowsOf(
            name,
            found.map(({ row }) => row),
          ),
        );
      }
      return dump;
    },
    close: () => client.end(),
  };
}

/** A table belongs to a tenant by its own column, or by the journal of its rows. New tables are found automatically. */
function queriesOf(tables: readonly Table[], schema: string, tenant: string): { name: string; sql: string }[] {
  const ofTenant = `(select journal from ${schema}leases where tenant = ${tenant})`;
  return tables.flatMap(({ name, columns }) => {
    if (notTenants.has(name)) return [];
    const shown = columns.filter((column) => !volatile.has(column)).map((column) => `"${column}"`);
    const where = columns.includes("tenant")
      ? `tenant = ${tenant}`
      : columns.includes("journal")
        ? `abs(journal) in ${ofTenant}`
        : undefined;
    if (where === undefined) return [];
    return [{ name, sql: `select ${shown.join(", ")} from ${schema}${name} where ${where}` }];
  });
}

function rowsOf(table: string, rows: readonly string[]): ReadonlySet<string> {
  const excused = rejectionRows[table];
  return new Set(
    rows
      .filter((row) => excused?.test(row.replaceAll("\\", "")) !== true)
      .map((row) =>
        row.length <= maxRowLength ? row : `${row.slice(0, 500)}… ${createHash("sha256").update(row).digest("hex")}`,
      ),
  );
}

const noRows: ReadonlySet<string> = new Set();

/** Describes rows that are in only one of the dumps; empty: they are equal. */
export function difference(before: Dump, after: Dump): string[] {
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].flatMap((name) => {
    const [old, now] = [before.get(name) ?? noRows, after.get(name) ?? noRows];
    return [
      ...[...old].filter((row) => !now.has(row)).map((row) => `- ${name} ${row}`),
      ...[...now].filter((row) => !old.has(row)).map((row) => `+ ${name} ${row}`),
    ];
  });
}
