import { z } from "zod";
import { credential } from "./credential.ts";

const text = z.string();
const name = z.string().min(1);
const count = z.int().nonnegative();
/** A user's value: anything that the codec can encode. */
const value = z.unknown();

/** The records by which a run and its callers talk: see records.ts for all kinds. */
export const talkSchemas = {
  /** The latest value of a name, which readers see without replay. */
  "state.published": z.strictObject({ pos: count, name, value }),
  /** The run changes its labels. No key is in both. */
  "labels.set": z.strictObject({ pos: count, set: z.record(text, text), unset: z.array(name) }),
  /**
   * `approves`: the open gates that the sender may answer, of those with approvers and, for a token, with a bound call;
   * `pos`: the gate whose token was sent. The store writes both. `asks`: the sender waits for a reply. `reason`: for the
   * audit log.
   */
  "signal.sent": z.strictObject({
    approves: z.array(count).exactOptional(),
    pos: count.exactOptional(),
    asks: z.literal(true).exactOptional(),
    name,
    value,
    key: name.optional(),
    binds: text.optional(),
    by: text.optional(),
    reason: text.exactOptional(),
    via: credential.exactOptional(),
  }),
  /**
   * A signal that does not match its gate's schema; the gate keeps waiting. `note`: its number in the inbox. `asks`: its
   * sender waits for a reply, and the refusal is the reply.
   */
  "signal.refused": z.strictObject({ name, note: count, reason: text, asks: z.literal(true).exactOptional() }),
  /** The reply to a request. `note`: the request's number in the inbox; absent: a fork has kept the request. */
  "reply.sent": z.strictObject({
    pos: count,
    note: count.optional(),
    value: value.optional(),
    error: value.optional(),
  }),
} as const;
