/** Work that takes turns by key: the next one starts when the one before has ended, however it ended. */
export class KeyedTurns {
  readonly #last = new Map<string, Promise<unknown>>();

  take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    this.#last.set(key, mine);
    const done = (): void => {
      if (this.#last.get(key) === mine) this.#last.delete(key);
    };
    mine.then(done, done);
    return mine;
  }
}
