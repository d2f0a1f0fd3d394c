import { createHash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";

/** Every row of one tenant, as text, by its table. */
export type Dump = ReadonlyMap<string, ReadonlySet<string>>;

export interface Tables {
  dump(tenant: string): Promise<Dump>;
  close(): Promise<void>;
}

interface Table {
  readonly name: string;
  readonly columns: readonly string[];
}

/** Of the whole store, or written with every call. */
const notTenants: ReadonlySet<string> = new Set(["meta", "migrations", "witness", "audit_heads"]);
/** When a token was used last; that a holder stalls, which the store notices when it refuses to renew its lease. */
const passing: ReadonlySet<string> = new Set([
  "used_at",
  "stalled",
  // What was counted for a quota: a refusal keeps its count, so that the next ones need none of their own.
  "runs_used",
  "runs_at",
  "bytes_used",
  "metered",
  "metered_at",
]);
/**
 * What calls that were refused may leave behind: an entry of the audit, the refusal itself under the call's key, and the
 * row in which a tenant under a default quota is counted.
 */
const ofRefusals: Readonly<Record<string, RegExp>> = {
  audit: /"action":"(call\.refused|signin\.failed|token\.bootstrap_used)"/,
  idempotency_keys: /"types":\{"":"error"\}/,
  quotas: /^(?!.*"(runs|bytes|schedules|streams)":"?-?\d)/,
};
const longestRow = 4_000;

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

/** A table belongs to a tenant by its own column, or by the journal that its rows are of. A new table is found by itself. */
function queriesOf(tables: readonly Table[], schema: string, tenant: string): { name: string; sql: string }[] {
  const ofTenant = `(select journal from ${schema}leases where tenant = ${tenant})`;
  return tables.flatMap(({ name, columns }) => {
    if (notTenants.has(name)) return [];
    const shown = columns.filter((column) => !passing.has(column)).map((column) => `"${column}"`);
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
  const excused = ofRefusals[table];
  return new Set(
    rows
      .filter((row) => excused?.test(row.replaceAll("\\", "")) !== true)
      .map((row) =>
        row.length <= longestRow ? row : `${row.slice(0, 500)}… ${createHash("sha256").update(row).digest("hex")}`,
      ),
  );
}

const noRows: ReadonlySet<string> = new Set();

/** What is in one and not in the other, in words; empty: they are the same. */
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
