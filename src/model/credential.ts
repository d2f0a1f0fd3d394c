import { z } from "zod";

/** Longer than any name that a store accepts by default. Everything on the wire has a bound. */
const maxChars = 4_096;
const text = z.string().max(maxChars);
const name = z.string().min(1).max(maxChars);

/**
 * The credential of an operator action, as the server saw it; `who` names the operator. Absent: a program that opened
 * the store did it.
 */
export const credential = z.strictObject({
  /** The token's id; absent: the server requires no credentials. */
  token: name.exactOptional(),
  name: text,
  role: name,
  /** The caller's address. */
  address: text.exactOptional(),
  /** The caller's `X-Request-Id`. */
  request: text.exactOptional(),
  /** A tool call of a model, by the Model Context Protocol. Absent: a call of the HTTP API. */
  channel: z.literal("mcp").exactOptional(),
});
export type Credential = z.infer<typeof credential>;
