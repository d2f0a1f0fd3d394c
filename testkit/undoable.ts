/** Remembers how to take back what was done since {@link keep} was last called. */
export class Undo {
  readonly #steps: (() => void)[] = [];

  note(step: () => void): void {
    this.#steps.push(step);
  }

  keep(): void {
    this.#steps.length = 0;
  }

  takeBack(): void {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) step();
  }
}

/** A map whose changes can be taken back. Its rows are replaced, never changed: that would be seen by nothing. */
export class UndoableMap<K, V> extends Map<K, Readonly<V>> {
  readonly #undo: Undo;

  constructor(undo: Undo) {
    super();
    this.#undo = undo;
  }

  override set(key: K, row: Readonly<V>): this {
    this.#remember(key);
    return super.set(key, row);
  }

  override delete(key: K): boolean {
    this.#remember(key);
    return super.delete(key);
  }

  /** Some fields of the row; false if there is none. */
  change(key: K, more: Partial<V>): boolean {
    const row = this.get(key);
    if (row === undefined) return false;
    this.set(key, { ...row, ...more });
    return true;
  }

  #remember(key: K): void {
    const row = this.get(key);
    this.#undo.note(() => {
      if (row === undefined) super.delete(key);
      else super.set(key, row);
    });
  }
}
