import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Clock } from "../base/clock.ts";
import type { WireResponse } from "../protocol/transport.ts";
import type { UnreadResponses } from "./unread.ts";

/** What writing a response needs. */
export interface WriteDeps {
  readonly unread: UnreadResponses;
  readonly clock: Clock;
  /** How long a reader may read nothing. */
  readonly writeMs: number;
}

/** A large response is written in pieces of this size; each must be read in time. */
const pieceBytes = 64 * 1024;

/**
 * Writes a response. Ends when the system has all of it, or its reader has disconnected or read nothing for too long.
 */
export async function write(
  response: ServerResponse,
  { status, headers, body }: WireResponse,
  deps: WriteDeps,
): Promise<void> {
  if (body instanceof Uint8Array) return writeWhole(response, { status, headers, body }, deps);
  response.writeHead(status, headers);
  response.flushHeaders();
  for await (const chunk of body) {
    if (response.destroyed) return;
    if (response.write(chunk)) continue;
    // The reader is slow: nothing more is read from the store until it catches up.
    const done = deps.unread.add(chunk.length, () => response.destroy());
    await readBy(response, "drain", deps).finally(done);
  }
  response.end();
}

async function writeWhole(
  response: ServerResponse,
  { status, headers, body }: WireResponse & { readonly body: Uint8Array },
  deps: WriteDeps,
): Promise<void> {
  response.writeHead(status, { ...headers, "content-length": body.length });
  const bodiless = response.req.method === "HEAD" || status === 304;
  if (bodiless || body.length <= pieceBytes) response.end(bodiless ? undefined : body);
  if (response.writableEnded && (response.socket?.writableLength ?? 0) === 0) return;
  const done = deps.unread.add(body.length, () => response.destroy());
  try {
    for (let at = 0; !response.writableEnded && !response.destroyed; at += pieceBytes) {
      const last = at + pieceBytes >= body.length;
      const piece = body.subarray(at, at + pieceBytes);
      if (last) response.end(piece);
      else if (!response.write(piece)) await readBy(response, "drain", deps);
    }
    if (!response.writableFinished) await readBy(response, "finish", deps);
  } finally {
    done();
  }
}

/** Waits for the event or the reader's disconnection; a reader that reads nothing for too long is disconnected. */
async function readBy(
  response: ServerResponse,
  event: "drain" | "finish",
  { clock, writeMs }: WriteDeps,
): Promise<void> {
  if (response.destroyed) return;
  const stop = new AbortController();
  const { signal } = stop;
  const cancel = clock.after(writeMs, () => response.destroy());
  try {
    await Promise.race([once(response, event, { signal }), once(response, "close", { signal })]);
  } finally {
    cancel();
    stop.abort("read");
  }
}
