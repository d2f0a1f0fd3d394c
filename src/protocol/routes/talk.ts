import { z } from "zod";
import { group } from "../route.ts";
import { fence, more, name, signal, text, value, whole, wholeText } from "../shapes.ts";
import { publishedValue, reply } from "../views.ts";

const byId = z.strictObject({ id: name });
const byName = z.strictObject({ id: name, name });
/** A token is two numbers and a MAC; a longer text is none. */
const callbackToken = z.string().min(1).max(128);

/** Bytes of a callback's body. Its sender has no credential, so it gets less than a caller with one. */
export const callbackBytes = 1_048_576;
const header = z.string().max(8_192);
export const callbackBody = z.strictObject({
  value: value.exactOptional(),
  raw: z
    .strictObject({
      body: z.string().max(callbackBytes),
      headers: z.array(z.strictObject({ name, value: header })).max(64),
    })
    .exactOptional(),
});

/** What a run shows and answers, and the callbacks of other systems. */
export const talk = group({
  "runs.published": {
    method: "GET",
    path: "/v1/runs/{id}/published",
    role: "reader",
    repeat: "read",
    summary: "Reads what the run has published, by name; above continues a listing",
    params: byId,
    query: z.strictObject({
      name: name.exactOptional(),
      above: text.exactOptional(),
      limit: wholeText.exactOptional(),
    }),
    answer: z.strictObject({ published: z.array(publishedValue), more }),
  },
  "runs.watch": {
    method: "GET",
    path: "/v1/runs/{id}/published/{name}/stream",
    role: "reader",
    repeat: "read",
    summary:
      "Streams the values of one name as the run publishes them, the latest first, one per line; ends with the run. " +
      "Resume after the last seq",
    params: byName,
    query: z.strictObject({ after: wholeText.exactOptional() }),
    answer: publishedValue,
    stream: true,
    errors: ["TAPE_RUN_NOT_FOUND"],
  },
  "runs.ask": {
    method: "POST",
    path: "/v1/runs/{id}/asks",
    role: "starter",
    repeat: "key",
    summary:
      "Sends a request to the run's gate; with waitMs the response waits for the reply, at most that long (30 000). " +
      "The same key gets the same reply",
    params: byId,
    query: z.strictObject({ waitMs: wholeText.exactOptional() }),
    size: "payload",
    body: signal.omit({ asks: true }),
    answer: z.strictObject({ n: whole, duplicate: z.boolean(), reply: reply.exactOptional() }),
    errors: [
      "TAPE_RUN_NOT_FOUND",
      "TAPE_RUN_ENDED",
      "TAPE_BAD_GATE_VALUE",
      "TAPE_GATE_STALE",
      "TAPE_NOT_APPROVER",
      "TAPE_SELF_APPROVAL",
    ],
  },
  "runs.reply": {
    method: "GET",
    path: "/v1/runs/{id}/replies/{n}",
    role: "reader",
    repeat: "read",
    summary: "Reads the reply to a request, by the number of its note; absent while the run has not answered",
    params: z.strictObject({ id: name, n: wholeText }),
    answer: z.strictObject({ reply: reply.exactOptional() }),
  },
  "callbacks.deliver": {
    method: "POST",
    path: "/v1/callbacks/{token}",
    role: "open",
    repeat: "same",
    foreign: true,
    summary: "Opens the gate that the token names, once. The token is the right; any other credential is ignored",
    params: z.strictObject({ token: callbackToken }),
    size: "callback",
    body: callbackBody,
    answer: z.strictObject({ duplicate: z.boolean() }),
    errors: ["TAPE_NOT_FOUND"],
  },
  "store.deliver": {
    method: "POST",
    path: "/v1/store/deliver",
    role: "starter",
    repeat: "key",
    summary: "The same for a program that has received the call itself; only for gates of the credential's tenant",
    size: "payload",
    body: z.strictObject({ token: callbackToken, body: callbackBody }),
    answer: z.strictObject({ duplicate: z.boolean() }),
    errors: ["TAPE_NOT_FOUND"],
  },
  "store.callbackSecret": {
    method: "POST",
    path: "/v1/store/callback-secret",
    role: "worker",
    repeat: "read",
    summary: "Reads the secret of a run's callbacks, for the holder of its lease",
    body: z.strictObject({ fence }),
    answer: z.strictObject({ secret: z.string() }),
    errors: ["TAPE_FENCED"],
  },
});
