import { defined } from "./defined.ts";

/** Nested causes beyond this many are left out of a log line. */
const maxCauses = 5;
const maxChars = 2_000;

/** The fields of an error in a log line. */
export interface ErrorFields {
  /** Its message and those of its causes, in one line. */
  readonly error: string;
  readonly code?: string;
  /** What to do about it, if the error has a `next`. */
  readonly next?: string;
}

/** An error as fields of a log line: the message with every cause, and the next step. */
export function errorFields(error: unknown): ErrorFields {
  const { code, next } = fieldsOf(error);
  return { error: reasonOf(error), ...defined({ code, next }) };
}

/** "TypeError: x is not a function; cause: Error: …": the error, then its causes, in one line. */
export function reasonOf(error: unknown): string {
  const parts: string[] = [];
  const seen = new Set<unknown>();
  for (let one = error; one !== undefined && !seen.has(one) && parts.length <= maxCauses; one = causeOf(one)) {
    seen.add(one);
    const text = oneOf(one);
    // A wrapper often repeats the message that it wraps.
    if (!parts.some((part) => part.includes(text))) parts.push(text);
  }
  const whole = parts.join("; cause: ");
  return whole.length > maxChars ? `${whole.slice(0, maxChars)}…` : whole;
}

function oneOf(error: unknown): string {
  try {
    if (error instanceof AggregateError && error.message === "" && error.errors.length > 0) {
      return error.errors.slice(0, maxCauses).map(oneOf).join("; ");
    }
    if (error instanceof Error) {
      // The message of a TapeError already begins with its code.
      const text = error.name === "TapeError" ? error.message : String(error);
      const { code } = fieldsOf(error);
      return code === undefined || text.includes(code) ? text : `${text} (${code})`;
    }
    if (typeof error === "object" && error !== null) {
      const { message } = error as { message?: unknown };
      return typeof message === "string" ? message : (JSON.stringify(error) ?? String(error));
    }
    return String(error);
  } catch {
    return "an error that cannot be shown"; // a getter or toString of the user's may throw
  }
}

function causeOf(error: unknown): unknown {
  try {
    return typeof error === "object" && error !== null ? (error as { cause?: unknown }).cause : undefined;
  } catch {
    return undefined;
  }
}

function fieldsOf(error: unknown): { code?: string; next?: string } {
  try {
    if (typeof error !== "object" || error === null) return {};
    const { code, next } = error as { code?: unknown; next?: unknown };
    return { ...(typeof code === "string" && { code }), ...(typeof next === "string" && { next }) };
  } catch {
    return {};
  }
}
