import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { type RunningServer, type ServeOptions, serve } from "../../src/host/serve.ts";
import { attackTarget } from "./target.ts";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** A caller that never reads its responses. */
function mute(port: number, text: string): Socket {
  const socket = connect(port, "127.0.0.1");
  open.push(() => socket.destroy());
  socket.on("error", () => {}); // the server may reset the connection
  socket.pause();
  socket.write(text);
  return socket;
}

/** Endless requests whose responses are never read. */
describe("unread responses", { timeout: 300_000 }, () => {
  const target = attackTarget("sqlite");
  const request = "GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n";

  it.each([
    ["hundreds of requests ahead on a few connections", 5, 400],
    ["some on many connections", 80, 30],
  ])("%s pin no memory and do not stall the server", async (_what, connections, requests) => {
    const { port, call, measured } = target();
    await call("GET", "/openapi.json"); // created by the first request
    const { excess, growth, summary } = await measured(async () => {
      for (let k = 0; k < connections; k++) mute(port, request.repeat(requests));
      for (let k = 0; k < 50; k++) expect((await call("GET", "/livez")).status).toBe(200);
    });
    expect(growth, summary).toBeLessThan(1.8);
    expect(excess, summary).toBeLessThan(600);
  });
});

describe("a large unread response", { timeout: 300_000 }, () => {
  const big = "x".repeat(30_000_000); // more than the socket buffers hold
  const request = "GET /v1/values/big HTTP/1.1\r\nhost: localhost\r\naccept-encoding: identity\r\n\r\n";

  async function serving(options: Partial<ServeOptions>): Promise<RunningServer> {
    const store = await openStore("memory:", { limits: { payloadBytes: 2 * big.length } });
    for (const key of ["big", "small"]) {
      await store.intake.putValue("default", key, key === "big" ? big : 1, "must_create");
    }
    const one = await serve({ store, port: 0, ...options });
    open.push(async () => {
      await one.stop(0);
      await store.close();
    });
    return one;
  }
  const small = async ({ url }: RunningServer) => (await fetch(`${url}/v1/values/small`)).status;

  it("keeps its slot until its reader has read nothing for too long", async () => {
    const one = await serving({ limits: { requests: 2 }, timeouts: { writeMs: 1_000 } }); // one place for the tenant
    expect(await small(one)).toBe(200);
    mute(one.port, request);
    while ((await small(one)) !== 503);
    while ((await small(one)) !== 200);
  });

  it("is aborted for another one when all responses together exceed the limit", async () => {
    const one = await serving({ limits: { unreadBytes: 45_000_000 } });
    const first = mute(one.port, request);
    await once(first, "connect");
    while (one.server.service.callsInProgress > 0) await small(one);
    const received = { bytes: 0 };
    const second = await fetch(`${one.url}/v1/values/big`, { headers: { "accept-encoding": "identity" } });
    const ended = once(first, "close");
    first.on("data", (chunk: Buffer) => {
      received.bytes += chunk.length;
    });
    first.resume();
    expect((await second.text()).length).toBeGreaterThan(big.length);
    await ended;
    expect(received.bytes).toBeLessThan(big.length);
  });

  it("a stream whose reader reads nothing ends", async () => {
    const one = await serving({ limits: { streams: 2 }, timeouts: { writeMs: 500 } }); // one for the tenant
    mute(one.port, "GET /v1/values/big/stream?after=0 HTTP/1.1\r\nhost: localhost\r\n\r\n");
    const another = async () => {
      const gone = new AbortController();
      const { status } = await fetch(`${one.url}/v1/feed/stream`, { signal: gone.signal });
      gone.abort();
      return status;
    };
    while ((await another()) !== 503);
    while ((await another()) !== 200);
  });
});
