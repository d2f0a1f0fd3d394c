/** An answer, or a piece of one, that its reader has not taken yet. */
interface Unread {
  readonly bytes: number;
  readonly cut: () => void;
}

/**
 * Bytes of all answers that are written and not read. Beyond the bound the oldest are cut off: a reader that takes
 * nothing has had more time than any other.
 */
export class UnreadResponses {
  readonly #most: number;
  readonly #unread = new Set<Unread>();
  #bytes = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Counts an answer until the returned function is called; `cut` ends its connection. */
  begun(bytes: number, cut: () => void): () => void {
    const one = { bytes, cut };
    this.#unread.add(one);
    this.#bytes += bytes;
    for (const oldest of this.#unread) {
      if (this.#bytes <= this.#most || oldest === one) break;
      this.#over(oldest);
      oldest.cut();
    }
    return () => this.#over(one);
  }

  #over(one: Unread): void {
    if (this.#unread.delete(one)) this.#bytes -= one.bytes;
  }
}
