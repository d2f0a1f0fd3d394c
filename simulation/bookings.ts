import type { DatabaseSync } from "node:sqlite";
import type { TapeContext } from "../src/sdk/context.ts";
import { sqlFiles } from "../src/store/sql/files.ts";
import { loadStatements } from "../src/store/sql/statements.ts";

/** A row of the simulated caller, in a table beside the store's own. */
export interface BookingRow {
  /** The run whose step wrote it; empty: written by a transaction of the caller's own. */
  readonly run: string;
  /** The name of the step, or the id of the run that the caller started with the row. */
  readonly booking: string;
}

const statements = loadStatements(sqlFiles(new URL("sql/", import.meta.url)), (position) => `?${position}`);
const textOf = (name: string): string => statements.get(name)!.text;

export const createBookings = (db: DatabaseSync): void => db.exec(textOf("bookings.create"));

export function book(db: DatabaseSync, { run, booking }: BookingRow): void {
  db.prepare(textOf("bookings.add")).run(run, booking);
}

export interface TransactionOp {
  readonly op: "transaction";
  readonly id: string;
  readonly fails: boolean;
}

/** Stands for a connection of the process itself: the shared store knows which database that is at the moment. */
const ownConnection = {} as DatabaseSync;

/** A transactional step that writes one row. */
export function runBooking(tape: TapeContext, { id, fails }: TransactionOp): Promise<string> {
  return tape.transaction("book", ownConnection, (db) => {
    book(db, { run: tape.runId, booking: id });
    if (fails) throw new Error("no room");
    return id;
  });
}

/** A transaction of a caller: its row, and what the store writes in `work`, in one turn of the event loop. */
export function bookWith<T>(db: DatabaseSync, row: BookingRow, commits: boolean, work: () => T): T {
  db.prepare(textOf("bookings.begin")).run();
  book(db, row);
  const result = work();
  if (commits) db.prepare(textOf("bookings.commit")).run();
  else db.exec("rollback");
  return result;
}

export const bookingsIn = (db: DatabaseSync): BookingRow[] =>
  db
    .prepare(textOf("bookings.list"))
    .all()
    .map(({ run, booking }) => ({ run: String(run), booking: String(booking) }));
