import type { DatabaseSync } from "node:sqlite";
import type { Statements, Times } from "./database.ts";

/** The transaction of a group of writes, as one of them sees it. */
export interface Session {
  readonly db: DatabaseSync;
  readonly statements: Statements;
  readonly times: Times;
  /** true when another connection has committed since our last transaction: nothing remembered of the file holds. */
  readonly foreign: boolean;
  /** Called once the transaction has committed. */
  afterCommit(fn: () => void): void;
  /** Called if what the item did so far is undone, by itself or with its group. */
  onUndo(fn: () => void): void;
  /** A statement of the item may have changed a row. */
  changed(): void;
  /** The item wrote this record, which no other writer could: if it is in the file after a failed COMMIT, the group is. */
  wrote(journal: number, seq: number, token: bigint): void;
}

/** A session with what the committer keeps for itself. */
export class Group implements Session {
  readonly db: DatabaseSync;
  readonly statements: Statements;
  readonly times: Times;
  readonly foreign: boolean;
  readonly after: (() => void)[] = [];
  witness: Witness | undefined;
  #candidate: Witness | undefined;
  readonly #undo: (() => void)[] = [];
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

  onUndo(fn: () => void): void {
    this.#undo.push(fn);
  }

  /** How much there is to undo so far. */
  mark(): Mark {
    return { after: this.after.length, undo: this.#undo.length, changes: this.#changes };
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

  /** Only what an item wrote that was not undone can bear witness. */
  keep(): void {
    this.witness ??= this.#candidate;
    this.#candidate = undefined;
  }

  drop(mark: Mark = start): void {
    this.#candidate = undefined;
    this.after.length = mark.after;
    for (const fn of this.#undo.splice(mark.undo)) fn();
  }
}

interface Mark {
  readonly after: number;
  readonly undo: number;
  readonly changes: number;
}

const start: Mark = { after: 0, undo: 0, changes: 0 };

export type Witness =
  | { readonly journal: number; readonly seq: number; readonly token: bigint }
  | { readonly id: bigint };
