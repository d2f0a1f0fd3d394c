import { afterEach, describe, expect, it } from "vitest";
import { TapeError } from "../../src/model/errors.ts";
import type { Store } from "../../src/store/contract.ts";
import { ManualClock } from "../../src/testing/clock.ts";
import { giveTokens, tokenOf } from "./scene.ts";
import { ask, bootstrap, type Stage, stage } from "./stage.ts";

const open: Stage[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

/** A store whose settings are told when the test says so. */
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
  it("one tenant gets at most half of the room, and hears when to come again; afterwards there is room", async () => {
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

  it("streams have room of their own, and give it back", async () => {
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

  it("a call that is refused by its fields gives its room back", async () => {
    const { store } = await slow();
    const { server } = await stage({ store, limits: { requests: 2 } });
    for (let k = 0; k < 5; k++) expect((await ask(server.exchange, "GET", "/v1/runs?limit=x")).status).toBe(400);
    for (let k = 0; k < 5; k++)
      expect((await server.exchange({ method: "GET", url: "/v1/runs/x/journal/stream", headers: {} })).status).toBe(
        404,
      );
    expect((await ask(server.exchange, "GET", "/v1/runs")).status).toBe(200);
  });

  it("a store that is full, busy or away is a reason to come again; a fault of ours tells nothing of itself", async () => {
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

  it("readiness and health follow the store", async () => {
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

  it("whoever has no credential is paced too, and cannot make the server look dead", async () => {
    const { store, go } = await slow();
    go();
    let looks = 0;
    const health = () => {
      looks++;
      return store.health();
    };
    const limits = { ratePerSecond: 1, rateBurst: 3 };
    const { server } = await stage({
      store: { ...store, health },
      credentials: "required",
      limits,
      clock: new ManualClock(),
    });
    const call = async (url: string) => (await ask(server.exchange, "GET", url)).status;
    expect([await call("/openapi.json"), await call("/metrics"), await call("/healthz")]).toEqual([200, 200, 200]);
    expect([await call("/openapi.json"), await call("/metrics"), await call("/healthz")]).toEqual([429, 429, 429]);
    looks = 0;
    expect(new Set(await Promise.all(Array.from({ length: 20 }, () => call("/readyz"))))).toEqual(new Set([200]));
    expect(looks).toBe(1);
    expect(await call("/livez")).toBe(200);
    const { server: open } = await stage({ store: { ...store, health }, clock: new ManualClock() });
    looks = 0;
    await Promise.all(Array.from({ length: 20 }, () => ask(open.exchange, "GET", "/healthz")));
    expect(looks).toBe(1);
    await ask(open.exchange, "GET", "/healthz");
    expect(looks).toBe(2);
  });
});
