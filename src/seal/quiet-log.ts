import type { Log } from "../base/log.ts";
import type { Tracer } from "../base/trace.ts";

/** Tape's own words: they begin with a code, and name operations and ids. What they were caused by is foreign. */
const ownWords = /^(TAPE_[A-Z_]+)\b/;
/** Errors whose messages quote bodies, schemas or upstreams. */
const quoting: ReadonlySet<string> = new Set([
  ...["TAPE_EFFECT_FAILED", "TAPE_RUN_FAILED", "TAPE_RUN_STUCK", "TAPE_ASK_REJECTED"],
  ...["TAPE_BAD_INPUT", "TAPE_BAD_GATE_VALUE", "TAPE_NOT_ENCODABLE"],
]);
/** The class of an error, as `String(error)` prints it: "PaymentError: card 4111…" */
const className = /^([A-Za-z_$][\w$]{0,80}): /;
const hidden = "[encrypted]";

/** The log of a process whose payloads are encrypted: of the errors of bodies and upstreams only the class remains. */
export function quietLog(log: Log): Log {
  return (level, event, fields) => {
    const { error } = fields ?? {};
    log(level, event, typeof error === "string" ? { ...fields, error: quieted(error) } : fields);
  };
}

/** The same for spans. */
export function quietTracer(tracer: Tracer): Tracer {
  return {
    ...tracer,
    startSpan: (...args) => {
      const span = tracer.startSpan(...args);
      const fail = span.fail.bind(span);
      // The same object: a tracer recognises its spans when they become parents.
      return Object.assign(span, { fail: (error: unknown) => fail(new Error(quieted(String(error)))) });
    },
  };
}

function quieted(text: string): string {
  const code = ownWords.exec(text)?.[1];
  if (code !== undefined) {
    const [first = ""] = text.split("; cause: ");
    if (quoting.has(code)) return `${code}: ${hidden}`;
    return first.length === text.length ? first : `${first}; cause: ${hidden}`;
  }
  const name = className.exec(text)?.[1];
  return name === undefined ? hidden : `${name}: ${hidden}`;
}
