import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningServer, serve } from "../../src/host/serve.ts";

const chunks = "transfer-encoding: chunked\r\n\r\n0\r\n\r\n";

/** Bytes that are not a valid request. */
const inputs: readonly (readonly [name: string, bytes: string, status: number, code: string])[] = [
  ["no HTTP", "hello\r\n\r\n", 400, "TAPE_BAD_INPUT"],
  ["another protocol", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "TAPE_BAD_INPUT"],
  ["no host", "GET /livez HTTP/1.1\r\n\r\n", 400, "TAPE_BAD_INPUT"],
  [
    "two lengths",
    "GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    400,
    "TAPE_BAD_INPUT",
  ],
  ["a length and chunks", `POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n${chunks}`, 400, "TAPE_BAD_INPUT"],
  ["a long header", `GET /livez HTTP/1.1\r\nhost: a\r\nx: ${"a".repeat(20_000)}\r\n\r\n`, 431, "TAPE_TOO_LARGE"],
  ["an unknown expectation", "GET /livez HTTP/1.1\r\nhost: a\r\nexpect: wonders\r\n\r\n", 417, "TAPE_BAD_INPUT"],
  ["an incomplete request that times out", "GET /livez HTTP/1.1\r\nhost: a", 408, "TAPE_BAD_INPUT"],
];

let serving: RunningServer | undefined;
beforeAll(async () => {
  serving = await serve({ store: "memory:", port: 0, timeouts: { headersMs: 50, requestMs: 100 } });
});
afterAll(() => serving?.stop(1_000));

async function responseTo(bytes: string): Promise<{ status: number; json: Record<string, unknown> }> {
  const socket = connect(serving!.port, "127.0.0.1");
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  socket.on("error", () => {}); // a reset also ends the connection
  socket.write(bytes);
  await new Promise((closed) => socket.once("close", closed));
  const [head = "", body = ""] = text.split("\r\n\r\n");
  expect(head).toContain("content-type: application/problem+json");
  return { status: Number(head.split(" ")[1]), json: JSON.parse(body) as Record<string, unknown> };
}

describe("an invalid request gets an error code", () => {
  it.each(inputs)("%s", async (_name, bytes, status, code) => {
    const response = await responseTo(bytes);
    expect(response).toMatchObject({ status, json: { status, code } });
  });

  it("garbage after a pending request ends the connection without a second response", async () => {
    const socket = connect(serving!.port, "127.0.0.1");
    let text = "";
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    socket.on("error", () => {});
    socket.write("GET /v1/feed/stream HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await new Promise((started) => socket.once("data", started));
    socket.write("garbage\r\n\r\n");
    await new Promise((closed) => socket.once("close", closed));
    expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });
});
