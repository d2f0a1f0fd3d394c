import type { Duration } from "../base/duration.ts";
import { TapeError } from "../model/errors.ts";
import { durationOrThrow } from "../sdk/validate.ts";

/** An action that is further away is probably a wrong unit. */
const maxMs = 366 * 86_400_000;

/** How long an operator defers an action. */
export function laterMs(subject: string, after: Duration): number {
  const ms = Math.ceil(durationOrThrow(subject, "in", after, 1));
  if (ms <= maxMs) return ms;
  throw new TapeError("TAPE_BAD_INPUT", `${subject}: in is at most 366 days`, { field: "in" });
}
