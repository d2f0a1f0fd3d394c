import { fingerprint } from "../base/canonical.ts";
import type { Attributes, Span, SpanPlace, Tracing } from "../base/trace.ts";

export interface SpansOptions {
  readonly tracing: Tracing;
  readonly tenant: string;
  readonly run: string;
  readonly attributes: Attributes;
  /** Where its starter was, if that was in this process. */
  readonly startedAt?: SpanPlace;
}

/**
 * A place that follows from the run's name: every drive of the run, in whatever process, stands in the same trace and is
 * linked to it, though nothing about traces is ever stored.
 */
export function placeOfRun(tenant: string, run: string): SpanPlace {
  const digits = fingerprint(["trace", tenant, run]);
  return { traceId: digits.slice(0, 32), spanId: digits.slice(32, 48) };
}

/** The spans of one drive: one for the term, one for each operation; what is replayed is marked, and took no time. */
export class Spans {
  readonly #tracing: Tracing;
  readonly #drive: Span;

  constructor({ tracing, tenant, run, attributes, startedAt }: SpansOptions) {
    const place = placeOfRun(tenant, run);
    this.#tracing = tracing;
    this.#drive = tracing.begin("tape.drive", {
      within: place,
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

  over(attributes: Attributes): void {
    this.#drive.set(attributes);
    this.#drive.end();
  }

  #begin(kind: string, name: string, pos: number, replayed: boolean): Span {
    const what = kind.split(".")[0]!;
    return this.#tracing.begin(`tape.${what} ${name}`, {
      within: this.#drive,
      attributes: { "tape.operation": what, "tape.pos": pos, "tape.replayed": replayed },
    });
  }
}
