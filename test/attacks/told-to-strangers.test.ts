import { afterEach, describe, expect, it } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { TapeError } from "../../src/model/errors.ts";
import { pageResponse } from "../../src/server/dashboard-page.ts";
import { suited } from "../../src/server/response.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { giveTokens, tokenOf } from "../server/scene.ts";
import { ask, type Stage, stage } from "../server/stage.ts";
import { groundOf } from "./ground.ts";

const open: Stage[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

async function asked(over: (store: Stage["store"]) => Partial<Stage["store"]>) {
  const one = await stage();
  open.push(one);
  await giveTokens(one.store, "acme");
  const store = { ...one.store, ...over(one.store) };
  const { server, lines } = await stage({ store, credentials: "required" });
  const call = (url: string, token?: string) => ask(server.exchange, "GET", url, { token });
  return { call, lines, server };
}

describe("what strangers are told", () => {
  it.each([
    ["TAPE_STORE_UNREACHABLE", "connect ECONNREFUSED 10.0.3.4:5432"],
    ["TAPE_STORE_BUSY", 'password authentication failed for user "canary"'],
    ["TAPE_INVARIANT", 'violates unique constraint "canary_key"'],
  ] as const)("nothing of the database's words: %s", async (code, words) => {
    const trouble = new TapeError(code, words, { host: "10.0.3.4" });
    const { call, lines } = await asked(({ read }) => ({ read: { ...read, token: () => Promise.reject(trouble) } }));
    const { json } = await call("/v1/whoami", `bogus.${"x".repeat(43)}`);
    expect(json).toMatchObject({ code });
    expect(JSON.stringify(json)).not.toMatch(/10\.0\.3\.4|canary/);
    expect(JSON.stringify(lines)).toContain(JSON.stringify(words).slice(1, -1));
  });

  it("of the server's health no more than that it works; what blocks the feed only operators", async () => {
    const health = async () => ({ feedBlockedBy: "pid 7, user canary" });
    const { call } = await asked(() => ({ health }));
    expect((await call("/healthz")).json).toEqual({ status: "ok" });
    const reader = (await call("/healthz", tokenOf("acme", "reader"))).json;
    expect(reader).toMatchObject({ store: { reachable: true }, feed: { blockedBy: "an open transaction" } });
    const operator = (await call("/healthz", tokenOf("acme", "operator"))).json;
    expect(operator).toMatchObject({ feed: { blockedBy: "pid 7, user canary" } });
  });

  it("a feed that is held up says by whom to operators only", async () => {
    const { call } = await asked(({ read }) => ({
      read: { ...read, feed: async () => ({ records: [], cursor: "0", blockedBy: "pid 7, user canary" }) },
    }));
    expect((await call("/v1/feed", tokenOf("acme", "worker"))).json).toMatchObject({
      blockedBy: "an open transaction",
    });
    expect((await call("/v1/feed", tokenOf("acme", "admin"))).json).toMatchObject({ blockedBy: "pid 7, user canary" });
  });

  const file = { type: "text/javascript", body: Buffer.from("x".repeat(50_000)), lasting: true };
  type Headers = Readonly<Record<string, string>>;
  it.each([
    [
      "/openapi.json",
      async (headers: Headers) =>
        (await asked(() => ({}))).server.exchange({ method: "GET", url: "/openapi.json", headers }),
    ],
    [
      "a file of the dashboard",
      async (headers: Headers) =>
        suited((await pageResponse({ method: "GET", url: "/assets/a.js", headers }, async () => file))!, headers),
    ],
  ] as const)("whoever has %s is told that it has not changed", async (_what, get) => {
    const first = await get({});
    const { etag } = first.headers;
    expect(first.status).toBe(200);
    expect(etag).toMatch(/^"[\w-]{22}"$/);
    const again = await get({ "if-none-match": etag! });
    expect([again.status, (again.body as Uint8Array).length, again.headers.etag]).toEqual([304, 0, etag]);
    expect((await get({ "if-none-match": '"another"' })).status).toBe(200);
    expect((await get({ "if-none-match": etag!, "accept-encoding": "gzip" })).status).toBe(304);
  });

  it("what many ask for is packed once, not for each who asks", async () => {
    const headers = { "accept-encoding": "gzip" };
    const get = async () =>
      suited((await pageResponse({ method: "GET", url: "/assets/a.js", headers }, async () => file))!, headers);
    const [one, other] = [await get(), await get()];
    expect(one.headers["content-encoding"]).toBe("gzip");
    expect(one.body).toBe(other.body); // the same bytes, not the same work again
    const { server } = await asked(() => ({}));
    const described = () => server.exchange({ method: "GET", url: "/openapi.json", headers });
    expect((await described()).body).toBe((await described()).body);
  });

  it("a flood of refused calls without a credential is a few lines that count it", async () => {
    const clock = new ManualClock();
    const { server, lines, store } = await stage({ credentials: "required", clock });
    for (let k = 0; k < 1_000; k++) await ask(server.exchange, "GET", "/v1/whoami");
    expect(lines.length).toBeLessThanOrEqual(100);
    await clock.elapse(1_000);
    await ask(server.exchange, "GET", "/v1/whoami");
    expect(lines.at(-1)).toMatchObject({ event: "server.refused", fields: { unlogged: 1_000 - lines.length + 1 } });
    server.close();
    await store.close();
  });

  it("so is one that a store which is away refuses, with what it said", async () => {
    const clock = new ManualClock();
    const away = await openStore("memory:", { clock });
    const trouble = new TapeError("TAPE_STORE_UNREACHABLE", "connect ECONNREFUSED db:5432");
    const token = () => Promise.reject(trouble);
    const store = { ...away, read: { ...away.read, token } } as typeof away;
    const { server, lines } = await stage({ credentials: "required", clock, store });
    for (let k = 0; k < 1_000; k++) {
      const answer = await ask(server.exchange, "GET", "/v1/whoami", { token: `id${k}.${"x".repeat(43)}` });
      expect(answer.status).toBe(503);
    }
    expect(lines.length).toBeLessThanOrEqual(100);
    expect(lines[0]).toMatchObject({ level: "warn", event: "server.refused", fields: { error: trouble.message } });
    server.close();
    await away.close();
  });
});

describe("a cursor that no column can hold", () => {
  const deps = groundOf("postgres");
  it.each(["9999999999999999999.0.0", "0.0.9999999999999999999", "0.-9999999999999999999.1"])("%s", async (cursor) => {
    const { call, token } = deps();
    for (const path of ["/v1/feed", "/v1/feed/stream"]) {
      const { json } = await call("GET", `${path}?cursor=${cursor}`, { token: token("acme", "reader") });
      expect(json).toMatchObject({ status: 400, code: "TAPE_BAD_INPUT" });
    }
  });
});
