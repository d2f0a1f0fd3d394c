/** A span's W3C trace context: 32 and 16 hexadecimal digits. */
export interface SpanContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
}

/** Attributes of a span: strings, numbers and booleans by name. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** How a span starts. */
export interface SpanOptions {
  readonly attributes?: SpanAttributes;
  /** The parent span: one of this process, or the context of a span that another process may have started. */
  readonly parent?: Span | SpanContext;
  readonly links?: readonly SpanContext[];
}

/** One timed operation of a trace. */
export interface Span {
  readonly context: SpanContext;
  /** Adds attributes. */
  set(attributes: SpanAttributes): void;
  /** Marks it as failed. */
  fail(error: unknown): void;
  /** Ends it. */
  end(): void;
  /** Runs `work` with this span as the parent of the spans started in it. */
  run<T>(work: () => T): T;
}

/** A seam for tracing: pass the result of {@link openTelemetry} to record spans. Without one, tracing costs nothing. */
export interface Tracer {
  /** Starts a span. */
  startSpan(name: string, options?: SpanOptions): Span;
  /** The span context of the calling code, if it is being traced. */
  activeSpan(): SpanContext | undefined;
}
