import type { Chance } from "./chance.ts";
import { bodyBytes, type Shot } from "./shot.ts";

/** Bytes on a socket that no client would write. The request that they are made of is a good one, or nearly. */
export function rawShot(shot: Shot, chance: Chance): Shot {
  const { body: _body, cutMs: _cut, headers: _headers, ...rest } = shot;
  const [name, write] = chance.oneOf(writings);
  const written = write(wholeOf(shot), chance);
  const bytes = typeof written === "string" ? Buffer.from(written, "latin1") : Buffer.from(written);
  return { ...rest, headers: {}, broken: `on the socket: ${name}`, raw: bytes.toString("base64") };
}

interface Whole {
  readonly line: string;
  readonly headers: string;
  readonly body: Buffer;
}

function wholeOf(shot: Shot): Whole {
  const body = bodyBytes(shot) ?? Buffer.alloc(0);
  const given = Object.entries(shot.headers).filter(([name]) => !framing.has(name));
  const headers = [["host", "127.0.0.1"], ...given, ["content-length", String(body.length)]];
  return {
    line: `${shot.method} ${shot.target} HTTP/1.1\r\n`,
    headers: headers.map(([name, value]) => `${name}: ${value}\r\n`).join(""),
    body,
  };
}

const framing: ReadonlySet<string> = new Set(["host", "content-length", "transfer-encoding", "expect"]);

const bytesOf = ({ line, headers, body }: Whole): Buffer =>
  Buffer.concat([Buffer.from(`${line}${headers}\r\n`, "latin1"), body]);

const alive = "GET /livez HTTP/1.1\r\nhost: a\r\n\r\n";

type Writing = readonly [name: string, write: (whole: Whole, chance: Chance) => Uint8Array | string];

const writings: readonly Writing[] = [
  ["half of a request", (whole, chance) => bytesOf(whole).subarray(0, chance.int(bytesOf(whole).length + 1))],
  ["the same twice at once", (whole) => Buffer.concat([bytesOf(whole), bytesOf(whole)])],
  ["twenty at once", () => alive.repeat(20)],
  ["two hundred at once", () => alive.repeat(200)],
  ["a request behind garbage", (whole, chance) => Buffer.concat([Buffer.from(chance.bytes(50)), bytesOf(whole)])],
  ["garbage behind a request", (whole, chance) => Buffer.concat([bytesOf(whole), Buffer.from(chance.bytes(50))])],
  ["a header of 20 KB", (whole) => `${whole.line}${whole.headers}x-a: ${"a".repeat(20_000)}\r\n\r\n`],
  ["five thousand headers", (whole) => `${whole.line}${whole.headers}${"a: b\r\n".repeat(5_000)}\r\n`],
  ["a line of 30 KB", () => `GET /${"a".repeat(30_000)} HTTP/1.1\r\nhost: a\r\n\r\n`],
  ["a header without a name", (whole) => `${whole.line}: a\r\n\r\n`],
  ["a folded header", (whole) => `${whole.line}host: a\r\n b\r\n\r\n`],
  ["NUL in a header", (whole) => `${whole.line}host: a\u0000b\r\n\r\n`],
  ["no host", (whole) => `${whole.line}\r\n`],
  ["two hosts", (whole) => `${whole.line}host: a\r\nhost: b\r\n\r\n`],
  ["two lengths", (whole) => `${whole.line}host: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab`],
  [
    "a length and chunks",
    (whole) => `${whole.line}${whole.headers}transfer-encoding: chunked\r\n\r\n0\r\n\r\n${alive}`,
  ],
  ["a negative length", (whole) => `${whole.line}host: a\r\ncontent-length: -1\r\n\r\n`],
  [
    "a length that never comes",
    (whole) => `${whole.line}${whole.headers.replace(/content-length: \d+/, "content-length: 1000")}\r\n{`,
  ],
  ["a chunk of no size", (whole) => `${chunked(whole)}zz\r\n{}\r\n0\r\n\r\n`],
  ["a chunk without end", (whole) => `${chunked(whole)}fffffffff\r\n{`],
  ["a chunk with an endless extension", (whole) => `${chunked(whole)}1;${"a".repeat(30_000)}\r\n{\r\n0\r\n\r\n`],
  ["the body in chunks of a byte", (whole) => `${chunked(whole)}${inBytes(whole.body)}0\r\n\r\n`],
  ["trailers", (whole) => `${chunked(whole)}${inBytes(whole.body)}0\r\nauthorization: Bearer a.b\r\n\r\n`],
  ["line feeds alone", (whole) => bytesOf(whole).toString("latin1").replaceAll("\r\n", "\n")],
  ["HTTP/0.9", () => "GET /livez\r\n\r\n"],
  ["HTTP/9.9", (whole) => `${whole.line.replace("HTTP/1.1", "HTTP/9.9")}host: a\r\n\r\n`],
  ["HTTP/2", () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ["TLS", () => Buffer.from("16030100c8010000c40303", "hex")],
  ["an upgrade", (whole) => `${whole.line}${whole.headers}connection: upgrade\r\nupgrade: websocket\r\n\r\n`],
  ["CONNECT", () => "CONNECT 127.0.0.1:22 HTTP/1.1\r\nhost: a\r\n\r\n"],
  [
    "an expectation",
    (whole) => Buffer.concat([Buffer.from(`${whole.line}${whole.headers}expect: 100-continue\r\n\r\n`), whole.body]),
  ],
  ["nothing", () => ""],
];

const chunked = ({ line, headers }: Whole): string =>
  `${line}${headers.replace(/content-length: \d+\r\n/, "")}transfer-encoding: chunked\r\n\r\n`;

const inBytes = (body: Buffer): string =>
  body.length > 5_000 ? "" : [...body.toString("latin1")].map((one) => `1\r\n${one}\r\n`).join("");
