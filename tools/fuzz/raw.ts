import type { Chance } from "./chance.ts";
import { bodyBytes, type Shot } from "./shot.ts";

/** Bytes on a socket that no client would write, made from a mostly valid request. */
export function rawShot(shot: Shot, chance: Chance): Shot {
  const { body: _body, cutMs: _cut, headers: _headers, ...rest } = shot;
  const [name, write] = chance.oneOf(rawWriters);
  const written = write(wireRequestOf(shot), chance);
  const bytes = typeof written === "string" ? Buffer.from(written, "latin1") : Buffer.from(written);
  return { ...rest, headers: {}, broken: `on the socket: ${name}`, raw: bytes.toString("base64") };
}

interface WireRequest {
  readonly line: string;
  readonly headers: string;
  readonly body: Buffer;
}

function wireRequestOf(shot: Shot): WireRequest {
  const body = bodyBytes(shot) ?? Buffer.alloc(0);
  const own = Object.entries(shot.headers).filter(([name]) => !framing.has(name));
  const headers = [["host", "127.0.0.1"], ...own, ["content-length", String(body.length)]];
  return {
    line: `${shot.method} ${shot.target} HTTP/1.1\r\n`,
    headers: headers.map(([name, value]) => `${name}: ${value}\r\n`).join(""),
    body,
  };
}

const framing: ReadonlySet<string> = new Set(["host", "content-length", "transfer-encoding", "expect"]);

const bytesOf = ({ line, headers, body }: WireRequest): Buffer =>
  Buffer.concat([Buffer.from(`${line}${headers}\r\n`, "latin1"), body]);

const alive = "GET /livez HTTP/1.1\r\nhost: a\r\n\r\n";

type RawWriter = readonly [name: string, write: (request: WireRequest, chance: Chance) => Uint8Array | string];

const rawWriters: readonly RawWriter[] = [
  ["part of a request", (request, chance) => bytesOf(request).subarray(0, chance.int(bytesOf(request).length + 1))],
  ["the same request twice at once", (request) => Buffer.concat([bytesOf(request), bytesOf(request)])],
  ["twenty at once", () => alive.repeat(20)],
  ["two hundred at once", () => alive.repeat(200)],
  ["a request after garbage", (request, chance) => Buffer.concat([Buffer.from(chance.bytes(50)), bytesOf(request)])],
  ["garbage after a request", (request, chance) => Buffer.concat([bytesOf(request), Buffer.from(chance.bytes(50))])],
  ["a header of 20 KB", (request) => `${request.line}${request.headers}x-a: ${"a".repeat(20_000)}\r\n\r\n`],
  ["five thousand headers", (request) => `${request.line}${request.headers}${"a: b\r\n".repeat(5_000)}\r\n`],
  ["a line of 30 KB", () => `GET /${"a".repeat(30_000)} HTTP/1.1\r\nhost: a\r\n\r\n`],
  ["a header without a name", (request) => `${request.line}: a\r\n\r\n`],
  ["a folded header", (request) => `${request.line}host: a\r\n b\r\n\r\n`],
  ["NUL in a header", (request) => `${request.line}host: a\u0000b\r\n\r\n`],
  ["no host", (request) => `${request.line}\r\n`],
  ["two hosts", (request) => `${request.line}host: a\r\nhost: b\r\n\r\n`],
  ["two lengths", (request) => `${request.line}host: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab`],
  [
    "a length and chunks",
    (request) => `${request.line}${request.headers}transfer-encoding: chunked\r\n\r\n0\r\n\r\n${alive}`,
  ],
  ["a negative length", (request) => `${request.line}host: a\r\ncontent-length: -1\r\n\r\n`],
  [
    "a body that never arrives",
    (request) => `${request.line}${request.headers.replace(/content-length: \d+/, "content-length: 1000")}\r\n{`,
  ],
  ["a chunk with an invalid size", (request) => `${chunked(request)}zz\r\n{}\r\n0\r\n\r\n`],
  ["a chunk without end", (request) => `${chunked(request)}fffffffff\r\n{`],
  ["a chunk with an endless extension", (request) => `${chunked(request)}1;${"a".repeat(30_000)}\r\n{\r\n0\r\n\r\n`],
  ["the body in chunks of a byte", (request) => `${chunked(request)}${inBytes(request.body)}0\r\n\r\n`],
  ["trailers", (request) => `${chunked(request)}${inBytes(request.body)}0\r\nauthorization: Bearer a.b\r\n\r\n`],
  ["line feeds only", (request) => bytesOf(request).toString("latin1").replaceAll("\r\n", "\n")],
  ["HTTP/0.9", () => "GET /livez\r\n\r\n"],
  ["HTTP/9.9", (request) => `${request.line.replace("HTTP/1.1", "HTTP/9.9")}host: a\r\n\r\n`],
  ["HTTP/2", () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ["TLS", () => Buffer.from("16030100c8010000c40303", "hex")],
  ["an upgrade", (request) => `${request.line}${request.headers}connection: upgrade\r\nupgrade: websocket\r\n\r\n`],
  ["CONNECT", () => "CONNECT 127.0.0.1:22 HTTP/1.1\r\nhost: a\r\n\r\n"],
  [
    "an expectation",
    (request) =>
      Buffer.concat([Buffer.from(`${request.line}${request.headers}expect: 100-continue\r\n\r\n`), request.body]),
  ],
  ["nothing", () => ""],
];

const chunked = ({ line, headers }: WireRequest): string =>
  `${line}${headers.replace(/content-length: \d+\r\n/, "")}transfer-encoding: chunked\r\n\r\n`;

const inBytes = (body: Buffer): string =>
  body.length > 5_000 ? "" : [...body.toString("latin1")].map((one) => `1\r\n${one}\r\n`).join("");
