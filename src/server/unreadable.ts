import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { TapeError } from "../model/errors.ts";
import { problemOf, problemType } from "../protocol/problem.ts";

/**
 * A request that never becomes a call, because Node's parser rejects it or it does not arrive in time. Node would
 * respond with a bare status; every error response of this server has a code.
 */
interface Unreadable {
  readonly status: number;
  readonly error: TapeError;
}

const bad = (status: number, message: string): Unreadable => ({
  status,
  error: new TapeError("TAPE_BAD_INPUT", message, { field: "request" }),
});

/** Node's limit for the bytes of headers. */
const headerBytes = 16_384;
const tooLong: Unreadable = {
  status: 431,
  error: new TapeError("TAPE_TOO_LARGE", `a request's headers may have at most ${headerBytes} bytes`, {
    limit: "headerBytes",
    max: headerBytes,
  }),
};
const tooLate = bad(408, "the request did not arrive in time");
const notHttp = bad(400, "not an HTTP/1.1 request");
const noHost = bad(400, "the request has no Host header");
const expects = bad(417, "the only supported expectation is 100-continue");

const byCode: Readonly<Record<string, Unreadable>> = {
  HPE_HEADER_OVERFLOW: tooLong,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { ...tooLong, status: 413 },
  ERR_HTTP_REQUEST_TIMEOUT: tooLate,
};

/** `isResponding`: a response is being written on the connection, and an error would end up in the middle of it. */
export function respondUnreadable(http: Server, isResponding: (socket: Socket) => boolean): void {
  http.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    // Nothing can be sent before the handshake is finished: the write would wait for it, and so would the close.
    const shakingHands = (socket as { readonly secureConnecting?: boolean }).secureConnecting === true;
    if (!socket.writable || shakingHands || error.code === "ECONNRESET" || isResponding(socket)) {
      socket.destroy();
      return;
    }
    const { status, error: refusal } = byCode[error.code ?? ""] ?? notHttp;
    const { headers, body } = written(status, refusal);
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${body}`, () => socket.destroy());
  });
  http.on("checkExpectation", (_request: IncomingMessage, response: ServerResponse) => refuse(response, expects));
}

/** Rejects a request without the required Host header. Node's own check is switched off for it. */
export function refusedForHost(request: IncomingMessage, response: ServerResponse): boolean {
  if (request.headers.host !== undefined || request.httpVersion !== "1.1") return false;
  refuse(response, noHost);
  return true;
}

function refuse(response: ServerResponse, { status, error }: Unreadable): void {
  const { headers, body } = written(status, error);
  response.writeHead(status, headers).end(body);
}

function written(status: number, error: TapeError): { headers: Record<string, string>; body: string } {
  const body = JSON.stringify({ ...problemOf(error), status });
  const length = String(Buffer.byteLength(body));
  return {
    headers: {
      "content-type": problemType,
      "cache-control": "no-store",
      "content-length": length,
      connection: "close",
    },
    body,
  };
}
