import { fingerprint } from "../../base/canonical.ts";
import type { Span, SpanAttributes, SpanContext, Tracer } from "../../base/trace.ts";
import type { NewRecord } from "../../model/records.ts";
import { genAiAttributes } from "./gen-ai.ts";

export interface SpansOptions {
  readonly tracing: Tracer;
  readonly tenant: string;
  readonly run: string;
  readonly attributes: SpanAttributes;
  /** The span of the run's starter, if that was in this process. */
  readonly startedAt?: SpanContext;
}

/**
 * A span context that is derived from the run's name. Every drive of the run, in any process, belongs to the same trace
 * and links to it, although nothing about traces is stored.
 */
export function spanContextOfRun(tenant: string, run: string): SpanContext {
  const digits = fingerprint(["trace", tenant, run]);
  return { traceId: digits.slice(0, 32), spanId: digits.slice(32, 48) };
}

/** The spans of one drive: one for the term and one per operation. A replayed operation is marked and takes no time. */
export class Spans {
  readonly #tracing: Tracer;
  readonly #drive: Span;

  constructor({ tracing, tenant, run, attributes, startedAt }: SpansOptions) {
    const context = spanContextOfRun(tenant, run);
    this.#tracing = tracing;
    this.#drive = tracing.startSpan("tape.drive", {
      parent: context,
      links: [context, ...(startedAt === undefined ? [] : [startedAt])],
      attributes: { "tape.run": run, "tape.tenant": tenant, ...attributes },
    });
  }

  operation(kind: string, name: string, pos: number): Span {
    return this.#begin(kind, name, pos, false);
  }

  replayed(kind: string, name: string, pos: number, { data }: Pick<NewRecord, "data">): void {
    const span = this.#begin(kind, name, pos, true);
    const { model } = data as { model?: unknown };
    if (kind === "decision.made" && typeof model === "string") span.set(genAiAttributes(name, model));
    span.end();
  }

  end(attributes: SpanAttributes): void {
    this.#drive.set(attributes);
    this.#drive.end();
  }

  #begin(kind: string, name: string, pos: number, replayed: boolean): Span {
    const operation = kind.split(".")[0]!;
    return this.#tracing.startSpan(`tape.${operation} ${name}`, {
      parent: this.#drive,
      attributes: { "tape.operation": operation, "tape.pos": pos, "tape.replayed": replayed },
    });
  }
}
