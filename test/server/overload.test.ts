import { afterEach, describe, expect, it } from "vitest";
import { TapeError } from "../../src/model/errors.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { giveTokens, tokenOf } from "./scene.ts";
import { ask, bootstrap, type Stage, stage } from "./stage.ts";

const open: Stage[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

/** A store that returns its settings only when the test allows it. */
async function slow(): Promise<{ store: Store; go: () => void }> {
  const one = await stage();
  open.push(one);
  await giveTokens(one.store, "acme");
  let go = (): void => {};
  const gate = new Promise<void>((resolve) => {
    go = resolve;
  });
  const { read } = one.store;
  const settings = async () => {
    await gate;
    return read.settings();
  };
  return { store: { ...one.store, read: { ...read, settings } }, go };
}

describe("overload", () => {
  it("gives one tenant at most half of the capacity, with Retry-After", async () => {
    const { store, go } = await slow();
    const { server } = await stage({ store, credentials: "required", limits: { requests: 4 } });
    const call = (token: string) => ask(server.exchange, "GET", "/v1/settings", { token });
    const acme = tokenOf("acme", "reader");
    const first = [call(acme), call(acme)];
    const refused = await call(acme);
    expect(refused).toMatchObject({ status: 503, json: { code: "TAPE_OVERLOADED" } });
    expect(refused.headers["retry-after"]).toBe("1");
    const others = [call(bootstrap), call(bootstrap)];
    expect((await call(bootstrap)).status).toBe(503);
    go();
    for (const one of await Promise.all([...first, ...others])) expect(one.status).toBe(200);
    expect((await call(acme)).status).toBe(200);
  });

  it("leaves capacity for other tokens of a tenant, and for renewals", async () => {
    const { store, go } = await slow();
    const { server } = await stage({ store, credentials: "required", limits: { requests: 16 } });
    const call = (role: "reader" | "starter" | "worker", method = "GET", url = "/v1/settings", body?: unknown) =>
      ask(server.exchange, method, url, { token: tokenOf("acme", role), body });
    const held = Array.from({ length: 6 }, () => call("reader"));
    expect(await call("reader")).toMatchObject({ status: 503, json: { code: "TAPE_OVERLOADED" } });
    held.push(call("starter"), call("starter"));
    expect((await call("starter")).status).toBe(503);
    expect((await call("worker", "POST", "/v1/store/renew", { renewals: [] })).status).toBe(200);
    go();
    for (const one of await Promise.all(held)) expect(one.status).toBe(200);
  });

  it("charges a call with a thousand renewals as many, and admits it alone", async () => {
    const { store, go } = await slow();
    const renewed = async () => {
      await store.read.settings();
      return [];
    };
    const held = { ...store, claim: { ...store.claim, renew: renewed } };
    const { server } = await stage({ store: held, credentials: "required", limits: { renewals: 64 } });
    const fence = { journal: 1, token: "1", nonce: "1" };
    const renew = (count: number, role: "worker" | "operator" = "worker") =>
      ask(server.exchange, "POST", "/v1/store/renew", {
        token: tokenOf("acme", role),
        body: { renewals: Array.from({ length: count }, () => ({ fence, progress: 0 })) },
      });
    const large = renew(1_000); // 21 of the 24 places of a token
    expect(await renew(1_000)).toMatchObject({ status: 503, json: { code: "TAPE_OVERLOADED" } });
    const small = renew(1);
    go();
    expect((await large).status).toBe(200);
    expect((await small).status).toBe(200);
    expect((await renew(1_000)).status).toBe(200);
  });

  it("counts callers that wait for a run separately", async () => {
    const one = await stage({ credentials: "required", limits: { requests: 64, waiters: 4 } });
    open.push(one);
    await giveTokens(one.store, "acme");
    await one.store.intake.createRuns("acme", [{ id: "slow", workflow: "w", input: 1 }]);
    const gone = new AbortController();
    const token = tokenOf("acme", "reader");
    const headers = { authorization: `Bearer ${token}` };
    const url = "/v1/runs/slow/result?waitMs=30000";
    const waiting = [1, 2].map(() => one.server.exchange({ method: "GET", url, headers, signal: gone.signal }));
    let third = await ask(one.server.exchange, "GET", url, { token });
    while (third.status === 200) third = await ask(one.server.exchange, "GET", url, { token });
    expect(third.json).toMatchObject({ code: "TAPE_OVERLOADED", details: { limit: "waiters" } });
    expect((await ask(one.server.exchange, "GET", "/v1/settings", { token })).status).toBe(200);
    gone.abort();
    await Promise.all(waiting);
  });

  it("charges a page of many rows as many calls", async () => {
    const one = await stage({ limits: { ratePerSecond: 1, rateBurst: 30 }, clock: new ManualClock() });
    open.push(one);
    const status = async (url: string) => (await ask(one.server.exchange, "GET", url)).status;
    expect(await status("/v1/runs?limit=10")).toBe(200);
    expect(await status("/v1/runs?limit=1000")).toBe(200);
    expect(await status("/v1/runs")).toBe(200); // on credit
    expect(await status("/v1/runs?limit=1")).toBe(429);
  });

  it("counts streams separately, and frees their capacity", async () => {
    const { store } = await slow();
    const { server } = await stage({ store, limits: { streams: 2 } });
    const gone = new AbortController();
    const feed = (signal?: AbortSignal) =>
      server.exchange({ method: "GET", url: "/v1/feed/stream", headers: {}, ...(signal && { signal }) });
    expect((await feed(gone.signal)).status).toBe(200);
    expect((await feed()).status).toBe(503);
    gone.abort();
    const again = await feed();
    expect(again.status).toBe(200);
    await server.drain(0);
  });

  it("frees the capacity of a call with invalid fields", async () => {
    const { store } = await slow();
    const { server } = await stage({ store, limits: { requests: 2 } });
    for (let k = 0; k < 5; k++) expect((await ask(server.exchange, "GET", "/v1/runs?limit=x")).status).toBe(400);
    for (let k = 0; k < 5; k++)
      expect((await server.exchange({ method: "GET", url: "/v1/runs/x/journal/stream", headers: {} })).status).toBe(
        404,
      );
    expect((await ask(server.exchange, "GET", "/v1/runs")).status).toBe(200);
  });

  it("asks for a retry while the store is busy; hides internal errors", async () => {
    const { store } = await slow();
    let error: Error = new TapeError("TAPE_OVERLOADED", "the queue is full");
    const { server, lines } = await stage({
      store: { ...store, read: { ...store.read, runs: () => Promise.reject(error) } },
    });
    const call = () => ask(server.exchange, "GET", "/v1/runs");
    expect(await call()).toMatchObject({
      status: 503,
      headers: { "retry-after": "1" },
      json: { code: "TAPE_OVERLOADED" },
    });
    error = new TapeError("TAPE_STORE_BUSY", "no turn");
    expect(await call()).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
    error = new Error("password=canary");
    const failed = await call();
    expect(failed).toMatchObject({ status: 500, json: { code: "TAPE_INVARIANT" } });
    expect(JSON.stringify(failed.json)).not.toContain("canary");
    expect(lines.at(-1)).toMatchObject({ level: "error", event: "server.failed", fields: { route: "runs.list" } });
  });

  it("reports readiness and health from the store", async () => {
    const { store } = await slow();
    let away = true;
    const health = async () => {
      if (away) throw new TapeError("TAPE_STORE_UNREACHABLE", "no connection");
      return { feedBlockedBy: "pid 7" };
    };
    const { server } = await stage({ store: { ...store, health } });
    expect(await ask(server.exchange, "GET", "/readyz")).toMatchObject({
      status: 503,
      json: { status: "store_unreachable" },
    });
    expect((await ask(server.exchange, "GET", "/healthz")).json).toMatchObject({ status: "store_unreachable" });
    expect((await ask(server.exchange, "GET", "/livez")).status).toBe(200);
    away = false;
    expect((await ask(server.exchange, "GET", "/readyz")).status).toBe(200);
  });

  it("limits callers without credentials, and stays healthy", async () => {
    const { store, go } = await slow();
    go();
    let polls = 0;
    const health = () => {
      polls++;
      return store.health();
    };
    const limits = { ratePerSecond: 1, rateBurst: 4 }; // three of them for one address
    const { server } = await stage({
      store: { ...store, health },
      credentials: "required",
      limits,
      clock: new ManualClock(),
    });
    const call = async (url: string) => (await ask(server.exchange, "GET", url)).status;
    for (let k = 0; k < 3; k++) expect(await call("/openapi.json")).toBe(200);
    for (let k = 0; k < 9; k++) expect(await call("/openapi.json")).toBe(429);
    expect([await call("/metrics"), await call("/healthz"), await call("/")]).toEqual([200, 200, 200]);
    const elsewhere = { method: "GET", url: "/openapi.json", headers: {}, from: "192.0.2.7" };
    expect((await server.exchange(elsewhere)).status).toBe(200);
    polls = 0;
    expect(new Set(await Promise.all(Array.from({ length: 20 }, () => call("/readyz"))))).toEqual(new Set([200]));
    expect(polls).toBe(1);
    expect(await call("/livez")).toBe(200);
    const { server: open } = await stage({ store: { ...store, health }, clock: new ManualClock() });
    polls = 0;
    await Promise.all(Array.from({ length: 20 }, () => ask(open.exchange, "GET", "/healthz")));
    expect(polls).toBe(1);
    await ask(open.exchange, "GET", "/healthz");
    expect(polls).toBe(2);
  });
});
