import { afterEach, describe, expect, it } from "vitest";
import type { Term } from "../../src/model/lease.ts";
import type { WireResponse } from "../../src/protocol/transport.ts";
import type { NewChunk, Store } from "../../src/store/contract/store.ts";
import { ManualClock, settled } from "../../testkit/clock.ts";
import { giveTokens, tokenOf } from "./scene.ts";
import { type Stage, stage } from "./stage.ts";

const tenant = "acme";
const url = "/v1/runs/chat/streams/tokens";
const open: Stage[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

/** A held run, a server that requires credentials, and how often chunks were read. */
async function opened() {
  const clock = new ManualClock();
  let reads = 0;
  const plain = await stage({ clock, tenant });
  open.push(plain);
  const { read } = plain.store;
  const chunks: Store["read"]["chunks"] = async (of, wanted) => {
    reads++;
    return read.chunks(of, wanted);
  };
  const one = await stage({
    credentials: "required",
    streamOrigins: "https://app.example, http://localhost:3000",
    tenant,
    clock,
    store: { ...plain.store, read: { ...read, chunks } },
  });
  const { store, server } = one;
  await giveTokens(store, tenant);
  const first = { owner: "w/1", label: "w", reactor: "agent", ttlMs: 3_600_000, nonce: 7n };
  const [made] = await store.intake.createRuns(tenant, [{ id: "chat", workflow: "w", input: 1 }], first);
  const { fence } = (made as { term: Term }).term;
  let next = 0;
  const write = async (...written: NewChunk[]): Promise<void> => {
    const [result] = await store.fenced.appendChunks([
      [fence, { streams: [{ name: "tokens", from: next, chunks: written }] }],
    ]);
    expect(result!.ok).toBe(true);
    next += written.length;
  };
  const text = (...values: string[]) => write(...values.map((value) => ({ part: 0, value })));
  const end = () =>
    store.fenced.append(fence, {
      ...{ after: 1, records: [{ kind: "run.ended", data: { status: "COMPLETED", outcome: 1, notesTaken: 0 } }] },
    });
  const get = (path: string, headers: Record<string, string> = {}, signal?: AbortSignal) =>
    server.exchange({ method: "GET", url: path, headers, from: "192.0.2.1", ...(signal && { signal }) });
  const as = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });
  const reader = as(tokenOf(tenant, "reader"));
  return { ...one, clock, write, text, end, get, as, reader, reads: () => reads };
}

/** Collects a stream as text until it ends. */
function collect({ body }: WireResponse): { readonly text: () => string; readonly done: Promise<void> } {
  let text = "";
  const done = (async () => {
    for await (const part of body as AsyncIterable<Uint8Array>) text += new TextDecoder().decode(part);
  })();
  return { text: () => text, done };
}

const offsets = (lines: string): number[] =>
  lines
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => (JSON.parse(line) as { offset: number }).offset);

const codeOf = ({ body }: WireResponse): string =>
  (JSON.parse(Buffer.from(body as Uint8Array).toString()) as { code: string }).code;

