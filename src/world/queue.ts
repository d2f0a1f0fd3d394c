import {
  type MessageId,
  parseQueueName,
  type Queue,
  type QueueOptions,
  QueuePayloadSchema,
  ValidQueueName,
} from "@workflow/world";
import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import { describeThrown } from "../base/thrown.ts";
import type { StartOptions } from "../host/options.ts";
import type { Workflow } from "../sdk/workflow.ts";
import { maxDelayMs, type QueuedMessage } from "./delivery.ts";
import { bodyOf, maxMessageBytes, readDelivery } from "./envelope.ts";
import { ulid } from "./ids.ts";
import { bad, textOf } from "./paging.ts";
import type { WorldDeps } from "./run-log.ts";

/** Headers that a sender may add to a message, and their characters. */
const maxHeaders = 64;
const maxHeaderChars = 16 * 1024;

/** What accepting a message needs of an app. */
export interface QueueApp {
  start<I, O>(workflow: Workflow<I, O>, input: I, options?: StartOptions): Promise<{ readonly id: string }>;
}

type Handle = Parameters<Queue["createQueueHandler"]>[1];

/**
 * Accepts a message: when it resolves, the message is durable. While a message with this idempotency key is not done, the
 * same key is the same message.
 */
export async function enqueue(
  app: QueueApp,
  messages: Workflow<QueuedMessage, unknown>,
  { clock, random }: Pick<WorldDeps, "clock" | "random">,
  [queueName, message, options = {}]: Parameters<Queue["queue"]>,
): Promise<{ messageId: MessageId }> {
  const queue = textOf("queueName", queueName);
  if (!ValidQueueName.safeParse(queue).success) throw bad("queueName", `${queue} is no queue of the framework`);
  const parsed = QueuePayloadSchema.safeParse(message);
  if (!parsed.success) throw bad("message", `the message is not one of the framework's: ${parsed.error.message}`);
  if (Buffer.byteLength(bodyOf(message)) > maxMessageBytes) {
    throw bad("message", `the message is larger than ${maxMessageBytes} bytes`);
  }
  const { runId, workflowRunId } = message as { runId?: string; workflowRunId?: string };
  const run = runId ?? workflowRunId;
  const route = parseQueueName(queue).kind === "workflow" ? "flow" : "step";
  const queued = { queue, route, message, headers: checkedHeaders(options.headers) };
  const started = await app.start(messages, queued, {
    id: `msg_${ulid(clock.wall(), random)}`,
    ...timingOf(options),
    ...(run !== undefined && { labels: { "workflow.run": run } }),
  });
  return { messageId: started.id as MessageId };
}

function timingOf({ idempotencyKey, delaySeconds = 0 }: QueueOptions): StartOptions {
  const delay = Math.ceil(delaySeconds * 1_000);
  if (!(delay >= 0 && delay <= maxDelayMs)) {
    throw bad("delaySeconds", `delaySeconds is a number from 0 to ${maxDelayMs / 1_000}, not ${String(delaySeconds)}`);
  }
  return {
    ...(delay > 0 && { delay }),
    ...(idempotencyKey !== undefined && {
      unique: { key: textOf("idempotencyKey", idempotencyKey), onConflict: "join" as const },
    }),
  };
}

function checkedHeaders(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  const all = Object.entries(headers);
  const chars = all.reduce((sum, [name, value]) => sum + name.length + String(value).length, 0);
  const isFit = ([name, value]: [string, unknown]): boolean =>
    /^[\w!#$%&'*+.^`|~-]+$/.test(name) && typeof value === "string" && /^[\t\x20-\x7e]*$/.test(value);
  if (all.length <= maxHeaders && chars <= maxHeaderChars && all.every(isFit)) return { ...headers };
  throw bad("headers", `headers are at most ${maxHeaders} texts of ${maxHeaderChars} characters together`);
}

/** The handler of a route: the framework mounts it, and deliveries are posted to it. */
export function queueHandler(
  prefix: string,
  handle: Handle,
  { secret, log }: { readonly secret: () => Promise<string>; readonly log: Log },
): (request: Request) => Promise<Response> {
  return async (request) => {
    const delivery = await readDelivery(request, secret);
    if ("refused" in delivery) return Response.json({ error: delivery.why }, { status: delivery.refused });
    const { queue, id, attempt, message } = delivery;
    if (!queue.startsWith(prefix)) return Response.json({ error: `no handler of ${prefix}` }, { status: 400 });
    try {
      const result = await handle(message, { attempt, queueName: queue, messageId: id as MessageId });
      const timeoutSeconds = result?.timeoutSeconds;
      return Response.json(typeof timeoutSeconds === "number" ? { timeoutSeconds } : { ok: true });
    } catch (error) {
      log("warn", "world.delivery_failed", { queue, message: id, attempt, ...errorFields(error) });
      return Response.json({ failed: true, error: describeThrown(error) }, { status: 500 });
    }
  };
}
