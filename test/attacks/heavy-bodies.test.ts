import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { attackTarget, packed } from "./target.ts";

const zipped = { "content-encoding": "gzip", "content-type": "application/json" };
const mib = 2 ** 20;

/** Bodies that are small on the wire and expensive to parse. */
describe("heavy bodies", () => {
  const target = attackTarget("sqlite");
  const start = (input: string): Uint8Array => packed(`{"workflow":"w","input":${input}}`);
  const bigint = (digits: number): string => `{"$codec":1,"data":"${"9".repeat(digits)}","types":{"":"bigint"}}`;

  const bodies = [
    ["an integer of sixteen million digits", 413, start(bigint(15_900_000))],
    ["an integer of four million digits", 400, start(bigint(4_000_000))],
    [
      "an integer of four million digits as text",
      400,
      start(JSON.stringify({ $codec: "text", data: bigint(4_000_000) })),
    ],
    ["a body that is larger than it claims", 400, lying(start(JSON.stringify("x".repeat(4 * mib))))],
    ["millions of empty lists", 413, start(`[${"[],".repeat(2_000_000)}1]`)],
    ["names that start and end alike", 413, start(`{${alike(50_000)}}`)],
    ["a list of quotes", 413, start(JSON.stringify('"'.repeat(3 * mib)))],
  ] as const;
  it.each(bodies)("%s does not stall the server", async (_what, status, body) => {
    const { call, token, measured } = target();
    const { result, stall, growth, summary } = await measured(() =>
      call("POST", "/v1/runs", { token: token("acme", "starter"), body, headers: zipped }),
    );
    expect(result.status, result.text.slice(0, 200)).toBe(status);
    expect(stall, summary).toBeLessThan(15);
    expect(growth, summary).toBeLessThan(3);
  });

  it("accepts an integer of the maximum length, and no longer one", async () => {
    const { call, token } = target();
    const put = (digits: number) =>
      call("PUT", "/v1/values/n", {
        token: token("acme", "starter"),
        headers: zipped,
        body: packed(`{"value":${bigint(digits)},"when":"unconditional"}`),
      });
    expect((await put(4_096)).status).toBe(200);
    expect((await put(4_098)).json).toMatchObject({ status: 400, code: "TAPE_BAD_INPUT" });
  });
});

/** Many bodies that are announced and never completed. */
describe("incomplete bodies", () => {
  const limits = ["body_bytes=1048576", "bodies_bytes=8388608"].map((limit) => `tape.server.limits.${limit}`);
  const target = attackTarget("sqlite", { set: limits });
  const open: Socket[] = [];
  afterEach(() => {
    for (const socket of open.splice(0)) socket.destroy();
  });

  it("leave capacity for others and stay within their memory limit", async () => {
    const { port, call, token, measured } = target();
    const length = mib - 1_000;
    const held = async (): Promise<string> => {
      const socket = connect(port, "127.0.0.1");
      open.push(socket);
      socket.on("error", () => {});
      const headers = `authorization: Bearer ${token("acme", "reader")}\r\ncontent-type: application/json\r\n`;
      socket.write(`POST /v1/store/progress HTTP/1.1\r\nhost: x\r\n${headers}content-length: ${length}\r\n\r\n`);
      for (let sent = 0; sent < 15; sent++) socket.write(Buffer.alloc(60_000, 0x20));
      const responded = once(socket, "data") as Promise<[Buffer]>;
      return Promise.race([
        responded.then(([text]) => text.toString("latin1").slice(9, 12)),
        once(socket, "drain").then(() => responded.then(([text]) => text.toString("latin1").slice(9, 12))),
      ]);
    };
    const { result, growth, summary } = await measured(async () => {
      const responses = Array.from({ length: 100 }, held);
      // All are refused except those within the limit, which wait for the end of their bodies.
      const refused: string[] = [];
      for (const response of responses) void response.then((status) => refused.push(status));
      while (refused.length < 98) await new Promise((soon) => setImmediate(soon));
      const big = { workflow: "w", input: "x".repeat(900_000) };
      const others = await call("POST", "/v1/runs", { token: token("globex", "starter"), body: big });
      const colleague = await call("POST", "/v1/runs", { token: token("acme", "starter"), body: big });
      return { refused, others: others.status, colleague: colleague.status };
    });
    expect(new Set(result.refused)).toEqual(new Set(["503"]));
    expect(result).toMatchObject({ others: 200, colleague: 200 });
    expect(growth, summary).toBeLessThan(2);
  });
});

/** Names that differ only in the middle: the parser sees each as a new one. */
function alike(count: number): string {
  const ends = "x".repeat(24);
  return Array.from({ length: count }, (_, k) => `"${ends}${String(k).padStart(6, "0")}${ends}":1`).join();
}

/** A gzip body that claims a tenth of its unpacked size. */
function lying(body: Uint8Array): Uint8Array {
  const copy = new Uint8Array(body);
  const claim = new DataView(copy.buffer, copy.length - 4, 4);
  claim.setUint32(0, Math.floor(claim.getUint32(0, true) / 10), true);
  return copy;
}
