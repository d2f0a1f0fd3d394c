import { z } from "zod";

/** Longer than any name that a store takes by default; it travels, and what travels has a bound. */
const most = 4_096;
const text = z.string().max(most);
const name = z.string().min(1).max(most);

/**
 * Through which credential an operator acted, as the server that took the call says; apart from `who`, which names people.
 * Absent: by a program with the store itself.
 */
export const credential = z.strictObject({
  /** The id of the token; absent: that server asks nobody for one. */
  token: name.exactOptional(),
  name: text,
  role: name,
  /** The address from which the call came. */
  address: text.exactOptional(),
  /** The caller's `X-Request-Id`. */
  request: text.exactOptional(),
});
export type Credential = z.infer<typeof credential>;
