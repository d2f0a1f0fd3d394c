import { DatabaseSync, type StatementSync } from "node:sqlite";

/** The store's own transactions are savepoints inside one transaction that is never committed. */
const savepoint = "turn";
const sql = (...parts: string[]): string => parts.join(" ");

/**
 * An in-memory database that is blank again once closed, with all its statements still prepared. Opening a new one and
 * preparing its statements would take a third of a small simulation. What a store commits stays inside one outer
 * transaction; closing rolls it back, so that SQLite restores every page.
 */
export class ReusedDatabase extends DatabaseSync {
  readonly #prepared = new Map<string, StatementSync>();
  readonly #settings = new Set<string>();
  readonly #savepoint: StatementSync;
  readonly #releaseSavepoint: StatementSync;
  readonly #rollbackToSavepoint: StatementSync;
  readonly #release: () => void;
  #inTransaction = false;
  #inside = false;

  constructor(blank: Uint8Array, release: (database: ReusedDatabase) => void) {
    super(":memory:", { timeout: 0 });
    super.deserialize(blank);
    this.#savepoint = super.prepare(sql("savepoint", savepoint));
    this.#releaseSavepoint = super.prepare(sql("release", savepoint));
    this.#rollbackToSavepoint = super.prepare(sql("rollback", "to", savepoint));
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
    if (this.#inTransaction) super.exec("rollback");
    this.#inTransaction = false;
    this.#inside = false;
    this.#release();
  }

  /** Skips settings that are already set: after some settings SQLite prepares every statement again. */
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
    if (!this.#inTransaction) super.exec(text);
    this.#inTransaction = true;
    this.#inside = true;
    this.#savepoint.run();
  }

  #commit(): void {
    this.#releaseSavepoint.run();
    this.#inside = false;
  }

  /** The store calls this only inside a transaction of its own. */
  #rollBack(): void {
    if (!this.#inside) return;
    this.#rollbackToSavepoint.run();
    this.#releaseSavepoint.run();
    this.#inside = false;
  }
}
