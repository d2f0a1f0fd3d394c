import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { guardExternalSqlite, guardSqlite, type Lease } from "../../src/exports/index.ts";
import { type Result, race } from "./race.ts";

type Guard = (database: DatabaseSync, lease: Lease) => void;
const none: Guard = () => {};

/** Your own table in the store's file. */
export const inTheStore = (folder: string, guarded: boolean): Promise<Result> =>
  raceOn(folder, "tape.db", guarded ? guardSqlite : none);

/** Your own table in another file. */
export const elsewhere = (folder: string, guarded: boolean): Promise<Result> =>
  raceOn(folder, "mine.db", guarded ? guardExternalSqlite : none);

async function raceOn(folder: string, file: string, guard: Guard): Promise<Result> {
  const database = new DatabaseSync(join(folder, file), { timeout: 5_000 });
  database.exec("create table totals(day text primary key, total integer not null)");
  try {
    return await race(
      `sqlite:${join(folder, "tape.db")}`,
      async (lease, total) => {
        database.exec("begin immediate");
        try {
          guard(database, lease);
          database.prepare("insert or replace into totals values ('monday', ?)").run(total);
          database.exec("commit");
        } catch (error) {
          database.exec("rollback");
          throw error;
        }
      },
      async () => Number(database.prepare("select total from totals").get()?.total),
    );
  } finally {
    database.close();
  }
}
