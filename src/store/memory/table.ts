import { TapeError } from "../../model/errors.ts";

export type Key = string | number;

/** Several columns as one key. Names never contain NUL (check.ts), so no two different tuples of a table meet. */
export const keyOf = (...columns: readonly Key[]): string => columns.join("\0");

/**
 * What takes back the open transaction. Closed until `transaction` opens it, closed again when that returns; a write
 * while it is closed is refused, so a plan that promised to read cannot change anything.
 */
export class UndoLog {
  #steps: (() => void)[] | undefined;

  /** Runs the work; if it throws, every table is as it was before. */
  transaction<T>(work: () => T): T {
    const steps: (() => void)[] = [];
    this.#steps = steps;
    try {
      return work();
    } catch (error) {
      for (const step of steps.reverse()) step();
      throw error;
    } finally {
      this.#steps = undefined;
    }
  }

  push(step: () => void): void {
    if (this.#steps === undefined) throw new TapeError("TAPE_INVARIANT", "a write outside a transaction");
    this.#steps.push(step);
  }
}

/** Finds the rows of one group; null: the row is in none, as in a partial index. */
type Grouping<Row> = (row: Row) => Key | null;

/**
 * Rows by primary key and by the groupings it was made with. A row is immutable: a change replaces it, so whoever read
 * it keeps what it read, and taking a change back is putting the old row back. Rows come in no particular order.
 */
export class Table<Row extends object, Group extends string = never> {
  /** The rows of one group, as they are now. */
  readonly by: Readonly<Record<Group, (key: Key) => readonly Row[]>>;
  readonly #undo: UndoLog;
  readonly #keyOf: (row: Row) => Key;
  readonly #rows = new Map<Key, Row>();
  readonly #groups: { readonly of: Grouping<Row>; readonly rows: Map<Key, Map<Key, Row>> }[] = [];

  constructor(undo: UndoLog, key: (row: Row) => Key, groupings: Readonly<Record<Group, Grouping<Row>>>) {
    this.#undo = undo;
    this.#keyOf = key;
    const by = Object.entries<Grouping<Row>>(groupings).map(([name, of]) => {
      const rows = new Map<Key, Map<Key, Row>>();
      this.#groups.push({ of, rows });
      return [name, (wanted: Key) => [...(rows.get(wanted)?.values() ?? [])]] as const;
    });
    this.by = Object.fromEntries(by) as Record<Group, (key: Key) => Row[]>;
  }

  get(key: Key): Row | undefined {
    return this.#rows.get(key);
  }

  all(): readonly Row[] {
    return [...this.#rows.values()];
  }

  insert(row: Row): Row {
    const key = this.#keyOf(row);
    if (this.#rows.has(key)) throw new TapeError("TAPE_INVARIANT", "a second row with the same key", { key });
    return this.#write(key, row);
  }

  update(row: Row, change: Partial<Row>): Row {
    return this.#write(this.#keyOf(row), { ...row, ...change });
  }

  /** Returns how many. */
  updateAll(rows: readonly Row[], change: Partial<Row>): number {
    for (const row of rows) this.update(row, change);
    return rows.length;
  }

  /** Returns how many. */
  deleteAll(rows: readonly Row[]): number {
    for (const row of rows) this.#write(this.#keyOf(row), undefined);
    return rows.length;
  }

  #write<R extends Row | undefined>(key: Key, row: R): R {
    const before = this.#rows.get(key);
    this.#undo.push(() => this.#place(key, before));
    this.#place(key, row === undefined ? undefined : Object.freeze(row));
    return row;
  }

  #place(key: Key, row: Row | undefined): void {
    const before = this.#rows.get(key);
    if (row === undefined) this.#rows.delete(key);
    else this.#rows.set(key, row);
    for (const { of, rows } of this.#groups) {
      const from = before === undefined ? null : of(before);
      const to = row === undefined ? null : of(row);
      if (from !== null && from !== to) {
        const group = rows.get(from);
        group?.delete(key);
        if (group?.size === 0) rows.delete(from);
      }
      if (to === null || row === undefined) continue;
      const group = rows.get(to);
      if (group === undefined) rows.set(to, new Map([[key, row]]));
      else group.set(key, row);
    }
  }
}
