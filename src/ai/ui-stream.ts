import type { RunFollower } from "../host/follow-run.ts";
import { assertKnownKeys, assertOneOf } from "../sdk/validate.ts";
import { type UiChunk, UiChunks } from "./ui-chunks.ts";

export type { UiChunk } from "./ui-chunks.ts";

/** Where a stream of a run starts, and how to stop it. */
export interface UiStreamOptions {
  /** The id of the last event that a client has received (`Last-Event-ID`). Default: from the beginning of the run. */
  readonly after?: string;
  readonly signal?: AbortSignal;
  /**
   * What happens where a model call starts again after a crash. `"reset-step"` (default): the client drops the half
   * step; AI SDK 7 knows the chunk. `"end"`: the stream ends, and a client of AI SDK 6 resumes it from the beginning.
   */
  readonly onReset?: "reset-step" | "end";
}

/**
 * A run as chunks of the SDK's UI message stream: words while they are written, tool calls, approvals. Any process that
 * reaches the store can serve it, before, during and after a crash of the process that drives the run.
 *
 * @example
 * for await (const chunk of uiStream(app, "chat-7")) console.log(chunk.type);
 */
export function uiStream(app: RunFollower, run: string, options: UiStreamOptions = {}): ReadableStream<UiChunk> {
  const chunks = chunksOf(app, run, options);
  return new ReadableStream<UiChunk>({
    async pull(controller) {
      const next = await chunks.next();
      if (next.done === true) controller.close();
      else controller.enqueue(next.value.chunk);
    },
    cancel: async () => void (await chunks.return(undefined)),
  });
}

/**
 * The same as a response of server-sent events. Each event has an id: a client that sends the last one as
 * `Last-Event-ID` continues behind it.
 *
 * @example
 * export const GET = () => uiResponse(app, "chat-7");
 */
export function uiResponse(app: RunFollower, run: string, options: UiStreamOptions = {}): Response {
  const chunks = chunksOf(app, run, options);
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = await chunks.next();
      if (next.done !== true) {
        const { cursor, chunk } = next.value;
        controller.enqueue(encoder.encode(`id: ${cursor}\ndata: ${JSON.stringify(chunk)}\n\n`));
        return;
      }
      controller.enqueue(encoder.encode("data: [DONE]\n\n"));
      controller.close();
    },
    cancel: async () => void (await chunks.return(undefined)),
  });
  return new Response(body, { headers: streamHeaders });
}

/** As the SDK's own responses have them; the last one keeps proxies from buffering. */
const streamHeaders = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  "x-vercel-ai-ui-message-stream": "v1",
  "x-accel-buffering": "no",
};

async function* chunksOf(
  app: RunFollower,
  run: string,
  options: UiStreamOptions,
): AsyncGenerator<{ readonly cursor: string; readonly chunk: UiChunk }> {
  assertKnownKeys("uiStream", options, ["after", "signal", "onReset"]);
  const { onReset = "reset-step", ...follow } = options;
  assertOneOf("uiStream", "onReset", onReset, ["reset-step", "end"]);
  const chunks = new UiChunks(run);
  for await (const event of app.streams.follow(run, follow)) {
    for (const chunk of chunks.of(event)) {
      if (chunk.type === "reset-step" && onReset === "end") return;
      yield { cursor: event.cursor, chunk };
    }
  }
}
