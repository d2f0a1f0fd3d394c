import { isErased, isSealed, type SealedPayload } from "../base/codec.ts";
import { TapeError } from "./errors.ts";
import type { RecordKind } from "./records.ts";

/**
 * The fields of each record that hold values and words of users and upstreams: a payload codec encodes them, a redaction
 * sees them. A path such as `detail.value` names a field of a field. Kinds that are not listed hold none. A test
 * compares the table with the schemas, so that a new field is either here or in {@link plainFields}.
 */
export const payloadFields: { readonly [K in RecordKind]?: readonly string[] } = {
  "run.created": ["input"],
  "run.continued": ["input"],
  "run.decided": ["outcome"],
  "run.ended": ["outcome"],
  "run.stuck": ["detail.last"],
  "run.retried": ["error"],
  "step.done": ["value", "error"],
  "step.failed": ["error"],
  "decision.made": ["value", "error", "request", "response", "rationale"],
  "sample.taken": ["value"],
  "child.started": ["input"],
  "child.settled": ["outcome"],
  "child.received": ["outcome"],
  "effect.intended": ["args"],
  "effect.settled": ["value", "error"],
  "effect.received": ["value", "error"],
  "effect.observed": ["detail"],
  "effect.evidence": ["value", "error"],
  "effect.outcome": ["value", "error"],
  "obligation.armed": ["args"],
  "obligation.surplus": ["args"],
  "obligation.settled": ["value", "error"],
  "gate.opened": ["payload"],
  "gate.resolved": ["value"],
  "state.published": ["value"],
  "signal.sent": ["value"],
  "signal.refused": ["reason"],
  "reply.sent": ["value", "error"],
  "start.moved": ["input"],
  "value.written": ["value"],
  "operator.action": ["detail.value", "detail.error"],
};

/** Fields of any value that stay readable, with the reason. */
export const plainFields: { readonly [K in RecordKind]?: Readonly<Record<string, string>> } = {
  "run.stuck": { detail: "Tape's own words; the upstream's words are in detail.last" },
  "effect.intended": { policy: "the settings of an effect: attempts and times" },
  "fork.kept": { data: "records of other kinds, each with its own fields" },
  "operator.action": { detail: "what an operator chose; the value or error that they gave is in a field of it" },
};

/** Fields whose type is text: a sealed payload stands there as text, see `sealText`. */
export const textFields: ReadonlySet<string> = new Set(["decision.made rationale", "signal.refused reason"]);

/** Keyed hashes start with this, so that none is taken for what it hides, nor hashed twice. */
export const hashPrefix = "hmac:";

export const isHashed = (text: string): boolean => text.startsWith(hashPrefix);

/** The first payload of the record that this process could not open. */
export function sealedIn({ kind, data }: { readonly kind: string; readonly data: unknown }): SealedPayload | undefined {
  if (kind === "fork.kept") {
    const { records } = data as { readonly records: readonly { readonly kind: string; readonly data: unknown }[] };
    for (const kept of records) {
      const found = sealedIn(kept);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  for (const field of payloadFields[kind as RecordKind] ?? []) {
    const found = (data as Readonly<Record<string, unknown>>)[field];
    if (isSealed(found)) return found;
  }
  return undefined;
}

/** The error for a payload that this process could not open. */
export function sealedError(
  { key, problem }: SealedPayload,
  details: Readonly<Record<string, unknown>> = {},
): TapeError {
  if (problem !== undefined) return new TapeError(problem.code, problem.message, { key, ...details });
  return new TapeError("TAPE_NO_CODEC", `a payload is encrypted with key ${key}, and this process has no codec`, {
    key,
    ...details,
  });
}

/** The error for a payload of a run that was erased. */
export const erasedError = (details: Readonly<Record<string, unknown>> = {}): TapeError =>
  new TapeError("TAPE_ERASED", `the payloads of ${"run" in details ? `run ${details.run}` : "this run"} were erased`, {
    ...details,
  });

/** The value, unless it was erased or this process could not open it. */
export function readable<T>(value: T, details?: Readonly<Record<string, unknown>>): T {
  if (isErased(value)) throw erasedError(details);
  if (isSealed(value)) throw sealedError(value, details);
  return value;
}
