import { z } from "zod";
import { fromJson, toJson } from "../base/codec.ts";
import { type ErrorCode, errorTable, TapeError } from "../model/errors.ts";

/** An error as RFC 9457 defines it: `type` names the code, `detail` is the message, `next` the action to take. */
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

/** Statuses other than 400, the default. */
const statuses: Readonly<Partial<Record<ErrorCode, number>>> = {
  TAPE_UNAUTHENTICATED: 401,
  TAPE_FORBIDDEN: 403,
  TAPE_NOT_APPROVER: 403,
  TAPE_SELF_APPROVAL: 403,
  TAPE_NO_ROUTE: 404,
  TAPE_RUN_NOT_FOUND: 404,
  TAPE_LEASE_NOT_FOUND: 404,
  TAPE_SCHEDULE_NOT_FOUND: 404,
  TAPE_NOT_FOUND: 404,
  TAPE_RUN_CONFLICT: 409,
  TAPE_RUN_GONE: 410,
  TAPE_ERASED: 410,
  TAPE_RUN_ENDED: 409,
  TAPE_RUN_UNSETTLED: 409,
  TAPE_ILLEGAL_TRANSITION: 409,
  TAPE_NO_OBSERVER: 409,
  TAPE_NO_COMPENSATE: 409,
  TAPE_BUSINESS_KEY_TAKEN: 409,
  TAPE_BUDGET_EXCEEDED: 409,
  TAPE_GATE_STALE: 409,
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
  TAPE_UNARMED: 503,
  TAPE_CODEC_FAILED: 503,
  TAPE_OUTCOME_UNKNOWN: 500,
  TAPE_INVARIANT: 500,
};

export const statusOf = (code: ErrorCode): number => statuses[code] ?? 400;

/** Enough for a message with a few names. A response never repeats a whole request. */
const maxMessageChars = 2_048;
const maxDetailsChars = 8_192;
const excerptChars = 256;
const excerptItems = 16;

/**
 * What callers see of a store's error. The original message may contain addresses, users and names of constraints, so
 * it only goes to the log.
 */
const publicMessages: Readonly<Partial<Record<ErrorCode, string>>> = {
  TAPE_STORE_BUSY: "the store was busy for too long; see the server's log",
  TAPE_STORE_UNREACHABLE: "the store is unreachable; see the server's log",
  TAPE_OUTCOME_UNKNOWN: "the store's response was lost, so the write may have happened; see the server's log",
  TAPE_INVARIANT: "the server failed; see its log",
};

/** Encodes an error. Its message starts with the code, which has a field of its own on the wire. */
export function problemOf(error: TapeError): Problem {
  const { code, details, message } = error;
  const { fault, retry, next } = errorTable[code];
  const fullText = message.startsWith(`${code}: `) ? message.slice(code.length + 2) : message;
  const detail = publicMessages[code] ?? cut(fullText, maxMessageChars);
  const type = `urn:durable-tape:error:${code}`;
  const problem = { type, title: code, status: statusOf(code), detail, code, fault, retry, next };
  return Object.keys(details).length === 0 || publicMessages[code] !== undefined
    ? problem
    : { ...problem, details: shorten(toJson(details)) };
}

const cut = (text: string, chars: number): string =>
  text.length <= chars ? text : `${text.slice(0, chars).toWellFormed()}…`;

function shorten(details: unknown): unknown {
  return JSON.stringify(details).length <= maxDetailsChars ? details : excerptOf(details, 3);
}

/** The start of each string and list, which is enough to find the field. */
function excerptOf(json: unknown, levels: number): unknown {
  if (typeof json === "string") return cut(json, excerptChars);
  if (typeof json !== "object" || json === null) return json;
  if (levels === 0) return null;
  if (Array.isArray(json)) return json.slice(0, excerptItems).map((item) => excerptOf(item, levels - 1));
  const fields = Object.entries(json).slice(0, excerptItems);
  return Object.fromEntries(fields.map(([key, field]) => [cut(key, excerptChars), excerptOf(field, levels - 1)]));
}

/** Decodes an error. A code unknown to this version becomes TAPE_BAD_RESPONSE. */
export function errorOf(problem: Pick<Problem, "code" | "detail" | "details">): TapeError {
  const { code, detail } = problem;
  const details = (problem.details === undefined ? {} : fromJson(problem.details)) as Readonly<Record<string, unknown>>;
  if (Object.hasOwn(errorTable, code)) return new TapeError(code as ErrorCode, detail, details);
  return new TapeError("TAPE_BAD_RESPONSE", `the server sent the unknown error code ${code}: ${detail}`);
}
