import { isErased, isSealed } from "../base/codec.ts";
import { describeThrown } from "../base/thrown.ts";

/** Why a run failed or was cancelled, in short: its outcome has the whole error. */
export interface RunError {
  /** The class of the error. */
  readonly name: string;
  /** At most 1 000 characters. */
  readonly message: string;
  /** The code of the error, if it has one, such as TAPE_CANCELLED. */
  readonly code?: string;
}

/** A list has up to 1 000 rows: enough of each message to know the reason. */
const maxMessage = 1_000;
/** No class and no code that someone has written is longer. */
const maxWord = 100;

const ended: ReadonlySet<unknown> = new Set(["failed", "cancelled", "FAILED", "CANCELLED", "COMPENSATED"]);

/**
 * The error in the outcome of a run that did not end well: by the cause of its end, or by its status. It is derived
 * from the outcome and stored nowhere else, so it costs a run nothing and is erased with its payloads. undefined also
 * where the outcome is sealed: a process with the key derives it again.
 */
export function runErrorOf(end: string | null, outcome: unknown): RunError | undefined {
  if (!ended.has(end) || outcome === undefined || outcome === null) return undefined;
  if (isSealed(outcome) || isErased(outcome)) return undefined;
  if (!(outcome instanceof Error)) return { name: "Error", message: cut(textOf(outcome), maxMessage) };
  const { code } = outcome as { readonly code?: unknown };
  return {
    name: cut(String(outcome.name), maxWord),
    message: cut(describeThrown(outcome), maxMessage),
    ...(typeof code === "string" && code !== "" && { code: cut(code, maxWord) }),
  };
}

const cut = (text: string, max: number): string =>
  text.length <= max ? text : `${text.slice(0, max - 1).toWellFormed()}…`;

/** A workflow may throw any value. */
function textOf(thrown: unknown): string {
  if (typeof thrown !== "object") return describeThrown(thrown);
  try {
    return JSON.stringify(thrown) ?? describeThrown(thrown);
  } catch {
    return describeThrown(thrown);
  }
}
