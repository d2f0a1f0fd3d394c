import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { Readable } from "node:stream";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { addressOf } from "../../src/client/address.ts";
import { RequestNotSent } from "../../src/client/errors.ts";
import { type HttpTransport, httpExchange } from "../../src/client/http-transport.ts";
import { HeadMemory, ResponseParser } from "../../src/client/response-parser.ts";
import type { WireResponse } from "../../src/protocol/transport.ts";

interface ParsedResponse {
  readonly status: number | undefined;
  readonly reusable: boolean | undefined;
  readonly body: string;
  readonly ended: boolean;
}

/** Parses the text in pieces of this size; then the connection ends. */
function parse(text: string, piece: number, bodiless = false): ParsedResponse {
  const parts: string[] = [];
  let [status, reusable, ended]: [number | undefined, boolean | undefined, boolean] = [undefined, undefined, false];
  const sink = {
    head: (head: { status: number; reusable: boolean }) => ({ status, reusable } = head),
    data: (bytes: Buffer) => parts.push(bytes.toString()),
    end: () => (ended = true),
  };
  const parser = new ResponseParser(sink, new HeadMemory(), bodiless);
  const bytes = Buffer.from(text, "latin1");
  for (let at = 0; at < bytes.length; at += piece) parser.feed(bytes.subarray(at, at + piece));
  parser.close();
  return { status, reusable, body: parts.join(""), ended };
}

const lines = (...all: string[]): string => all.join("\r\n");

describe("a response", () => {
  const good: Readonly<Record<string, readonly [text: string, body: string, reusable: boolean]>> = {
    "with a length": [lines("HTTP/1.1 200 OK", "Content-Length: 5", "", "hello"), "hello", true],
    "in chunks, with extensions and trailers": [
      lines(
        "HTTP/1.1 200 OK",
        "transfer-encoding: Chunked",
        "",
        "3;a=b",
        "abc",
        "A",
        "0123456789",
        "0",
        "x: y",
        "",
        "",
      ),
      "abc0123456789",
      true,
    ],
    "until the connection ends": [lines("HTTP/1.1 200 OK", "", "all of it"), "all of it", false],
    "after a provisional one": [
      lines("HTTP/1.1 100 Continue", "", "HTTP/1.1 200 OK", "content-length: 2", "", "ok"),
      "ok",
      true,
    ],
    "without a body": [lines("HTTP/1.1 304 Not Modified", "content-length: 7", "", ""), "", true],
    "that closes its connection": [
      lines("HTTP/1.1 200 OK", "connection: Close", "content-length: 1", "", "x"),
      "x",
      false,
    ],
    "of an older version": [lines("HTTP/1.0 200 OK", "content-length: 1", "", "x"), "x", false],
  };
  for (const [what, [text, body, reusable]] of Object.entries(good)) {
    it(`${what} is read, however it arrives`, () => {
      for (const piece of [1, 2, 3, 7, text.length])
        expect(parse(text, piece)).toMatchObject({ body, reusable, ended: true });
    });
  }

  it("to a HEAD request has no body", () => {
    expect(parse(lines("HTTP/1.1 200 OK", "content-length: 9", "", ""), 4, true)).toMatchObject({
      body: "",
      ended: true,
    });
  });

  const bad: Readonly<Record<string, string>> = {
    "that is not HTTP": "SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "with two lengths": lines("HTTP/1.1 200 OK", "content-length: 1", "content-length: 2", "", "xy"),
    "with a length and chunks": lines(
      "HTTP/1.1 200 OK",
      "content-length: 1",
      "transfer-encoding: chunked",
      "",
      "1",
      "x",
      "0",
      "",
      "",
    ),
    "with an unknown coding": lines("HTTP/1.1 200 OK", "transfer-encoding: gzip, chunked", "", "1", "x", "0", "", ""),
    "with a length that is no number": lines("HTTP/1.1 200 OK", "content-length: +1", "", "x"),
    "with a folded header": lines("HTTP/1.1 200 OK", "a: b", " c", "", ""),
    "with a header without a name": lines("HTTP/1.1 200 OK", ": b", "", ""),
    "with a chunk that is longer than its size": lines(
      "HTTP/1.1 200 OK",
      "transfer-encoding: chunked",
      "",
      "2",
      "abc",
      "0",
      "",
      "",
    ),
    "with a bad size of a chunk": lines("HTTP/1.1 200 OK", "transfer-encoding: chunked", "", "zz", "abc"),
    "that breaks off": lines("HTTP/1.1 200 OK", "content-length: 9", "", "short"),
    "followed by another": lines("HTTP/1.1 200 OK", "content-length: 1", "", "xHTTP/1.1 200 OK"),
    "that changes the protocol": lines("HTTP/1.1 101 Switching Protocols", "", ""),
    "with endless headers": `HTTP/1.1 200 OK\r\n${"a: b\r\n".repeat(5_000)}`,
    "with an endless size of a chunk": `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;${"x".repeat(5_000)}`,
  };
  for (const [what, text] of Object.entries(bad)) {
    it(`${what} is an error`, () => {
      for (const piece of [text.length > 1_000 ? 97 : 1, text.length]) expect(() => parse(text, piece)).toThrow();
    });
  }
});

