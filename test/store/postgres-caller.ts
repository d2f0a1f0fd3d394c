import pg from "pg";
import type { CallerFixture } from "../../testkit/conformance/index.ts";

export const callerTable = "create table caller_rows(row text not null)";

/** A caller with its own pool for the store's database, which has a table `caller_rows`. */
export function postgresCaller(url: string, admin: pg.Client): CallerFixture & { close(): Promise<void> } {
  let made: pg.Pool | undefined;
  const clients: pg.PoolClient[] = [];
  const pool = (): pg.Pool => {
    made ??= new pg.Pool({ connectionString: url, max: 8 });
    return made;
  };
  const insert = async (client: unknown, row: string): Promise<void> => {
    await (client as pg.PoolClient).query("insert into caller_rows values ($1)", [row]);
  };
  return {
    source: { connect: () => pool().connect() },
    insert,
    connect: async () => {
      const client = await pool().connect();
      clients.push(client);
      const run = async (text: string): Promise<void> => void (await client.query(text));
      return {
        transaction: client,
        begin: () => run("begin"),
        commit: () => run("commit"),
        rollback: () => run("rollback"),
        insert: (row) => insert(client, row),
      };
    },
    rows: async () => {
      const { rows } = await admin.query<{ row: string }>("select row from caller_rows order by row");
      return rows.map(({ row }) => row);
    },
    close: async () => {
      for (const client of clients) client.release(true);
      await made?.end();
    },
  };
}
