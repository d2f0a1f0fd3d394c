import { fingerprint } from "../../base/canonical.ts";
import type { Span, SpanAttributes, SpanContext, Tracer } from "../../base/trace.ts";

export interface SpansOptions {
  readonly tracing: Tracer;
  readonly tenant: string;
  readonly run: string;
  readonly attributes: SpanAttributes;
  /** Where its starter was, if that was in this process. */
  readonly startedAt?: SpanContext;
}

/**
 * A place that follows from the run's name: every drive of the run, in whatever process, stands in the same trace and is
 * linked to it, though nothing about traces is ever stored.
 */
export function spanContextOfRun(tenant: string, run: string): SpanContext {
  const digits = fingerprint(["trace", tenant, run]);
  return { traceId: digits.slice(0, 32), spanId: digits.slice(32, 48) };
}

/** The spans of one drive: one for the term, one for each operation; what is replayed is marked, and took no time. */
export class Spans {
  readonly #tracing: Tracer;
  readonly #drive: Span;

  constructor({ tracing, tenant, run, attributes, startedAt }: SpansOptions) {
    const place = spanContextOfRun(tenant, run);
    this.#tracing = tracing;
    this.#drive = tracing.startSpan("tape.drive", {
      parent: place,
      links: [place, ...(startedAt === undefined ? [] : [startedAt])],
      attributes: { "tape.run": run, "tape.tenant": tenant, ...attributes },
    });
  }

  operation(kind: string, name: string, pos: number): Span {
    return this.#begin(kind, name, pos, false);
  }

  replayed(kind: string, name: string, pos: number): void {
    this.#begin(kind, name, pos, true).end();
  }

  end(attributes: SpanAttributes): void {
    this.#drive.set(attributes);
    this.#drive.end();
  }

  #begin(kind: string, name: string, pos: number, replayed: boolean): Span {
    const what = kind.split(".")[0]!;
    return this.#tracing.startSpan(`tape.${what} ${name}`, {
      parent: this.#drive,
      attributes: { "tape.operation": what, "tape.pos": pos, "tape.replayed": replayed },
    });
  }
}
