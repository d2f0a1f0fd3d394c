import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { groundOf } from "./ground.ts";

const open: (() => unknown)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});

/** Whoever only waits or only connects must not keep others from their work. */
describe("starvation", () => {
  const limits = ["requests=64", "waiters=64", "connections=200", "connections_per_address=100"];
  const deps = groundOf("sqlite", { set: limits.map((one) => `tape.server.limits.${one}`) });

  it("a reader that waits for a run a hundred times leaves room for renewals, starts and other readers", async () => {
    const { store, url, call, token } = deps();
    await store.intake.createRuns("acme", [{ id: "slow", workflow: "w", input: 1 }]);
    const gone = new AbortController();
    open.push(() => gone.abort());
    const headers = { authorization: `Bearer ${token("acme", "reader")}` };
    const waiting = { headers, signal: gone.signal };
    const statuses: number[] = [];
    for (let k = 0; k < 60; k++) {
      void fetch(`${url}/v1/runs/slow/result?waitMs=30000`, waiting).then(
        ({ status }) => statuses.push(status),
        () => {},
      );
    }
    while (statuses.length < 30) await new Promise((soon) => setImmediate(soon));
    expect(new Set(statuses)).toEqual(new Set([503]));
    const renewal = { token: token("acme", "worker"), body: { renewals: [] } };
    expect((await call("POST", "/v1/store/renew", renewal)).status).toBe(200);
    const start = { token: token("acme", "starter"), body: { workflow: "w", input: 1 } };
    expect((await call("POST", "/v1/runs", start)).status).toBe(200);
    expect((await call("GET", "/v1/runs?limit=1", { token: token("acme", "reader") })).status).toBe(200);
  });

  it("an address that opens connections and says nothing leaves room for others", async () => {
    const { port, raw, token } = deps();
    const idle: Socket[] = [];
    for (let k = 0; k < 400; k++) {
      const socket = connect({ port, host: "127.0.0.1", localAddress: `127.0.0.${2 + (k % 4)}` });
      socket.on("error", () => {});
      idle.push(socket);
      open.push(() => socket.destroy());
    }
    await Promise.all(idle.map((socket) => new Promise((done) => socket.once("connect", done).once("close", done))));
    // On a connection of its own: fetch would use one that it had before the others came.
    const headers = `host: x\r\nauthorization: Bearer ${token("acme", "reader")}\r\nconnection: close`;
    const ask = () => raw(`GET /v1/whoami HTTP/1.1\r\n${headers}\r\n\r\n`);
    for (let k = 0; k < 20; k++) expect(await ask()).toMatch(/^HTTP\/1\.1 200 /);
  });
});
