import { z } from "zod";
import { fromJson, toJson } from "../base/codec.ts";
import { type ErrorCode, errorTable, TapeError } from "../model/errors.ts";

/** Refusals as RFC 9457 has them: `type` names the code, `detail` is the sentence, `next` says what to do. */
export const problemSchema = z.strictObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string(),
  fault: z.string(),
  retry: z.string(),
  next: z.string(),
  details: z.unknown().exactOptional(),
});
export type Problem = z.output<typeof problemSchema>;
export const problemType = "application/problem+json";

/** Statuses that say more than "the caller" (400) or "try later" (503). */
const statuses: Readonly<Partial<Record<ErrorCode, number>>> = {
  TAPE_UNAUTHENTICATED: 401,
  TAPE_FORBIDDEN: 403,
  TAPE_NOT_APPROVER: 403,
  TAPE_NO_ROUTE: 404,
  TAPE_RUN_NOT_FOUND: 404,
  TAPE_LEASE_NOT_FOUND: 404,
  TAPE_SCHEDULE_NOT_FOUND: 404,
  TAPE_NOT_FOUND: 404,
  TAPE_RUN_CONFLICT: 409,
  TAPE_RUN_GONE: 410,
  TAPE_RUN_ENDED: 409,
  TAPE_RUN_UNSETTLED: 409,
  TAPE_ILLEGAL_TRANSITION: 409,
  TAPE_NO_OBSERVER: 409,
  TAPE_NO_COMPENSATE: 409,
  TAPE_BUSINESS_KEY_TAKEN: 409,
  TAPE_BUDGET_EXCEEDED: 409,
  TAPE_VERSION_CONFLICT: 412,
  TAPE_VALUE_COMPACTED: 410,
  TAPE_SCHEDULE_EXISTS: 409,
  TAPE_KEY_REUSED: 422,
  TAPE_FENCED: 409,
  TAPE_NOT_HEAD: 409,
  TAPE_NOTES_PENDING: 409,
  TAPE_LEASE_HELD: 409,
  TAPE_LEASE_LOST: 409,
  TAPE_LEASE_PAUSED: 409,
  TAPE_LEASE_STALLED: 409,
  TAPE_TOO_LARGE: 413,
  TAPE_QUOTA: 429,
  TAPE_RATE_LIMITED: 429,
  TAPE_OVERLOADED: 503,
  TAPE_DRAINING: 503,
  TAPE_STORE_BUSY: 503,
  TAPE_STORE_UNREACHABLE: 503,
  TAPE_STORE_CLOSED: 503,
  TAPE_OUTCOME_UNKNOWN: 500,
  TAPE_INVARIANT: 500,
};

export const statusOf = (code: ErrorCode): number => statuses[code] ?? 400;

/** A sentence with a few names in it. What somebody sent is never sent back whole. */
const maxChars = 2_048;
const maxDetails = 8_192;
const excerptLetters = 256;
const excerptItems = 16;

/**
 * What a store's trouble is called outside: its own words hold addresses, users and names of constraints, which are for
 * the log.
 */
const outside: Readonly<Partial<Record<ErrorCode, string>>> = {
  TAPE_STORE_BUSY: "the store did not get to it in time; the server's log says more",
  TAPE_STORE_UNREACHABLE: "the store cannot be reached; the server's log says why",
  TAPE_OUTCOME_UNKNOWN: "the store's answer was lost, and it may have been done; the server's log says more",
  TAPE_INVARIANT: "the server failed; its log says why",
};

/** The message already begins with the code; the wire has it in a field of its own. */
export function problemOf(error: TapeError): Problem {
  const { code, details, message } = error;
  const { fault, retry, next } = errorTable[code];
  const whole = message.startsWith(`${code}: `) ? message.slice(code.length + 2) : message;
  const detail = outside[code] ?? cut(whole, maxChars);
  const type = `urn:durable-tape:error:${code}`;
  const said = { type, title: code, status: statusOf(code), detail, code, fault, retry, next };
  return Object.keys(details).length === 0 || outside[code] !== undefined
    ? said
    : { ...said, details: within(toJson(details)) };
}

const cut = (text: string, letters: number): string =>
  text.length <= letters ? text : `${text.slice(0, letters).toWellFormed()}…`;

function within(details: unknown): unknown {
  return JSON.stringify(details).length <= maxDetails ? details : excerptOf(details, 3);
}

/** The beginning of each text and of each list, so that the place can still be found. */
function excerptOf(json: unknown, levels: number): unknown {
  if (typeof json === "string") return cut(json, excerptLetters);
  if (typeof json !== "object" || json === null) return json;
  if (levels === 0) return null;
  if (Array.isArray(json)) return json.slice(0, excerptItems).map((one) => excerptOf(one, levels - 1));
  const fields = Object.entries(json).slice(0, excerptItems);
  return Object.fromEntries(fields.map(([key, one]) => [cut(key, excerptLetters), excerptOf(one, levels - 1)]));
}

/** A code that this version does not know is an error of the other side, and says so. */
export function errorOf(problem: Pick<Problem, "code" | "detail" | "details">): TapeError {
  const { code, detail } = problem;
  const details = (problem.details === undefined ? {} : fromJson(problem.details)) as Readonly<Record<string, unknown>>;
  if (Object.hasOwn(errorTable, code)) return new TapeError(code as ErrorCode, detail, details);
  return new TapeError(
    "TAPE_BAD_RESPONSE",
    `the server refused with ${code}, which this version does not know: ${detail}`,
  );
}
