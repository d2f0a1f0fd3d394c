import type { Span, SpanAttributes, SpanContext, SpanOptions, Tracer } from "../base/trace.ts";

/** The parts of `@opentelemetry/api` that Tape uses. Your program brings the package; Tape does not depend on it. */
export interface OpenTelemetryApi<Context, ApiSpan extends OpenTelemetrySpan> {
  /** Tracers, and the span of a context. */
  readonly trace: {
    getTracer(name: string): {
      startSpan(
        name: string,
        options?: { attributes?: SpanAttributes; links?: { context: ApiSpanContext }[] },
        context?: Context,
      ): ApiSpan;
    };
    setSpan(context: Context, span: ApiSpan): Context;
    setSpanContext(context: Context, spanContext: ApiSpanContext): Context;
    getActiveSpan(): ApiSpan | undefined;
  };
  /** The current context. */
  readonly context: { active(): Context; with<T>(context: Context, work: () => T): T };
}

/** The part of an OpenTelemetry span that Tape uses. */
export interface OpenTelemetrySpan {
  /** Its trace id and span id. */
  spanContext(): SpanContext;
  /** Adds attributes. */
  setAttributes(attributes: SpanAttributes): unknown;
  /** Adds an error. */
  recordException(error: Error | string): void;
  /** Sets its status. */
  setStatus(status: { code: number; message?: string }): unknown;
  /** Ends it. */
  end(): void;
}

interface ApiSpanContext extends SpanContext {
  readonly traceFlags: number;
  readonly isRemote?: boolean;
}

/** `SpanStatusCode.ERROR`. */
const failed = 2;
/** Sampled. */
const recorded = 1;

/**
 * Spans for OpenTelemetry. Pass the module `@opentelemetry/api` of your program.
 *
 * @example
 * import * as api from "@opentelemetry/api";
 * await using app = await Tape.open({ store, runner, tracing: openTelemetry(api) });
 */
export function openTelemetry<Context, ApiSpan extends OpenTelemetrySpan>(
  api: OpenTelemetryApi<Context, ApiSpan>,
): Tracer {
  const tracer = api.trace.getTracer("durable-tape");
  const apiSpans = new WeakMap<Span, ApiSpan>();
  const remote = ({ traceId, spanId }: SpanContext): ApiSpanContext => ({
    traceId,
    spanId,
    traceFlags: recorded,
    isRemote: true,
  });
  const contextOf = (parent: SpanOptions["parent"]): Context => {
    const active = api.context.active();
    if (parent === undefined) return active;
    if (!("context" in parent)) return api.trace.setSpanContext(active, remote(parent));
    const span = apiSpans.get(parent);
    return span === undefined ? active : api.trace.setSpan(active, span);
  };
  const wrapped = (inner: ApiSpan): Span => {
    const span: Span = {
      context: inner.spanContext(),
      set: (attributes) => void inner.setAttributes(attributes),
      fail(error) {
        inner.recordException(error instanceof Error ? error : String(error));
        inner.setStatus({ code: failed, message: error instanceof Error ? error.message : String(error) });
      },
      end: () => inner.end(),
      run: (work) => api.context.with(api.trace.setSpan(api.context.active(), inner), work),
    };
    apiSpans.set(span, inner);
    return span;
  };
  return {
    startSpan(name, { attributes = {}, parent, links = [] } = {}) {
      const options = { attributes, links: links.map((link) => ({ context: remote(link) })) };
      return wrapped(tracer.startSpan(name, options, contextOf(parent)));
    },
    activeSpan: () => api.trace.getActiveSpan()?.spanContext(),
  };
}