describe("GET /v1/runs/{id}/streams/{name}", () => {
  it("sends lines of JSON as chunks come, from an offset on, and ends with the run", async () => {
    const { text, end, get, reader, clock } = await opened();
    await text("a", "b");
    const whole = collect(await get(url, reader));
    const rest = collect(await get(`${url}?from=1`, reader));
    await clock.elapse(20);
    expect([offsets(whole.text()), offsets(rest.text())]).toEqual([[0, 1], [1]]);
    await text("c");
    await clock.elapse(20);
    expect(offsets(whole.text())).toEqual([0, 1, 2]);
    const [line] = whole.text().split("\n");
    expect(JSON.parse(line!)).toMatchObject({ offset: 0, part: 0, value: "a" });
    await end();
    await clock.elapse(20);
    await Promise.all([whole.done, rest.done]);
  });

  it("sends events to browsers: resumed by Last-Event-ID, with rewinds, and an end", async () => {
    const { text, write, end, get, reader, clock } = await opened();
    await text("a", "b");
    const events = { ...reader, accept: "text/event-stream" };
    const response = await get(url, { ...events, "last-event-id": "0" });
    expect(response.headers["content-type"]).toBe("text/event-stream");
    const seen = collect(response);
    await clock.elapse(20);
    await write({ part: 0, rewound: true }, { part: 0, value: "A" });
    await clock.elapse(20);
    await end();
    await clock.elapse(20);
    await seen.done;
    const blocks = seen.text().trim().split("\n\n");
    expect(blocks.map((block) => block.split("\n").map((line) => line.split(":", 1)[0]))).toEqual([
      ["id", "data"],
      ["id", "event", "data"],
      ["id", "data"],
      ["event", "data"],
    ]);
    expect(blocks[0]).toMatch(/^id: 1\ndata: \{.*"value":"b"\}$/);
    expect(blocks[1]).toMatch(/^id: 2\nevent: rewound\n/);
    expect(blocks[3]).toBe("event: end\ndata: {}");
    const again = collect(await get(url, { ...events, "last-event-id": "3" }));
    await clock.elapse(20);
    await again.done;
    expect(again.text()).toBe("event: end\ndata: {}\n\n");
  });

  it("readers of one stream share one tail", async () => {
    const { text, get, reader, clock, reads, end } = await opened();
    await text("a");
    const all = await Promise.all(Array.from({ length: 20 }, async () => collect(await get(url, reader))));
    await clock.elapse(20);
    const before = reads();
    for (const value of ["b", "c", "d"]) {
      await text(value);
      await clock.elapse(20);
    }
    expect(all.map((one) => offsets(one.text()).join())).toEqual(all.map(() => "0,1,2,3"));
    expect(reads() - before).toBeLessThanOrEqual(4);
    await end();
    await clock.elapse(20);
    await Promise.all(all.map(({ done }) => done));
  });

  it("a reader that resumes near the end reads only the rest", async () => {
    const { store, get, reader, text, clock, end } = await opened();
    for (let k = 0; k < 10; k++) await text(...Array.from({ length: 1_000 }, (_, n) => `${k}.${n}`));
    const [page] = await store.read.chunks(tenant, [{ run: "chat", stream: "tokens", from: 9_900 }]);
    expect(page!.chunks).toHaveLength(100);
    const rest = collect(await get(`${url}?from=9900`, reader));
    const whole = collect(await get(url, reader));
    await end();
    for (let k = 0; k < 30; k++) await clock.elapse(20);
    await Promise.all([rest.done, whole.done]);
    expect(offsets(rest.text())).toEqual(Array.from({ length: 100 }, (_, k) => 9_900 + k));
    expect(offsets(whole.text())).toEqual(Array.from({ length: 10_000 }, (_, k) => k));
  });

  it("a live reader that falls 256 KiB behind is cut off, and resumes", async () => {
    const { text, get, reader, clock } = await opened();
    await text("a");
    const { body } = await get(url, reader);
    const lines = (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
    await Promise.all([lines.next(), clock.elapse(20)]);
    const second = lines.next(); // waits for the tail
    await text("b");
    await clock.elapse(20);
    await second;
    for (let k = 0; k < 8; k++) {
      await text("x".repeat(60_000));
      await clock.elapse(20);
    }
    let error: unknown;
    for (let k = 0; k < 12 && error === undefined; k++) {
      const next = lines.next().catch((thrown: unknown) => (error = thrown));
      await clock.elapse(20);
      await next;
    }
    expect(String(error)).toMatch(/TAPE_OVERLOADED.*resume from offset/);
  });

  it("an unknown run, a bad offset and a caller without a role are refused", async () => {
    const { get, reader } = await opened();
    expect((await get("/v1/runs/none/streams/tokens", reader)).status).toBe(404);
    expect((await get(`${url}?from=-1`, reader)).status).toBe(400);
    expect((await get(url)).status).toBe(401);
  });
});

describe("the token of a stream", () => {
  it("reads this stream, by header or address, and nothing else", async () => {
    const { store, get, as, text, clock, end } = await opened();
    await text("a");
    const { token } = await store.intake.streamToken(tenant, "chat", "tokens", 60_000);
    const both = [await get(url, as(token)), await get(`${url}?token=${token}`)].map(collect);
    await end();
    await clock.elapse(20);
    for (const one of both) {
      await one.done;
      expect(offsets(one.text())).toEqual([0]);
    }
    for (const other of [
      "/v1/runs/chat/streams/other",
      "/v1/runs/chat/streams",
      "/v1/runs/chat",
      "/v1/whoami",
      "/v1/runs",
    ]) {
      const refused = await get(other, as(token));
      expect([other, refused.status]).toEqual([other, 401]);
    }
    expect((await get("/v1/runs?token=x", as(token))).status).toBe(401);
    const forged = await get(`${url}?token=${token.slice(0, -1)}${token.endsWith("A") ? "B" : "A"}`);
    expect([forged.status, codeOf(forged)]).toEqual([401, "TAPE_UNAUTHENTICATED"]);
  });

  it("lets a page of a named origin read it, refusals too; without it, or from elsewhere, the page does nothing", async () => {
    const { store, get, reader, text, end, clock } = await opened();
    await text("a");
    const { token } = await store.intake.streamToken(tenant, "chat", "tokens", 60_000);
    const from = (origin: string, path: string, more = {}) =>
      get(path, { host: "tape.example", "sec-fetch-site": "cross-site", origin, ...more });
    const [app, local] = ["https://app.example", "http://localhost:3000"];
    const allowed = await from(app, `${url}?token=${token}`, { accept: "text/event-stream" });
    expect(allowed).toMatchObject({ status: 200, headers: { "access-control-allow-origin": app, vary: "origin" } });
    expect(allowed.headers).toMatchObject({ "cross-origin-resource-policy": "cross-origin" });
    expect(allowed.headers["access-control-allow-credentials"]).toBeUndefined();
    const seen = collect(allowed);
    await end();
    await clock.elapse(20);
    await seen.done;
    const forged = await from(local, `${url}?token=${token}x`);
    expect([forged.status, forged.headers["access-control-allow-origin"]]).toEqual([401, local]);
    const refused = [
      await from("https://evil.example", `${url}?token=${token}`),
      await from("https://app.example.evil.example", `${url}?token=${token}`),
      await from("null", `${url}?token=${token}`),
      await from(app, url, reader),
      await from(app, `/v1/runs?token=${token}`),
      await from(app, "/v1/runs/chat", reader),
    ];
    for (const one of refused) {
      expect([one.status, codeOf(one), one.headers["access-control-allow-origin"]]).toEqual([
        ...[403, "TAPE_FORBIDDEN", undefined],
      ]);
    }
  });

  it("ends an open stream when it expires", async () => {
    const { store, get, text, clock } = await opened();
    await text("a");
    const { token } = await store.intake.streamToken(tenant, "chat", "tokens", 5_000);
    const seen = collect(await get(`${url}?token=${token}`));
    await clock.elapse(4_000);
    await text("b");
    await clock.elapse(20);
    expect(offsets(seen.text())).toEqual([0, 1]);
    for (let k = 0; k < 4; k++) await clock.elapse(1_000);
    await settled(5);
    await text("c");
    await clock.elapse(20);
    await seen.done;
    expect(offsets(seen.text())).toEqual([0, 1]);
    expect((await get(`${url}?token=${token}`)).status).toBe(401);
  });

  it("is issued to a starter over HTTP, not to a reader", async () => {
    const { server, get, as, clock, text, end } = await opened();
    await text("a");
    const post = (role: "starter" | "reader") =>
      server.exchange({
        ...{ method: "POST", url: "/v1/runs/chat/stream-tokens", from: "192.0.2.1" },
        headers: { ...as(tokenOf(tenant, role)), "content-type": "application/json" },
        body: new TextEncoder().encode(JSON.stringify({ stream: "tokens", ttlMs: 60_000 })),
      });
    expect((await post("reader")).status).toBe(403);
    const { token } = JSON.parse(Buffer.from((await post("starter")).body as Uint8Array).toString()) as {
      token: string;
    };
    const seen = collect(await get(`${url}?token=${token}`));
    await end();
    await clock.elapse(20);
    await seen.done;
    expect(offsets(seen.text())).toEqual([0]);
  });
});
