import pg from "pg";
import { createGuardTable, guardExternalPostgres, guardPostgres, type Lease } from "../../src/exports/index.ts";
import { type Result, race } from "./race.ts";

type Guard = (client: pg.Client, lease: Lease) => Promise<void>;
const none: Guard = async () => {};

/** Your own table in the store's database: the guard checks the lease itself. */
export const inTheStore = (url: string, guarded: boolean): Promise<Result> =>
  raceOn(url, url, guarded ? (client, lease) => guardPostgres(client, lease) : none);

/** Your own table in another database: the guard remembers the highest token it has seen. */
export const elsewhere = (store: string, url: string, guarded: boolean): Promise<Result> =>
  raceOn(store, url, guarded ? guardExternalPostgres : none);

async function raceOn(store: string, url: string, guard: Guard): Promise<Result> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await createGuardTable(client);
    await client.query("create table totals(day text primary key, total int not null)");
    return await race(
      store,
      async (lease, total) => {
        await client.query("begin");
        try {
          await guard(client, lease); // from here to the commit the owner cannot change
          await client.query(
            "insert into totals values ('monday', $1) on conflict (day) do update set total = excluded.total",
            [total],
          );
          await client.query("commit");
        } catch (error) {
          await client.query("rollback");
          throw error;
        }
      },
      async () => Number((await client.query("select total from totals")).rows[0].total),
    );
  } finally {
    await client.query("drop table if exists totals");
    await client.end();
  }
}
