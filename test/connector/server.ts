import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { onTestFinished } from "vitest";
import { makeFence } from "../../src/model/fence.ts";
import type { ConnectorContext } from "../../src/sdk/connector.ts";
import { AckLost, DefiniteFailure, NotSent } from "../../src/sdk/outcomes.ts";
import { certificate, privateKey } from "./certificate.ts";

/** One connection, as a server sees it that does what the test wants. */
export interface Visit {
  readonly socket: Socket;
  /** Everything that has arrived. */
  readonly text: () => string;
  /** Resolves once this much of the request has come: its head, or all of it. */
  head(): Promise<string>;
  whole(): Promise<string>;
  readonly closed: Promise<void>;
}

export interface WireServer {
  readonly port: number;
  readonly visits: readonly Visit[];
  /** Resolves with the n-th visit, from 1. */
  visit(n: number): Promise<Visit>;
}

type Play = (visit: Visit) => void | Promise<void>;

/** A server that speaks bytes, so that it can break off anywhere. It dies with the test. */
export async function serve(play: Play, at: { host?: string; port?: number; tls?: boolean } = {}): Promise<WireServer> {
  const visits: Visit[] = [];
  let arrived = () => {};
  const welcome = (socket: Socket): void => {
    const visit = visitOf(socket);
    visits.push(visit);
    arrived();
    void Promise.resolve(play(visit)).catch(() => socket.destroy());
  };
  const server: Server = at.tls
    ? createTlsServer({ cert: certificate, key: privateKey }, welcome)
    : createServer(welcome);
  await new Promise<void>((resolve) => server.listen(at.port ?? 0, at.host ?? "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const { socket } of visits) socket.destroy();
    server.close();
  });
  return {
    port: (server.address() as { port: number }).port,
    visits,
    async visit(n) {
      while (visits.length < n) {
        await new Promise<void>((resolve) => {
          arrived = resolve;
        });
      }
      return visits[n - 1]!;
    },
  };
}

function visitOf(socket: Socket): Visit {
  let text = "";
  let notify = () => {};
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
    notify();
  });
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => void socket.once("close", () => resolve()));
  const until = async (done: () => boolean): Promise<string> => {
    while (!done()) {
      await new Promise<void>((resolve) => {
        notify = resolve;
      });
    }
    return text;
  };
  const headEnd = (): number => text.indexOf("\r\n\r\n");
  return {
    socket,
    text: () => text,
    closed,
    head: () => until(() => headEnd() >= 0),
    whole: () => until(() => headEnd() >= 0 && text.length >= headEnd() + 4 + lengthIn(text)),
  };
}

const lengthIn = (text: string): number => Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? 0);

/** An answer as bytes. */
export function answer(status: number, body = "", headers: Record<string, string> = {}): string {
  const lines = Object.entries({ "content-length": String(Buffer.byteLength(body)), ...headers });
  return `HTTP/1.1 ${status} Status\r\n${lines.map(([k, v]) => `${k}: ${v}\r\n`).join("")}\r\n${body}`;
}

export const json = (value: unknown): [string, Record<string, string>] => [
  JSON.stringify(value),
  { "content-type": "application/json" },
];

export function context(more: Partial<ConnectorContext> = {}): ConnectorContext {
  return {
    effect: "bank.wire",
    runId: "run-1",
    key: "run-1:0",
    token: 7n,
    fence: makeFence("acme", 1, 7n, 1n),
    attempt: 1,
    abortSignal: new AbortController().signal,
    businessKey: undefined,
    ...more,
  };
}

/** What a call came to, in the words of the table. */
export async function cameOf(
  call: unknown,
): Promise<{ came: string; message: string; value?: unknown; error?: unknown }> {
  try {
    return { came: "success", message: "", value: await call };
  } catch (error) {
    const { message } = error as Error;
    const came =
      error instanceof NotSent
        ? "not_sent"
        : error instanceof DefiniteFailure
          ? "failure"
          : error instanceof AckLost
            ? "unknown"
            : "?";
    return { came, message, error };
  }
}
