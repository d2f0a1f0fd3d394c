import { DatabaseSync, type StatementSync } from "node:sqlite";

/** Inside the one transaction that is never committed, the store's own transactions are these. */
const turn = "turn";
const word = (...words: string[]): string => words.join(" ");

/**
 * A database in memory that is blank again when it is closed, with everything that was prepared on it: opening one anew
 * and preparing its statements would cost a third of a small simulation. What a store commits is kept inside one outer
 * transaction; closing rolls that back, and SQLite itself sees to it that every page is as it was.
 */
export class ReusedDatabase extends DatabaseSync {
  readonly #prepared = new Map<string, StatementSync>();
  readonly #settings = new Set<string>();
  readonly #put: StatementSync;
  readonly #keep: StatementSync;
  readonly #undo: StatementSync;
  readonly #release: () => void;
  #begun = false;
  #inside = false;

  constructor(blank: Uint8Array, release: (database: ReusedDatabase) => void) {
    super(":memory:", { timeout: 0 });
    super.deserialize(blank);
    this.#put = super.prepare(word("savepoint", turn));
    this.#keep = super.prepare(word("release", turn));
    this.#undo = super.prepare(word("rollback", "to", turn));
    this.#release = () => release(this);
  }

  override prepare(text: string): StatementSync {
    const known = this.#prepared.get(text) ?? this.#make(text);
    this.#prepared.set(text, known);
    return known;
  }

  override exec(text: string): void {
    if (text === "rollback") this.#rollBack();
    else if (text.startsWith("pragma ")) this.#set(text);
    else super.exec(text);
  }

  override close(): void {
    if (this.#begun) super.exec("rollback");
    this.#begun = false;
    this.#inside = false;
    this.#release();
  }

  /** Whoever opens it sets what is set already, and after some settings SQLite prepares every statement anew. */
  #set(text: string): void {
    if (!this.#settings.has(text)) super.exec(text);
    this.#settings.add(text);
  }

  #make(text: string): StatementSync {
    const steering = (run: () => void): StatementSync => ({ run }) as unknown as StatementSync;
    if (text.startsWith("begin ")) return steering(() => this.#begin(text));
    return text === "commit" ? steering(() => this.#commit()) : super.prepare(text);
  }

  #begin(text: string): void {
    if (!this.#begun) super.exec(text);
    this.#begun = true;
    this.#inside = true;
    this.#put.run();
  }

  #commit(): void {
    this.#keep.run();
    this.#inside = false;
  }

  /** As far as the store knows: it asks for this only where it has begun. */
  #rollBack(): void {
    if (!this.#inside) return;
    this.#undo.run();
    this.#keep.run();
    this.#inside = false;
  }
}
