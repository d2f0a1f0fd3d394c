/** The first and last position of one tenant's records in a stretch of the feed. */
export interface Span {
  readonly first: number;
  readonly last: number;
}

interface Stretch {
  readonly to: number;
  readonly spans: ReadonlyMap<string, Span>;
}

/** Beyond this the oldest stretch is forgotten. A reader from before it scans the records itself. */
const maxStretches = 512;
/** Spans of all stretches together, some ten megabytes: a busy store has thousands of tenants in each stretch. */
const maxSpans = 100_000;

/**
 * Which tenants have records near the end of the feed, as far as this process has scanned it. Per stretch, it keeps the
 * first and last position of each tenant. Each stretch is scanned once for all readers: a tenant that wrote nothing
 * there reads nothing, and one that wrote little reads little.
 */
export class FeedTail {
  #stretches: Stretch[] = [];
  #spans = 0;
  #from: number | undefined;
  #edge = 0;

  /** Everything up to this position has been scanned; undefined: nothing yet. */
  get edge(): number | undefined {
    return this.#from === undefined ? undefined : this.#edge;
  }

  /** Forgets everything; knowledge starts at this position. */
  begin(edge: number): void {
    this.#stretches = [];
    this.#spans = 0;
    this.#from = edge;
    this.#edge = edge;
  }

  /** Adds the stretch from the edge to `to`. */
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

  /** The span of this tenant's next records after a position within reach; undefined: none up to the edge. */
  next(tenant: string, after: number): Span | undefined {
    for (const { to, spans } of this.#stretches) {
      const span = to > after ? spans.get(tenant) : undefined;
      if (span !== undefined && span.last > after) return { first: Math.max(span.first, after + 1), last: span.last };
    }
    return undefined;
  }
}
