import type { DatabaseSync } from "node:sqlite";
import type { Statements, Times } from "./statements.ts";

/** The transaction of a group of writes, as one of them sees it. */
export interface Session {
  readonly db: DatabaseSync;
  readonly statements: Statements;
  readonly times: Times;
  /** true if another connection has committed since our last transaction: nothing remembered of the file holds. */
  readonly foreign: boolean;
  /** Called once the transaction has committed. */
  afterCommit(fn: () => void): void;
  /** Called if the item's writes are rolled back, alone or with its group. */
  onRollback(fn: () => void): void;
  /** A statement of the item may have changed a row. */
  changed(): void;
  /**
   * The item wrote this record, which no other writer could: if the file has it after a failed COMMIT, it has the
   * group.
   */
  wrote(journal: number, seq: number, token: bigint): void;
}

/** A session with the bookkeeping of the committer. */
export class GroupSession implements Session {
  readonly db: DatabaseSync;
  readonly statements: Statements;
  readonly times: Times;
  readonly foreign: boolean;
  readonly after: (() => void)[] = [];
  witness: Witness | undefined;
  #candidate: Witness | undefined;
  readonly #rollback: (() => void)[] = [];
  #changes = 0;

  constructor(db: DatabaseSync, statements: Statements, times: Times, foreign: boolean) {
    this.db = db;
    this.statements = statements;
    this.times = times;
    this.foreign = foreign;
  }

  afterCommit(fn: () => void): void {
    this.after.push(fn);
  }

  onRollback(fn: () => void): void {
    this.#rollback.push(fn);
  }

  /** How much there is to roll back so far. */
  mark(): Mark {
    return { after: this.after.length, rollback: this.#rollback.length, changes: this.#changes };
  }

  changed(): void {
    this.#changes++;
  }

  hasChangedSince(mark: Mark): boolean {
    return this.#changes > mark.changes;
  }

  wrote(journal: number, seq: number, token: bigint): void {
    this.#candidate = { journal, seq, token };
  }

  /** Only a record that was not rolled back can be the witness. */
  keep(): void {
    this.witness ??= this.#candidate;
    this.#candidate = undefined;
  }

  drop(mark: Mark = start): void {
    this.#candidate = undefined;
    this.after.length = mark.after;
    for (const fn of this.#rollback.splice(mark.rollback)) fn();
  }
}

interface Mark {
  readonly after: number;
  readonly rollback: number;
  readonly changes: number;
}

const start: Mark = { after: 0, rollback: 0, changes: 0 };

export type Witness =
  | { readonly journal: number; readonly seq: number; readonly token: bigint }
  | { readonly id: bigint };
