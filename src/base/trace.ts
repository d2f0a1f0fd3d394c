/** Where a span stands, as W3C trace context writes it: 32 and 16 hexadecimal digits. */
export interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
}

export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanOptions {
  readonly attributes?: SpanAttributes;
  /** The span it is a part of: one of this process, or a place that another may have been at. */
  readonly parent?: Span | SpanContext;
  readonly links?: readonly SpanContext[];
}

export interface Span {
  readonly context: SpanContext;
  set(attributes: SpanAttributes): void;
  fail(error: unknown): void;
  end(): void;
  /** Runs `work` so that spans begun in it are parts of this one. */
  run<T>(work: () => T): T;
}

/** A seam: who wants to see where time goes gives one, as {@link openTelemetry} makes it; others pay nothing. */
export interface Tracer {
  startSpan(name: string, options?: SpanOptions): Span;
  /** Where the calling code is, if it is being traced. */
  activeSpan(): SpanContext | undefined;
}
