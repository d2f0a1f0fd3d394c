import type { z } from "zod";
import type { ErrorCode } from "../model/errors.ts";
import type { Role } from "../model/roles.ts";

export { mayDo, type Role, roles } from "../model/roles.ts";

/**
 * Why a call is safe to repeat after a lost response. `read`: it changes nothing. `same`: the call itself names its
 * earlier effect (an id, a nonce, a version, a token and a seq). `key`: its `Idempotency-Key` does.
 */
export type Repeat = "read" | "same" | "key";

/**
 * One call of the protocol, defined only here: the server derives its checks, the client its types, /openapi.json its
 * text and the tests their matrix. Schemas are codecs between the JSON of the wire and the values of the program
 * (tokens as bigints, values as the user passed them).
 */
export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** `{name}` matches one segment. */
  readonly path: string;
  /** "open": no credential required. */
  readonly role: Role | "open";
  readonly summary: string;
  readonly repeat: Repeat;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** What makes the body large: lists of names, a value, many values, a callback. Absent: the body is small. */
  readonly size?: "names" | "payload" | "batch" | "callback";
  /** Another system sends the call: its body may be any text, and a credential that it sends is not for us. */
  readonly foreign?: true;
  /** The response: one JSON document, or with `stream` each line of an endless response. */
  readonly answer: z.ZodType;
  readonly stream?: true;
  /** A stream that browsers follow: each line has an offset and may be an event of text/event-stream. */
  readonly events?: true;
  /** A delay of this call can lose leases, so it has reserved capacity. */
  readonly urgent?: true;
  /** The content type of a response that is not JSON: metrics, a page. */
  readonly type?: string;
  /** Another protocol over HTTP: its handler makes the response, with a status of its own. */
  readonly raw?: true;
  /** Errors that a caller should expect, besides those of every route. */
  readonly errors?: readonly ErrorCode[];
  /** An operator action: it requires a reason, and the audit log records it. */
  readonly manual?: true;
}

/** Preserves the literal types of one group of routes. */
export const group = <const R extends Readonly<Record<string, Route>>>(routes: R): R => routes;
