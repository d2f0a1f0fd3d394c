/** Where a span stands, as W3C trace context writes it: 32 and 16 hexadecimal digits. */
export interface SpanPlace {
  readonly traceId: string;
  readonly spanId: string;
}

export type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanOptions {
  readonly attributes?: Attributes;
  /** The span it is a part of: one of this process, or a place that another may have been at. */
  readonly within?: Span | SpanPlace;
  readonly links?: readonly SpanPlace[];
}

export interface Span {
  readonly place: SpanPlace;
  set(attributes: Attributes): void;
  fail(error: unknown): void;
  end(): void;
  /** Runs `work` so that spans begun in it are parts of this one. */
  run<T>(work: () => T): T;
}

/** A seam: who wants to see where time goes gives one, as {@link openTelemetry} makes it; others pay nothing. */
export interface Tracing {
  begin(name: string, options?: SpanOptions): Span;
  /** Where the calling code is, if it is being traced. */
  active(): SpanPlace | undefined;
}
