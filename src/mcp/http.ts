import { eventsType, jsonType } from "../protocol/transport.ts";
import { errorMessage, invalidRequest, type RpcNotification, type RpcResponse } from "./json-rpc.ts";
import { type McpServer, newSession, type Session } from "./mcp-server.ts";
import { maxBatch } from "./stdio.ts";
import { assumedVersion, hasBatches, isVersion, protocolVersions } from "./versions.ts";

/** A response over HTTP: none, one document, or events. */
export interface HttpReply {
  readonly status: number;
  readonly type?: string;
  readonly body?: string | AsyncIterable<string>;
}

export interface HttpPost {
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly json: unknown;
  readonly signal: AbortSignal;
}

/**
 * Streamable HTTP without sessions: every POST stands alone, so any replica can take it. A tool that sends notifications
 * is answered by a stream of events, if the client accepts one; everything else by one document.
 */
export async function handlePost(server: McpServer, { headers, json, signal }: HttpPost): Promise<HttpReply> {
  const version = headers["mcp-protocol-version"] ?? assumedVersion;
  if (!isVersion(version)) return refusal(`mcp-protocol-version must be one of ${protocolVersions.join(", ")}`);
  const session: Session = { ...newSession(version), level: "info" }; // nothing remembers what a client has set
  if (Array.isArray(json)) {
    if (!hasBatches(version) || json.length === 0 || json.length > maxBatch) {
      return refusal(`a batch has 1 to ${maxBatch} messages, and only version 2025-03-26 has batches`);
    }
    const answers: RpcResponse[] = [];
    for (const one of json) {
      const answer = await server.handle(one, session, { signal, notify: () => {} });
      if (answer !== undefined) answers.push(answer);
    }
    return answers.length === 0 ? { status: 202 } : document(answers);
  }
  if (server.notifies(json) && (headers.accept ?? "").includes(eventsType)) {
    return { status: 200, type: eventsType, body: events(server, json, session, signal) };
  }
  const answer = await server.handle(json, session, { signal, notify: () => {} });
  if (answer === undefined) return { status: 202 };
  return document(answer, answer.id === null ? 400 : 200);
}

async function* events(
  server: McpServer,
  json: unknown,
  session: Session,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const ready: (RpcNotification | RpcResponse)[] = [];
  let wake = (): void => {};
  let isOver = false;
  const notify = (message: RpcNotification): void => {
    ready.push(message);
    wake();
  };
  const ended = server.handle(json, session, { signal, notify }).then((answer) => {
    if (answer !== undefined) ready.push(answer);
    isOver = true;
    wake();
  });
  for (;;) {
    for (const message of ready.splice(0)) yield `event: message\ndata: ${JSON.stringify(message)}\n\n`;
    if (isOver) return ended;
    await new Promise<void>((resolve) => {
      wake = resolve;
      if (ready.length > 0 || isOver) resolve();
    });
  }
}

const document = (json: object, status = 200): HttpReply => ({ status, type: jsonType, body: JSON.stringify(json) });

const refusal = (message: string): HttpReply => document(errorMessage(null, invalidRequest(message)), 400);