/** A server that answers each request on a connection with the next text; `undefined` closes the connection. */
async function serverWith(
  ...answers: (string | undefined)[]
): Promise<{ wire: HttpTransport; connections: Socket[]; heads: string[] }> {
  const connections: Socket[] = [];
  const heads: string[] = [];
  const server: Server = createServer((socket) => {
    connections.push(socket);
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      heads.push(bytes.toString("latin1"));
      const answer = answers.shift();
      if (answer === undefined) socket.destroy();
      else socket.write(answer);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const address = addressOf(`http://127.0.0.1:${port}`, { token: false, allowPlain: false });
  const wire = httpExchange({ address, clock: systemClock, responseMs: 500, connectMs: 500 });
  onTestFinished(() => {
    wire.close();
    server.close();
  });
  return { wire, connections, heads };
}

const ok = lines("HTTP/1.1 200 OK", "content-length: 2", "", "ok");
const get = { method: "GET", url: "/", headers: {} };
const textOf = ({ body }: WireResponse): string => Buffer.from(body as Uint8Array).toString();
const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "answered",
    (error: unknown) => error,
  );

describe("a connection", () => {
  it("is used again, and request head and body arrive in one piece", async () => {
    const { wire, connections, heads } = await serverWith(ok, ok);
    const post = { method: "POST", url: "/a", headers: { "content-type": "text/plain" }, body: Buffer.from("hi") };
    expect(textOf(await wire.exchange(post))).toBe("ok");
    expect(textOf(await wire.exchange(get))).toBe("ok");
    expect(connections).toHaveLength(1);
    expect(heads[0]).toMatch(/^POST \/a HTTP\/1\.1\r\nhost: 127\.0\.0\.1:\d+\r\n(?:.+\r\n)+\r\nhi$/);
  });

  it("that the server closes or announces to close is not used again", async () => {
    const closing = lines("HTTP/1.1 200 OK", "connection: close", "content-length: 2", "", "ok");
    const brief = lines("HTTP/1.1 200 OK", "keep-alive: timeout=1", "content-length: 2", "", "ok");
    const { wire, connections } = await serverWith(closing, brief, ok);
    for (let k = 0; k < 3; k++) expect(textOf(await wire.exchange(get))).toBe("ok");
    expect(connections).toHaveLength(3);
    const closed = once(connections[2]!, "close");
    connections[2]!.destroy();
    await closed;
  });

  it("that ends without a response leaves the outcome unknown; one that was never established does not", async () => {
    const { wire } = await serverWith(undefined);
    const lost = await errorOf(wire.exchange(get));
    expect(lost).toBeInstanceOf(Error);
    expect(lost).not.toBeInstanceOf(RequestNotSent);
    const free = createServer().listen(0, "127.0.0.1");
    await once(free, "listening");
    const { port } = free.address() as { port: number };
    free.close();
    await once(free, "close");
    const nowhere = httpExchange({
      address: addressOf(`http://127.0.0.1:${port}`, { token: false, allowPlain: false }),
      clock: systemClock,
    });
    expect(await errorOf(nowhere.exchange(get))).toBeInstanceOf(RequestNotSent);
  });

  it("without a response in time, or whose caller aborts, is closed", async () => {
    const { wire, connections } = await serverWith("", "");
    expect(String(await errorOf(wire.exchange(get)))).toContain("no response within 500 ms");
    const abort = new AbortController();
    const aborted = errorOf(wire.exchange({ ...get, signal: abort.signal }));
    setImmediate(() => abort.abort());
    expect(await aborted).toBeInstanceOf(Error);
    expect(connections.length).toBeLessThanOrEqual(2);
  });

  it("carries no header that would end early", async () => {
    const { wire, heads } = await serverWith(ok);
    for (const bad of [{ headers: { a: "b\r\nc: d" } }, { url: "/ HTTP/1.1\r\nx: y" }])
      expect(await errorOf(wire.exchange({ ...get, ...bad }))).toMatchObject({ code: "TAPE_BAD_INPUT" });
    expect(heads).toEqual([]);
  });

  it("streams lines as they arrive, and its reader can leave", async () => {
    const head = lines("HTTP/1.1 200 OK", "content-type: application/x-ndjson", "transfer-encoding: chunked", "", "");
    const { wire, connections } = await serverWith(`${head}3\r\n{}\n\r\n`);
    const { body } = await wire.exchange(get);
    expect(body).toBeInstanceOf(Readable);
    const closed = once(connections[0]!, "close");
    for await (const chunk of body as AsyncIterable<Buffer>) {
      expect(chunk.toString()).toBe("{}\n");
      break;
    }
    await closed;
  });
});
