import { join } from "node:path";
import { guardTable } from "../../src/exports/index.ts";
import { type Result, race } from "./race.ts";

interface Row {
  highest: bigint;
  total: number;
}

/** A database that Tape does not know: rows, and transactions that keep a row's lock until they end. */
class ToyDatabase {
  readonly #rows = new Map<string, Row>();
  #last: Promise<unknown> = Promise.resolve();

  transaction<T>(key: string, work: (row: Row) => Promise<T>): Promise<T> {
    const result = this.#last.then(async () => {
      const row = { ...(this.#rows.get(key) ?? { highest: 0n, total: 0 }) };
      const value = await work(row); // an error leaves the row unchanged
      this.#rows.set(key, row);
      return value;
    });
    this.#last = result.catch(() => {});
    return result;
  }
}

/** All that an adapter does: in the transaction of the write, raise the highest token seen and return it. */
export async function anyDatabase(folder: string, guarded: boolean): Promise<Result> {
  const database = new ToyDatabase();
  return race(
    `sqlite:${join(folder, "tape.db")}`,
    (lease, total) =>
      database.transaction("monday", async (row) => {
        const raise = async (_scope: string, token: bigint): Promise<bigint> => {
          if (token > row.highest) row.highest = token;
          return row.highest;
        };
        if (guarded) await guardTable({ raise }, lease);
        row.total = total;
      }),
    () => database.transaction("monday", async (row) => row.total),
  );
}
