import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { attackTarget } from "./target.ts";

const open: (() => unknown)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});

/** Callers that only wait or only connect must not starve others. */
describe("starvation", () => {
  const limits = ["requests=64", "waiters=64", "connections=200", "connections_per_address=100"];
  const target = attackTarget("sqlite", { set: limits.map((limit) => `tape.server.limits.${limit}`) });

  it("waiting for a run in many calls leaves capacity for renewals, starts and other reads", async () => {
    const { store, url, call, token } = target();
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

  it("idle connections of one address leave capacity for others", async () => {
    const { port, raw, token } = target();
    const idle: Socket[] = [];
    for (let k = 0; k < 400; k++) {
      const socket = connect({ port, host: "127.0.0.1", localAddress: `127.0.0.${2 + (k % 4)}` });
      socket.on("error", () => {});
      idle.push(socket);
      open.push(() => socket.destroy());
    }
    await Promise.all(idle.map((socket) => new Promise((done) => socket.once("connect", done).once("close", done))));
    // On a new connection: fetch would reuse one from before the attack.
    const headers = `host: x\r\nauthorization: Bearer ${token("acme", "reader")}\r\nconnection: close`;
    const ask = () => raw(`GET /v1/whoami HTTP/1.1\r\n${headers}\r\n\r\n`);
    for (let k = 0; k < 20; k++) expect(await ask()).toMatch(/^HTTP\/1\.1 200 /);
  });
});
