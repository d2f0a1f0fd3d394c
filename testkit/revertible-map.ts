/** Records how to revert the changes since the last {@link commit}. */
export class Rollback {
  readonly #steps: (() => void)[] = [];

  record(step: () => void): void {
    this.#steps.push(step);
  }

  commit(): void {
    this.#steps.length = 0;
  }

  rollBack(): void {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) step();
  }
}

/** A map whose changes can be reverted. Rows are replaced and never mutated: a mutation could not be reverted. */
export class RevertibleMap<K, V> extends Map<K, Readonly<V>> {
  readonly #rollback: Rollback;

  constructor(rollback: Rollback) {
    super();
    this.#rollback = rollback;
  }

  override set(key: K, row: Readonly<V>): this {
    this.#remember(key);
    return super.set(key, row);
  }

  override delete(key: K): boolean {
    this.#remember(key);
    return super.delete(key);
  }

  /** Changes some fields of a row; false if there is none. */
  change(key: K, more: Partial<V>): boolean {
    const row = this.get(key);
    if (row === undefined) return false;
    this.set(key, { ...row, ...more });
    return true;
  }

  #remember(key: K): void {
    const row = this.get(key);
    this.#rollback.record(() => {
      if (row === undefined) super.delete(key);
      else super.set(key, row);
    });
  }
}
