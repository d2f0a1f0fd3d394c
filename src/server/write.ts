import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Clock } from "../base/clock.ts";
import type { WireResponse } from "../protocol/transport.ts";
import type { UnreadResponses } from "./unread.ts";

/** What answers are written with. */
export interface Paper {
  readonly unread: UnreadResponses;
  readonly clock: Clock;
  /** How long a reader may take nothing. */
  readonly writeMs: number;
}

/** A large answer goes out in pieces of this size: each must be taken in time. */
const pieceBytes = 64 * 1024;

/** Writes an answer; ends when all of it is with the system, or its reader has gone or taken nothing for too long. */
export async function write(
  response: ServerResponse,
  { status, headers, body }: WireResponse,
  paper: Paper,
): Promise<void> {
  if (body instanceof Uint8Array) return writeWhole(response, { status, headers, body }, paper);
  response.writeHead(status, headers);
  response.flushHeaders();
  for await (const chunk of body) {
    if (response.destroyed) return;
    if (response.write(chunk)) continue;
    // The reader is slow: nothing more is read from the store until there is room.
    const over = paper.unread.begun(chunk.length, () => response.destroy());
    await taken(response, "drain", paper).finally(over);
  }
  response.end();
}

async function writeWhole(
  response: ServerResponse,
  { status, headers, body }: WireResponse & { readonly body: Uint8Array },
  paper: Paper,
): Promise<void> {
  response.writeHead(status, { ...headers, "content-length": body.length });
  const bodiless = response.req.method === "HEAD" || status === 304;
  if (bodiless || body.length <= pieceBytes) response.end(bodiless ? undefined : body);
  if (response.writableEnded && (response.socket?.writableLength ?? 0) === 0) return;
  const over = paper.unread.begun(body.length, () => response.destroy());
  try {
    for (let at = 0; !response.writableEnded && !response.destroyed; at += pieceBytes) {
      const last = at + pieceBytes >= body.length;
      const piece = body.subarray(at, at + pieceBytes);
      if (last) response.end(piece);
      else if (!response.write(piece)) await taken(response, "drain", paper);
    }
    if (!response.writableFinished) await taken(response, "finish", paper);
  } finally {
    over();
  }
}

/** Until the event comes or the reader has gone; one that takes nothing for too long is cut off. */
async function taken(response: ServerResponse, event: "drain" | "finish", { clock, writeMs }: Paper): Promise<void> {
  if (response.destroyed) return;
  const stop = new AbortController();
  const { signal } = stop;
  const cancel = clock.after(writeMs, () => response.destroy());
  try {
    await Promise.race([once(response, event, { signal }), once(response, "close", { signal })]);
  } finally {
    cancel();
    stop.abort("taken");
  }
}
