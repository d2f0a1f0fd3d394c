import { afterEach, describe, expect, it } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { TapeError } from "../../src/model/errors.ts";
import { pageResponse } from "../../src/server/dashboard-page.ts";
import { suited } from "../../src/server/response.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { giveTokens, tokenOf } from "../server/scene.ts";
import { ask, type Stage, stage } from "../server/stage.ts";
import { attackTarget } from "./target.ts";

const open: Stage[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

async function serverOn(over: (store: Stage["store"]) => Partial<Stage["store"]>) {
  const one = await stage();
  open.push(one);
  await giveTokens(one.store, "acme");
  const store = { ...one.store, ...over(one.store) };
  const { server, lines } = await stage({ store, credentials: "required" });
  const call = (url: string, token?: string) => ask(server.exchange, "GET", url, { token });
  return { call, lines, server };
}

describe("an unauthorised caller", () => {
  it.each([
    ["TAPE_STORE_UNREACHABLE", "connect ECONNREFUSED 10.0.3.4:5432"],
    ["TAPE_STORE_BUSY", 'password authentication failed for user "canary"'],
    ["TAPE_INVARIANT", 'violates unique constraint "canary_key"'],
  ] as const)("does not see the database's message: %s", async (code, message) => {
    const error = new TapeError(code, message, { host: "10.0.3.4" });
    const { call, lines } = await serverOn(({ read }) => ({ read: { ...read, token: () => Promise.reject(error) } }));
    const { json } = await call("/v1/whoami", `bogus.${"x".repeat(43)}`);
    expect(json).toMatchObject({ code });
    expect(JSON.stringify(json)).not.toMatch(/10\.0\.3\.4|canary/);
    expect(JSON.stringify(lines)).toContain(JSON.stringify(message).slice(1, -1));
  });

  it("only sees that the server works; only operators see what blocks the feed", async () => {
    const health = async () => ({ feedBlockedBy: "pid 7, user canary" });
    const { call } = await serverOn(() => ({ health }));
    expect((await call("/healthz")).json).toEqual({ status: "ok" });
    const reader = (await call("/healthz", tokenOf("acme", "reader"))).json;
    expect(reader).toMatchObject({ store: { reachable: true }, feed: { blockedBy: "an open transaction" } });
    const operator = (await call("/healthz", tokenOf("acme", "operator"))).json;
    expect(operator).toMatchObject({ feed: { blockedBy: "pid 7, user canary" } });
  });

  it("does not see what blocks the feed; operators do", async () => {
    const { call } = await serverOn(({ read }) => ({
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
        (await serverOn(() => ({}))).server.exchange({ method: "GET", url: "/openapi.json", headers }),
    ],
    [
      "a file of the dashboard",
      async (headers: Headers) =>
        suited((await pageResponse({ method: "GET", url: "/assets/a.js", headers }, async () => file))!, headers),
    ],
  ] as const)("gets 304 for an unchanged %s", async (_what, get) => {
    const first = await get({});
    const { etag } = first.headers;
    expect(first.status).toBe(200);
    expect(etag).toMatch(/^"[\w-]{22}"$/);
    const again = await get({ "if-none-match": etag! });
    expect([again.status, (again.body as Uint8Array).length, again.headers.etag]).toEqual([304, 0, etag]);
    expect((await get({ "if-none-match": '"another"' })).status).toBe(200);
    expect((await get({ "if-none-match": etag!, "accept-encoding": "gzip" })).status).toBe(304);
  });

  it("gets a cached gzip body, compressed once", async () => {
    const headers = { "accept-encoding": "gzip" };
    const get = async () =>
      suited((await pageResponse({ method: "GET", url: "/assets/a.js", headers }, async () => file))!, headers);
    const [one, other] = [await get(), await get()];
    expect(one.headers["content-encoding"]).toBe("gzip");
    expect(one.body).toBe(other.body); // the same bytes, compressed once
    const { server } = await serverOn(() => ({}));
    const described = () => server.exchange({ method: "GET", url: "/openapi.json", headers });
    expect((await described()).body).toBe((await described()).body);
  });

  it("cannot flood the log: refused calls are counted in a few lines", async () => {
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

  it("cannot flood the log while the store is unreachable", async () => {
    const clock = new ManualClock();
    const away = await openStore("memory:", { clock });
    const error = new TapeError("TAPE_STORE_UNREACHABLE", "connect ECONNREFUSED db:5432");
    const token = () => Promise.reject(error);
    const store = { ...away, read: { ...away.read, token } } as typeof away;
    const { server, lines } = await stage({ credentials: "required", clock, store });
    for (let k = 0; k < 1_000; k++) {
      const response = await ask(server.exchange, "GET", "/v1/whoami", { token: `id${k}.${"x".repeat(43)}` });
      expect(response.status).toBe(503);
    }
    expect(lines.length).toBeLessThanOrEqual(100);
    expect(lines[0]).toMatchObject({ level: "warn", event: "server.refused", fields: { error: error.message } });
    server.close();
    await away.close();
  });
});

describe("a cursor that no column can hold", () => {
  const target = attackTarget("postgres");
  it.each(["9999999999999999999.0.0", "0.0.9999999999999999999", "0.-9999999999999999999.1"])("%s", async (cursor) => {
    const { call, token } = target();
    for (const path of ["/v1/feed", "/v1/feed/stream"]) {
      const { json } = await call("GET", `${path}?cursor=${cursor}`, { token: token("acme", "reader") });
      expect(json).toMatchObject({ status: 400, code: "TAPE_BAD_INPUT" });
    }
  });
});
