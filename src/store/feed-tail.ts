/** Where records of one tenant lie between two places of the feed. */
export interface Span {
  readonly first: number;
  readonly last: number;
}

interface Stretch {
  readonly to: number;
  readonly spans: ReadonlyMap<string, Span>;
}

/** Beyond this the oldest is forgotten: whoever comes from before it looks through the records itself. */
const maxStretches = 512;
/** Of all stretches together: a busy store has thousands of tenants in each. Some ten megabytes. */
const maxSpans = 100_000;

/**
 * Whose records the end of the feed holds, as far as this process has looked: stretch by stretch, and for each tenant the
 * first and the last place. Each stretch is looked through once for all readers; a tenant that wrote nothing there reads
 * nothing, and one that wrote little reads little.
 */
export class FeedTail {
  #stretches: Stretch[] = [];
  #spans = 0;
  #from: number | undefined;
  #edge = 0;

  /** Everything up to here has been looked through; undefined: nothing yet. */
  get edge(): number | undefined {
    return this.#from === undefined ? undefined : this.#edge;
  }

  /** Nothing before this place is known. */
  begin(edge: number): void {
    this.#stretches = [];
    this.#spans = 0;
    this.#from = edge;
    this.#edge = edge;
  }

  /** What lies behind the edge up to `to`. */
  add(to: number, spans: ReadonlyMap<string, Span>): void {
    this.#edge = to;
    if (spans.size === 0) return;
    this.#stretches.push({ to, spans });
    this.#spans += spans.size;
    while (this.#stretches.length > maxStretches || this.#spans > maxSpans) {
      const oldest = this.#stretches.shift()!;
      this.#spans -= oldest.spans.size;
      this.#from = oldest.to;
    }
  }

  reaches(after: number): boolean {
    return this.#from !== undefined && after >= this.#from;
  }

  /** Where this tenant's next records behind a place within reach are; undefined: none up to the edge. */
  next(tenant: string, after: number): Span | undefined {
    for (const { to, spans } of this.#stretches) {
      const span = to > after ? spans.get(tenant) : undefined;
      if (span !== undefined && span.last > after) return { first: Math.max(span.first, after + 1), last: span.last };
    }
    return undefined;
  }
}
