import { describe, expect, it } from "vitest";
import { buildRequest } from "../../src/connector/http/request.ts";
import { memoryGuardTable } from "../../src/guard/guard-table.ts";
import { fencedHandler } from "../../src/guard/http-handler.ts";
import { fenceHeaders, leaseHeader, RequestFence, tokenHeader } from "../../src/guard/request-fence.ts";
import { macHeader } from "../../src/model/fence-mac.ts";
import type { ConnectorContext } from "../../src/sdk/connector.ts";

const secret = "a secret of both sides, made by chance: 0";
const next = "another secret of both sides, made later 1";
const highest = 2n ** 63n - 1n;
const ledger = (token: bigint) => ({ name: "ledger", token });

/** A caller of the user's service sends a token that no store ever issued. */
describe("a forged token", () => {
  const handler = (secrets?: string | readonly string[]) => {
    const passed: bigint[] = [];
    const handle = fencedHandler(
      (_request, { token }) => {
        passed.push(token);
        return new Response("done");
      },
      secrets === undefined ? {} : { secret: secrets },
    );
    const send = async (headers: Record<string, string>) =>
      (await handle(new Request("http://service.test/", { method: "POST", headers }))).status;
    return { send, passed };
  };

  it("does not lock others out if callers must sign it", async () => {
    const { send, passed } = handler(secret);
    expect(await send(fenceHeaders(ledger(highest)))).toBe(401);
    expect(await send(fenceHeaders(ledger(highest), { secret: next }))).toBe(401);
    const honest = fenceHeaders(ledger(7n), { secret });
    expect(await send({ ...honest, [tokenHeader]: String(highest) })).toBe(401);
    expect(await send({ ...honest, [leaseHeader]: "another" })).toBe(401);
    expect(await send({ ...honest, [macHeader]: "" })).toBe(401);
    expect(await send(honest)).toBe(200);
    expect(await send(honest)).toBe(200); // the same term may call again
    expect(await send(fenceHeaders(ledger(6n), { secret }))).toBe(412);
    expect(passed).toEqual([7n, 7n]);
  });

  it("a mistyped or missing secret is rejected", () => {
    const unset = { secret: process.env.NO_SUCH_VARIABLE };
    const respond = () => new Response();
    for (const options of [unset, { secrets: secret }, { secert: secret }, { guard: memoryGuardTable() }]) {
      expect(() => fencedHandler(respond, options as never), JSON.stringify(options)).toThrow(/TAPE_BAD_INPUT/);
      expect(() => new RequestFence(undefined, options as never), JSON.stringify(options)).toThrow(/TAPE_BAD_INPUT/);
    }
  });

  it("a lease and a key with the same name are two scopes with different signatures", async () => {
    const { send } = handler(secret);
    const lease = fenceHeaders(ledger(7n), { secret });
    const key = fenceHeaders({ key: lease[leaseHeader]!, token: 7n }, { secret });
    expect(lease[macHeader]).not.toBe(key[macHeader]);
    expect(await send({ ...key, [macHeader]: lease[macHeader]! })).toBe(401);
    expect(await send(key)).toBe(200);
  });

  it("accepts both secrets during a rotation; without a secret it trusts the token, as documented", async () => {
    const both = handler([next, secret]);
    expect(await both.send(fenceHeaders(ledger(1n), { secret }))).toBe(200);
    expect(await both.send(fenceHeaders(ledger(2n), { secret: next }))).toBe(200);
    const none = handler();
    expect(await none.send(fenceHeaders(ledger(highest)))).toBe(200);
    expect(await none.send(fenceHeaders(ledger(7n)))).toBe(412);
  });

  it("the connector signs what it sends", async () => {
    const { send } = handler(secret);
    const fx = { key: "run 7/wire", token: 7n } as ConnectorContext;
    const base = new URL("http://service.test/");
    expect(await send(buildRequest({ url: "wire" }, base, {}, fx, secret).headers)).toBe(200);
    expect(await send(buildRequest({ url: "wire" }, base, {}, fx, next).headers)).toBe(401);
    expect(await send(buildRequest({ url: "wire" }, base, {}, fx).headers)).toBe(401);
    expect(() => buildRequest({ url: "wire", headers: { [macHeader]: "mine" } }, base, {}, fx, secret)).toThrow(
      /is set by/,
    );
  });

  it("rejects a secret that can be guessed", () => {
    for (const bad of ["", "short", [], [secret, ""]]) {
      expect(() => new RequestFence(undefined, { secret: bad })).toThrow(/TAPE_BAD_INPUT/);
    }
    expect(() => fenceHeaders(ledger(1n), { secret: "x" })).toThrow(/TAPE_BAD_INPUT/);
  });
});

describe("a flood of keys", () => {
  it("keeps the table within its bound and keeps the scopes used last", async () => {
    const guards = memoryGuardTable({ scopes: 100 });
    expect(await guards.raise("kept", 9n)).toBe(9n);
    for (let k = 0; k < 10_000; k++) {
      await guards.raise(`key-${k}`, 2n);
      expect(await guards.raise("kept", 3n)).toBe(9n);
    }
    expect(await guards.raise("key-9999", 1n)).toBe(2n);
    expect(await guards.raise("key-0", 1n)).toBe(1n); // evicted
  });

  it("rejects a bound of 0", () => {
    for (const scopes of [0, -1, 1.5, Number.NaN]) expect(() => memoryGuardTable({ scopes })).toThrow(/TAPE_BAD_INPUT/);
  });
});
