import { join } from "node:path";
import { guardTable } from "../../src/exports/index.ts";
import { type Result, race } from "./race.ts";

interface Row {
  highest: bigint;
  total: number;
}

/** A database that Tape has never heard of: rows, and transactions that hold a row's lock until they end. */
class Toy {
  readonly #rows = new Map<string, Row>();
  #turn: Promise<unknown> = Promise.resolve();

  transaction<T>(key: string, work: (row: Row) => Promise<T>): Promise<T> {
    const result = this.#turn.then(async () => {
      const row = { ...(this.#rows.get(key) ?? { highest: 0n, total: 0 }) };
      const value = await work(row); // an error leaves the row as it was
      this.#rows.set(key, row);
      return value;
    });
    this.#turn = result.catch(() => {});
    return result;
  }
}

/** All an adapter has to do: in the transaction of the write, raise the highest token seen, and say what it is. */
export async function anyDatabase(folder: string, guarded: boolean): Promise<Result> {
  const toy = new Toy();
  return race(
    `sqlite:${join(folder, "tape.db")}`,
    (lease, total) =>
      toy.transaction("monday", async (row) => {
        const raise = async (_scope: string, token: bigint): Promise<bigint> => {
          if (token > row.highest) row.highest = token;
          return row.highest;
        };
        if (guarded) await guardTable({ raise }, lease);
        row.total = total;
      }),
    () => toy.transaction("monday", async (row) => row.total),
  );
}
