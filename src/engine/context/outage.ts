import { describeThrown } from "../../base/thrown.ts";
import { TapeError } from "../../model/errors.ts";
import type { JournalRecord, RecordData } from "../../model/records.ts";
import { operationName } from "../replay/divergence.ts";

/**
 * An outage of the upstream that a step or decision calls. The attempts are used up, but the run neither fails nor
 * compensates: it parks, tries again at growing intervals, and needs an operator once that has lasted too long. The time
 * is the sum of pauses and attempts, not the difference of two wall clocks, which may disagree by hours. While no
 * process serves the run, the time stands still.
 */

export type Outage = NonNullable<RecordData<"step.failed">["outage"]>;

/** The shortest pause after the last attempt: the attempts themselves have outlasted short failures. */
const firstPauseMs = 30_000;
/** The longest one: with it a run resumes soon after the upstream, and a day of outage adds some hundred records. */
const maxPauseMs = 15 * 60_000;
/** So that the records of one outage stay far below the limit of a journal. */
export const maxOutageMs = 30 * 24 * 3_600_000;

export const outageBackoff = { baseMs: firstPauseMs * 2, capMs: maxPauseMs };

/** The step has given up, and no operator has resumed the run since. */
export function hasGivenUp(last: JournalRecord | undefined, unstuckSeq: number): Outage | undefined {
  if (last?.kind !== "step.failed" || last.data.outage?.gaveUp !== true || last.seq < unstuckSeq) return undefined;
  return last.data.outage;
}

/** The outage with the attempt that has just failed. `last`: the record of the previous failed attempt. */
export function outageAfter(
  last: Pick<RecordData<"step.failed">, "outage" | "delayMs"> | undefined,
  attemptMs: number,
  wall: number,
): Outage {
  if (last?.outage === undefined || last.outage.gaveUp === true) return { since: Math.floor(wall), ms: 0 };
  return { since: last.outage.since, ms: last.outage.ms + last.delayMs + Math.max(0, Math.floor(attemptMs)) };
}

/** Enough to see why the upstream does not answer. */
const maxChars = 300;

export function gaveUpError(
  { name, pos, attempt, error, outage }: RecordData<"step.failed">,
  operation: { readonly kind: string; readonly name: string },
): TapeError {
  const since = outage?.since ?? 0;
  const subject = operation.kind === "decision.made" ? "model" : "upstream";
  const last = describeThrown(error).slice(0, maxChars);
  const message = `${subject} unreachable since ${time(since)}: ${operationName(operation)} has failed ${attempt} times, the last time with: ${last}`;
  return new TapeError("TAPE_UNREACHABLE", message, { step: name, pos, attempt, since });
}

/** What a run waits for during an outage. */
export function outageText(operation: string, since: number): string {
  return `another attempt of ${operation}, which has failed since ${time(since)}`;
}

const time = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
