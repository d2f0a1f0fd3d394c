import { DatabaseSync } from "node:sqlite";
import type { CallerFixture } from "../../testkit/conformance/index.ts";

/** A caller with its own connections to the store's file, and a table of its own there. */
export function sqliteCaller(file: string): CallerFixture & { close(): void } {
  const opened: DatabaseSync[] = [];
  const open = (): DatabaseSync => {
    const db = new DatabaseSync(file);
    opened.push(db);
    return db;
  };
  const source = open();
  source.exec("create table if not exists caller_rows(row text not null)");
  const insert = (client: unknown, row: string): void => {
    (client as DatabaseSync).prepare("insert into caller_rows values (?)").run(row);
  };
  return {
    source,
    insert,
    connect: async () => {
      const db = open();
      return {
        transaction: db,
        begin: async () => db.exec("begin immediate"),
        commit: async () => db.exec("commit"),
        rollback: async () => db.exec("rollback"),
        insert: async (row) => insert(db, row),
      };
    },
    rows: async () => {
      const rows = source.prepare("select row from caller_rows order by row").all();
      return rows.map(({ row }) => String(row));
    },
    close: () => {
      for (const db of opened) db.close();
    },
  };
}
