import { afterEach, describe, expect, it } from "vitest";
import { callbackToken } from "../../src/model/callback-token.ts";
import type { Term } from "../../src/model/lease.ts";
import type { NewRecord } from "../../src/model/records.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { giveTokens, tokenOf } from "./scene.ts";
import { ask, type Stage, type StageOptions, stage } from "./stage.ts";

const tenant = "acme";
const open: Stage[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

/** A held run with an open callback at each position, and a server that requires credentials. */
async function opened(options: StageOptions = {}) {
  const clock = new ManualClock();
  const one = await stage({ credentials: "required", tenant, clock, ...options });
  open.push(one);
  const { store, server } = one;
  await giveTokens(store, tenant);
  const first = { owner: "w/1", label: "w", reactor: "agent", ttlMs: 3_600_000, nonce: 7n };
  const [made] = await store.intake.createRuns(tenant, [{ id: "cart", workflow: "w", input: 1 }], first);
  const term = (made as { term: Term }).term;
  let head = 1;
  const write = async (...records: unknown[]): Promise<void> => {
    head = (await store.fenced.append(term.fence, { after: head, records: records as NewRecord[] })).head;
  };
  await write(
    { kind: "gate.opened", data: { pos: 0, name: "paid", callback: "json" } },
    { kind: "gate.opened", data: { pos: 1, name: "signed", callback: "raw" } },
  );
  const secret = await store.claim.callbackSecret(term.fence);
  const token = (pos: number): string => callbackToken(secret, { journal: term.journal, pos });
  const post = (path: string, body: string, headers: Record<string, string> = {}, from = "192.0.2.1") =>
    server.exchange({
      ...{ method: "POST", url: `/v1/callbacks/${path}`, headers, from },
      body: new TextEncoder().encode(body),
    });
  const notes = async () =>
    (await store.read.journal(tenant, { run: "cart" }, { inbox: true })).map(({ data }) => data as { value: unknown });
  return { ...one, clock, write, token, post, notes };
}

const bodyOf = ({ body }: { body: unknown }): unknown => JSON.parse(Buffer.from(body as Uint8Array).toString());

describe("POST /v1/callbacks/{token}", () => {
  it("needs no credential, ignores one, and opens its gate once", async () => {
    const { post, token, notes } = await opened();
    const sent = await post(token(0), '{"$codec":"date","receipt":7}', { authorization: "Basic abc" });
    expect([sent.status, bodyOf(sent)]).toEqual([200, { duplicate: false }]);
    expect(bodyOf(await post(token(0), '{"receipt":8}'))).toEqual({ duplicate: true });
    expect(await notes()).toEqual([{ name: "paid", pos: 0, value: { $codec: "date", receipt: 7 } }]);
  });

  it("hands the text and the headers that a sender signs to a raw gate, and no others", async () => {
    const { post, token, notes } = await opened();
    const headers = { "stripe-signature": "t=1,v1=ab", "content-type": "text/plain", cookie: "c", authorization: "x" };
    expect((await post(token(1), "a=1&b=2", headers)).status).toBe(200);
    const kept = { "stripe-signature": "t=1,v1=ab", "content-type": "text/plain" };
    expect((await notes())[0]?.value).toEqual({ body: "a=1&b=2", headers: kept });
  });

  it("answers every wrong token with the same 404, and limits each address", async () => {
    const { post, token, notes, clock } = await opened({ limits: { failedSignIns: 5 } });
    const [journal, , mac] = token(0).split(".") as [string, string, string];
    const absent = await post(`999.0.${mac}`, "{}");
    expect(absent.status).toBe(404);
    for (const wrong of [`${journal}.1.${mac}`, `${journal}.0.${mac.toLowerCase()}x`, "x", `${journal}.0.`]) {
      const reply = await post(wrong, "{}");
      expect([reply.status, bodyOf(reply)]).toEqual([404, bodyOf(absent)]);
    }
    const limited = await post("x", "{}");
    expect([limited.status, bodyOf(limited)]).toMatchObject([429, { code: "TAPE_RATE_LIMITED" }]);
    expect((await post("x", "{}", {}, "198.51.100.1")).status).toBe(404);
    expect(await notes()).toEqual([]);
    expect((await post(token(0), "1")).status, "a good token is accepted from every address").toBe(200);
    await clock.elapse(60_000);
    expect((await post("x", "{}")).status).toBe(404);
  });

  it("refuses a body that is too large, and one that is not JSON where the gate wants JSON", async () => {
    const { post, token, notes } = await opened();
    expect(bodyOf(await post(token(0), "x".repeat(1_048_577)))).toMatchObject({ code: "TAPE_TOO_LARGE" });
    expect(bodyOf(await post(token(0), "a=1"))).toMatchObject({ code: "TAPE_BAD_INPUT" });
    expect(bodyOf(await post(token(0), '{"__proto__":1}'))).toMatchObject({ code: "TAPE_BAD_INPUT" });
    expect(await notes()).toEqual([]);
    expect((await post(token(0), "null")).status).toBe(200);
  });
});

describe("requests over HTTP", () => {
  const token = tokenOf(tenant, "starter");
  const body = { name: "add", value: 5, key: "click-9" };

  it("wait for the reply, and the same key gets it again", async () => {
    const { server, write, notes } = await opened();
    const requested = ask(server.exchange, "POST", "/v1/runs/cart/asks?waitMs=30000", { body, token });
    while ((await notes()).length === 0) await new Promise((resolve) => setImmediate(resolve));
    await write({ kind: "reply.sent", data: { pos: 2, note: 1, value: { total: 5 } } });
    expect((await requested).json).toMatchObject({ n: 1, duplicate: false, reply: { value: { total: 5 } } });
    const again = await ask(server.exchange, "POST", "/v1/runs/cart/asks", { body, token });
    expect(again.json).toMatchObject({ n: 1, duplicate: true, reply: { value: { total: 5 } } });
    const read = await ask(server.exchange, "GET", "/v1/runs/cart/replies/1", { token: tokenOf(tenant, "reader") });
    expect(read.json).toMatchObject({ reply: { n: 1, value: { total: 5 } } });
  });

  it("return without a reply after the wait, and fail once the run has ended", async () => {
    const { server, write, clock } = await opened();
    const waits = ask(server.exchange, "POST", "/v1/runs/cart/asks?waitMs=5000", { body, token });
    for (let k = 0; k < 8; k++) await clock.elapse(1_000);
    expect((await waits).json).toEqual({ n: 1, duplicate: false });
    await write(
      { kind: "notes.taken", data: { through: 1 } },
      { kind: "run.decided", data: { cause: "completed", outcome: 1 } },
      { kind: "run.ended", data: { status: "COMPLETED", notesTaken: 1 } },
    );
    const ended = await ask(server.exchange, "POST", "/v1/runs/cart/asks?waitMs=5000", { body, token });
    expect(ended.json).toMatchObject({ code: "TAPE_RUN_ENDED", details: { status: "COMPLETED" } });
  });
});

describe("a start over HTTP", () => {
  it("sends its signals in the caller's name", async () => {
    const { server, store } = await opened();
    const token = tokenOf(tenant, "starter");
    const body = { id: "chat", workflow: "w", input: 1, signals: [{ name: "message", value: "hello", key: "k" }] };
    for (const fresh of [true, false]) {
      const { json } = await ask(server.exchange, "POST", "/v1/runs", { body: { ...body, input: fresh }, token });
      expect(json).toMatchObject({ id: "chat", fresh });
    }
    const sent = await store.read.journal(tenant, { run: "chat" }, { inbox: true });
    expect(sent).toMatchObject([{ data: { value: "hello", key: "k", via: { token: "acme-starter" } } }]);
    const keyless = { ...body, signals: [{ name: "message", value: "hello" }] };
    expect((await ask(server.exchange, "POST", "/v1/runs", { body: keyless, token })).json).toMatchObject({
      code: "TAPE_BAD_INPUT",
    });
  });
});
