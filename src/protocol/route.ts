import type { z } from "zod";
import type { ErrorCode } from "../model/errors.ts";

/**
 * Who may call what. Each role may do all that the ones before it may, but for two that stand apart: a worker drives
 * runs and may not act as a person, an operator acts as a person and may not drive.
 */
export const roles = ["reader", "starter", "worker", "operator", "admin"] as const;
export type Role = (typeof roles)[number];

const grants: Readonly<Record<Role, readonly Role[]>> = {
  reader: ["reader"],
  starter: ["reader", "starter"],
  worker: ["reader", "starter", "worker"],
  operator: ["reader", "starter", "operator"],
  admin: ["reader", "starter", "worker", "operator", "admin"],
};

/** Whether somebody with this role may do what asks for that one. */
export const mayDo = (role: Role, asked: Role): boolean => grants[role].includes(asked);

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
