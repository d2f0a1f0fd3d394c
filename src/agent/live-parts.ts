/** Parts that a framework reads while a model call produces them: an iterable for one reader. */
export class LiveParts<T> implements AsyncIterable<T> {
  readonly #parts: T[] = [];
  #ended = false;
  #failure: { readonly error: unknown } | undefined;
  #wake: () => void = () => {};

  push(part: T): void {
    this.#parts.push(part);
    this.#wake();
  }

  /** Ends the iteration after what was pushed; with an error if the call has failed. */
  end(failure?: { readonly error: unknown }): void {
    this.#ended = true;
    this.#failure = failure;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      while (this.#parts.length > 0) yield this.#parts.shift()!;
      if (this.#failure !== undefined) throw this.#failure.error;
      if (this.#ended) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

/** A chunk of a stream has at most 64 KiB; models send less, gateways that replay an answer may not. */
const maxPieceChars = 16_384;

/** A text in pieces that fit into the run's stream. */
export function* pieces(text: string): Generator<string> {
  for (let k = 0; k < text.length; k += maxPieceChars) yield text.slice(k, k + maxPieceChars);
}
