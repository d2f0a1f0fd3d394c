/** A response, or a part of it, that its reader has not read yet. */
interface UnreadPart {
  readonly bytes: number;
  readonly abort: () => void;
}

/**
 * Bytes of all written but unread responses. Beyond the bound the oldest are aborted: their readers have had more time
 * than any other.
 */
export class UnreadResponses {
  readonly #maxBytes: number;
  readonly #unread = new Set<UnreadPart>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Counts a part until the returned function is called; `abort` ends its connection. */
  add(bytes: number, abort: () => void): () => void {
    const part = { bytes, abort };
    this.#unread.add(part);
    this.#bytes += bytes;
    for (const oldest of this.#unread) {
      if (this.#bytes <= this.#maxBytes || oldest === part) break;
      this.#remove(oldest);
      oldest.abort();
    }
    return () => this.#remove(part);
  }

  #remove(part: UnreadPart): void {
    if (this.#unread.delete(part)) this.#bytes -= part.bytes;
  }
}
