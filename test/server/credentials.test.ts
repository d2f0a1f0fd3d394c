import { afterEach, describe, expect, it } from "vitest";
import { TapeError } from "../../src/model/errors.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { giveTokens, tokenOf } from "./scene.ts";
import { ask, bootstrap, type Stage, stage } from "./stage.ts";

let current: Stage;
afterEach(() => current.close());

const whoami = async (token: string) => {
  const { status, json } = await ask(current.server.exchange, "GET", "/v1/whoami", { token });
  return status === 200 ? status : (json as { code: string }).code;
};

describe("tokens", () => {
  it("are created, used, rotated and revoked, everywhere within five seconds", async () => {
    const clock = new ManualClock();
    current = await stage({ credentials: "required", clock });
    const other = await stage({ credentials: "required", clock, store: current.store });
    const make = async (name: string) => {
      const body = { name, role: "reader", reason: "rotation" };
      const { json } = await ask(current.server.exchange, "POST", "/v1/tokens", { body, token: bootstrap });
      return json as { token: { id: string }; secret: string };
    };
    const old = await make("ci");
    const next = await make("ci");
    const elsewhere = (token: string) => ask(other.server.exchange, "GET", "/v1/whoami", { token });
    expect((await elsewhere(old.secret)).json).toMatchObject({ tenant: "default", role: "reader", name: "ci" });
    const body = { reason: "rotated" };
    const revoke = await ask(current.server.exchange, "POST", `/v1/tokens/${old.token.id}/revoke`, {
      ...{ body, token: bootstrap },
    });
    expect(revoke.status).toBe(200);
    await clock.elapse(5_000);
    expect((await elsewhere(old.secret)).json).toMatchObject({ code: "TAPE_UNAUTHENTICATED" });
    expect((await elsewhere(next.secret)).status).toBe(200);
    expect(await whoami(old.secret)).toBe("TAPE_UNAUTHENTICATED");
  });

  it("count failures per address, make it wait, and still accept a valid token", async () => {
    const clock = new ManualClock();
    current = await stage({ credentials: "required", clock, limits: { failedSignIns: 6 } });
    const { store, server } = current;
    await giveTokens(store, "acme");
    let reads = 0;
    const token = store.read.token;
    const counted = (id: string) => {
      reads++;
      return token(id);
    };
    Object.assign(store.read, { token: counted });
    const from = async (address: string, secret: string | undefined) => {
      const headers = secret === undefined ? {} : { authorization: `Bearer ${secret}` };
      const { status } = await server.exchange({ method: "GET", url: "/v1/whoami", headers, from: address });
      return status;
    };
    const [known, fresh, late] = [tokenOf("acme", "reader"), tokenOf("acme", "admin"), tokenOf("acme", "worker")];
    const guess = (k: number) => `guess-${k}.${"z".repeat(43)}`;
    expect(await from("10.0.0.1", known)).toBe(200);
    for (let k = 0; k < 20; k++) expect(await from("10.0.0.1", undefined)).toBe(401); // costs nothing
    for (let k = 0; k < 6; k++) expect(await from("10.0.0.1", guess(k))).toBe(401);
    expect(await from("10.0.0.1", guess(6))).toBe(429);
    expect(await from("10.0.0.1", fresh)).toBe(200); // others behind the same proxy are not locked out
    const before = reads;
    for (let k = 7; k < 1_000; k++) expect(await from("10.0.0.1", guess(k))).toBe(429);
    expect(reads - before).toBeLessThanOrEqual(200); // the store receives none of the others
    expect(await from("10.0.0.1", known)).toBe(200);
    expect(await from("10.0.0.1", `${known.split(".")[0]}.${"z".repeat(43)}`)).toBe(429); // its id alone is no pass
    expect(await from("10.0.0.2", late)).toBe(200);
    await clock.elapse(3_100); // what is remembered of a token has to be read again
    for (let k = 2_000; k < 2_400; k++) await from("10.0.0.1", guess(k)); // and no other token is looked up for this address
    expect(await from("10.0.0.1", known)).toBe(200);
    await clock.elapse(10_000); // a sixth of a minute: room for one
    expect(await from("10.0.0.1", guess(1_001))).toBe(401);
    expect(await from("10.0.0.1", guess(1_002))).toBe(429);
  });

  it("treat an IPv6 network as one address", async () => {
    current = await stage({ credentials: "required", clock: new ManualClock(), limits: { failedSignIns: 6 } });
    const guess = async (from: string, k: number) => {
      const headers = { authorization: `Bearer guess-${k}.${"z".repeat(43)}` };
      return (await current.server.exchange({ method: "GET", url: "/v1/whoami", headers, from })).status;
    };
    for (let k = 0; k < 6; k++) expect(await guess(`2001:db8:1:2::${k}`, k)).toBe(401);
    for (let k = 6; k < 9; k++) expect(await guess(`2001:db8:1:2:${k}::1`, k)).toBe(429);
    expect(await guess("2001:db8:1:3::1", 9)).toBe(401);
  });

  it("record the last use only with a correct secret", async () => {
    current = await stage({ credentials: "required" });
    const { store, server } = current;
    await giveTokens(store, "acme");
    const touched: string[] = [];
    const { touchToken } = store.intake;
    Object.assign(store.intake, {
      touchToken: (id: string) => {
        touched.push(id);
        return touchToken(id);
      },
    });
    const call = (token: string) => ask(server.exchange, "GET", "/v1/whoami", { token });
    expect((await call(`acme-reader.${"z".repeat(43)}`)).status).toBe(401);
    expect(touched).toEqual([]);
    for (let k = 0; k < 3; k++) expect((await call(tokenOf("acme", "reader"))).status).toBe(200);
    expect(touched).toEqual(["acme-reader"]);
  });

  it("are refused after they expire", async () => {
    const clock = new ManualClock();
    current = await stage({ credentials: "required", clock });
    const body = { name: "short", role: "reader", reason: "a day", expiresInMs: 10_000 };
    const { json } = await ask(current.server.exchange, "POST", "/v1/tokens", { body, token: bootstrap });
    const { secret } = json as { secret: string };
    await clock.elapse(9_999);
    expect(await whoami(secret)).toBe(200);
    await clock.elapse(1);
    expect(await whoami(secret)).toBe("TAPE_UNAUTHENTICATED");
  });

  it("are read from the store once for many calls, and again later", async () => {
    const clock = new ManualClock();
    current = await stage({ credentials: "required", clock });
    const { store } = current;
    await giveTokens(store, "acme");
    let reads = 0;
    const counted = {
      ...store,
      read: {
        ...store.read,
        token: (id: string) => {
          reads++;
          return store.read.token(id);
        },
      },
    };
    const other = await stage({ credentials: "required", clock, store: counted });
    const token = tokenOf("acme", "reader");
    const call = () => ask(other.server.exchange, "GET", "/v1/whoami", { token });
    await Promise.all(Array.from({ length: 20 }, call));
    expect(reads).toBe(1);
    await clock.elapse(3_000);
    await call();
    expect(reads).toBe(2);
  });

  it("get a retry response, not a refusal, while the store is unreachable", async () => {
    current = await stage({ credentials: "required" });
    const { store } = current;
    await giveTokens(store, "acme");
    let away = true;
    const token = async (id: string) => {
      if (away) throw new TapeError("TAPE_STORE_UNREACHABLE", "no connection");
      return store.read.token(id);
    };
    const other = await stage({ credentials: "required", store: { ...store, read: { ...store.read, token } } });
    const call = () => ask(other.server.exchange, "GET", "/v1/whoami", { token: tokenOf("acme", "reader") });
    expect(await call()).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
    away = false;
    expect((await call()).status).toBe(200);
  });

  it("refuse to start with a bootstrap token that is too short", async () => {
    current = await stage();
    const { TapeServer } = await import("../../src/server/server.ts");
    const make = (text: string) =>
      new TapeServer({
        ...{ store: current.store, credentials: "required", bootstrap: text, version: "0" },
        identity: { owner: "o", label: "l" },
      });
    expect(() => make("root.short")).toThrow(/bootstrap_token/);
    expect(() => make("root.short")).not.toThrow(/root\.short/);
  });
});

describe("without credentials", () => {
  it("every caller is admin of the default tenant, through loopback names only", async () => {
    current = await stage();
    const call = (headers: Record<string, string>) => ask(current.server.exchange, "GET", "/v1/whoami", { headers });
    expect((await call({ host: "localhost:7878" })).json).toMatchObject({ tenant: "default", role: "admin" });
    for (const host of ["127.0.0.1:7878", "[::1]:7878", "LOCALHOST"]) expect((await call({ host })).status).toBe(200);
    for (const host of ["rebound.example:7878", "127.0.0.1.evil.example", "10.0.0.1", "localhost.evil.example"]) {
      expect(await call({ host }), host).toMatchObject({ status: 403, json: { code: "TAPE_FORBIDDEN" } });
    }
    const page = { host: "localhost:7878", origin: "http://localhost:3000" };
    expect(await call(page)).toMatchObject({ status: 403 });
    expect((await call({ host: "localhost:7878", origin: "http://localhost:7878" })).status).toBe(200);
  });
});
