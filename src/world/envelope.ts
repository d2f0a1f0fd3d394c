import { createHmac } from "node:crypto";
import { fromJson, toJson } from "../base/codec.ts";
import { boundedBody } from "../base/request-body.ts";
import { isTapeError } from "../model/errors.ts";
import { isSameMac } from "../model/fence-mac.ts";
import type { WorldDeps } from "./run-log.ts";

/** Bytes of one message on its way. */
export const maxMessageBytes = 8 * 1024 * 1024;

/** A message on its way to a handler. */
export interface Delivery {
  readonly queue: string;
  readonly id: string;
  readonly attempt: number;
  readonly body: string;
}

const names = {
  queue: "x-tape-queue",
  id: "x-tape-message",
  attempt: "x-tape-attempt",
  signature: "x-tape-signature",
};

/** The body of a message's deliveries. The run stands outside of the encoded part, for logs and proxies. */
export function bodyOf(message: unknown): string {
  const { runId, workflowRunId } = message as { runId?: unknown; workflowRunId?: unknown };
  const run = runId ?? workflowRunId;
  return JSON.stringify({ ...(typeof run === "string" && { runId: run }), message: toJson(message) });
}

/** The headers of a delivery. Those of the message's sender cannot replace ours. */
export function headersOf(
  delivery: Delivery,
  secret: string,
  given: Readonly<Record<string, string>>,
): Record<string, string> {
  const { queue, id, attempt } = delivery;
  const own = { [names.queue]: queue, [names.id]: id, [names.attempt]: String(attempt) };
  const lower = Object.fromEntries(Object.entries(given).map(([name, value]) => [name.toLowerCase(), value]));
  const length = String(Buffer.byteLength(delivery.body));
  const content = { "content-type": "application/json", "content-length": length };
  return { ...lower, ...content, ...own, [names.signature]: signatureOf(delivery, secret) };
}

/** Reads a delivery, or says with which status it is refused. */
export async function readDelivery(
  request: Request,
  secret: () => Promise<string>,
): Promise<(Delivery & { readonly message: unknown }) | { readonly refused: number; readonly why: string }> {
  const header = (name: string): string => request.headers.get(name) ?? "";
  const attempt = Number(header(names.attempt));
  const [queue, id] = [header(names.queue), header(names.id)];
  if (request.method !== "POST" || queue === "" || id === "" || !Number.isSafeInteger(attempt) || attempt < 1) {
    return { refused: 400, why: "this is no delivery of a message" };
  }
  const bytes = await boundedBody(request, maxMessageBytes);
  if (bytes === undefined) return { refused: 413, why: `the body is larger than ${maxMessageBytes} bytes` };
  const delivery = { queue, id, attempt, body: Buffer.from(bytes).toString("utf8") };
  if (!isSameMac(header(names.signature), signatureOf(delivery, await secret()))) {
    return { refused: 401, why: "the delivery is not signed by a process of this world" };
  }
  return { ...delivery, message: fromJson((JSON.parse(delivery.body) as { message: unknown }).message) };
}

/** Only a process that reaches the store can sign: the route of the handler may be open to everyone. */
function signatureOf({ queue, id, attempt, body }: Delivery, secret: string): string {
  // Header values contain no line breaks, so the parts cannot run together.
  return createHmac("sha256", secret).update(`tape-world/1\n${queue}\n${id}\n${attempt}\n${body}`).digest("hex");
}

/** The secret that the processes of a World share: a value that the first of them creates. */
export async function secretOf({ store, tenant, keys, random }: WorldDeps): Promise<string> {
  const key = keys.secret();
  const found = await store.read.value(tenant, key);
  if (found !== undefined && !found.deleted) return String(found.value);
  const secret = Buffer.from(random.bytes(32)).toString("hex");
  try {
    await store.intake.putValue(tenant, key, secret, { version: found?.version ?? 0 });
    return secret;
  } catch (error) {
    if (!isTapeError(error, "TAPE_VERSION_CONFLICT")) throw error;
    return String((await store.read.value(tenant, key))?.value);
  }
}
