import type { z } from "zod";
import type { ErrorCode } from "../model/errors.ts";
import type { Role } from "../model/roles.ts";

export { mayDo, type Role, roles } from "../model/roles.ts";

/**
 * Why a call may be sent again after a lost answer: it reads; or the same call finds what it did before (an id, a nonce,
 * a version, a token and a place in a journal); or `Idempotency-Key` says that it is the same call.
 */
export type Repeat = "read" | "same" | "key";

/**
 * One call of the protocol. From this the server takes its checks, the client its types, /openapi.json its text and the
 * tests their matrix; nothing of the wire is written down anywhere else. Schemas are codecs: the wire has JSON, both
 * ends have what the program means (tokens as bigints, values as the user gave them).
 */
export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** `{name}` stands for one segment. */
  readonly path: string;
  /** "open": anybody, without a credential. */
  readonly role: Role | "open";
  readonly summary: string;
  readonly repeat: Repeat;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** What makes the body large: lists of names, a value, many values. Absent: nothing does. */
  readonly size?: "names" | "payload" | "batch";
  /** What comes back: one JSON document, or with `stream` each line of an unending answer. */
  readonly answer: z.ZodType;
  readonly stream?: true;
  /** Leases are lost where it is late: it has room of its own. */
  readonly urgent?: true;
  /** Answers that are no JSON of ours: metrics, a page. */
  readonly type?: string;
  /** Refusals that a caller should expect, beside those that every route has. */
  readonly errors?: readonly ErrorCode[];
  /** A person's deed: it needs a reason, and the audit keeps who did it. */
  readonly manual?: true;
}

/** Keeps the literal types of one group of routes. */
export const group = <const R extends Readonly<Record<string, Route>>>(routes: R): R => routes;
