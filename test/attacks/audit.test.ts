import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openRemote } from "../../src/client/open.ts";
import { checkAudit } from "../../src/store/audit.ts";
import type { AuditEntry } from "../../src/store/contract/store.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { makeScene, type Scene, tokenOf } from "../server/scene.ts";
import { ask, bootstrap, type Stage, stage } from "../server/stage.ts";

/** An admin could impersonate another one, and erase operator actions by deleting runs. */
let current: Stage;
let scene: Scene;
const clock = new ManualClock();
const day = 86_400_000;
beforeEach(async () => {
  current = await stage({ credentials: "required", tenant: "home", clock, lifetimes: { maxMs: 90 * day } });
  scene = await makeScene(current.store, "acme");
});
afterEach(() => current.close());

const post = (path: string, token: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  ask(current.server.exchange, "POST", path, { token, body, headers });

/** Matching entries. A refusal is written after its response, so the store is polled until the entry exists. */
async function entries(tenant: string, action: string, count = 1): Promise<AuditEntry[]> {
  for (;;) {
    const found = (await current.store.read.audit(tenant)).filter((entry) => entry.action === action);
    if (found.length >= count) return found;
    await setImmediate();
  }
}

describe("the audit log", () => {
  it("distinguishes two tokens with the same name, and records address and request id", async () => {
    const admin = tokenOf("acme", "admin");
    const made = await post("/v1/tokens", admin, { name: "operator of acme", role: "operator", reason: "mine" });
    const { secret, token } = made.json as { secret: string; token: { id: string } };
    const response = await current.server.exchange({
      ...{ method: "POST", url: `/v1/leases/${scene.lease}/pause`, from: "203.0.113.9" },
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json", "x-request-id": "req-7" },
      body: Buffer.from('{"reason":"as ada","by":"ada"}'),
    });
    expect(response.status).toBe(200);
    const [entry] = await entries("acme", "lease.pause");
    expect(entry).toMatchObject({
      by: "operator of acme for ada",
      subject: scene.lease,
      via: { token: token.id, role: "operator", address: "203.0.113.9", request: "req-7" },
    });
    const { json } = await ask(current.server.exchange, "GET", "/v1/audit", { token: tokenOf("acme", "operator") });
    expect((json as { entries: { via: unknown }[] }).entries[0]!.via).toEqual(entry!.via);
  });

  it("keeps the actions on runs that an admin deletes", async () => {
    const operator = tokenOf("acme", "operator");
    expect((await post(`/v1/runs/${scene.idle}/takeover`, operator, { reason: "it hangs" })).status).toBe(200);
    const { store } = current;
    const claimant = { owner: "w", label: "w", reactor: "recovery", ttlMs: 60_000 };
    const request = { target: { run: scene.idle }, claimant, nonce: 7n, expect: "free" as const };
    const held = await store.claim.acquire("acme", request);
    if (!held.ok) throw held.error;
    const ended = { kind: "run.ended", data: { status: "COMPLETED", outcome: 1, notesTaken: 0 } } as const;
    await store.fenced.append(held.term.fence, { after: held.term.head, records: [ended] });
    // The scene has a sink that has read nothing.
    const body = { endedBefore: (await store.read.now()) + 1_000, limit: 10, reason: "traces", past: true };
    expect(await post("/v1/runs/prune", tokenOf("acme", "admin"), body)).toMatchObject({ json: { pruned: 2 } }); // with the run of the scene that has ended
    expect(await store.read.run("acme", scene.idle)).toBeUndefined();
    const [entry] = await entries("acme", "lease.takeover");
    expect(entry).toMatchObject({ subject: scene.idle, reason: "it hangs", via: { token: "acme-operator" } });
    const all = (await store.read.audit("acme")).toReversed();
    expect(checkAudit(all)).toMatchObject({ checked: all.length, faults: [] });
  });

  it("records refused calls once a minute for each token and call, with a count", async () => {
    const token = tokenOf("acme", "worker");
    const refused = () => post(`/v1/runs/${scene.idle}/redrive`, token, { reason: "mine" });
    for (let k = 0; k < 50; k++) expect((await refused()).status).toBe(403);
    expect(await entries("acme", "call.refused")).toMatchObject([
      {
        by: "worker of acme",
        via: { token: "acme-worker", role: "worker" },
        detail: { route: "runs.redrive", needs: "operator" },
      },
    ]);
    await clock.elapse(61_000);
    await refused();
    const [last] = await entries("acme", "call.refused", 2);
    expect(last!.detail).toMatchObject({ more: 49 });
  });

  it("records failed sign-ins and uses of the bootstrap token in the server's own tenant", async () => {
    for (let k = 0; k < 9; k++) {
      expect(
        (await ask(current.server.exchange, "GET", "/v1/whoami", { token: `unknown.${"x".repeat(43)}` })).status,
      ).toBe(401);
    }
    expect(await entries("home", "signin.failed")).toHaveLength(1);
    expect((await ask(current.server.exchange, "GET", "/v1/whoami", { token: bootstrap })).status).toBe(200);
    expect(await entries("home", "token.bootstrap_used")).toMatchObject([{ by: "bootstrap", via: { token: "root" } }]);
    const named = await post("/v1/tokens", bootstrap, { name: "bootstrap", role: "admin", reason: "a twin" });
    expect(named).toMatchObject({ status: 400, json: { code: "TAPE_BAD_INPUT" } });
    expect(await current.store.read.audit("acme")).not.toContainEqual(
      expect.objectContaining({ action: "signin.failed" }),
    );
  });

  it("limits the entries per minute", async () => {
    for (let k = 0; k < 200; k++) {
      await current.server.exchange({
        ...{ method: "GET", url: "/v1/whoami", from: `198.51.100.${k}` },
        headers: { authorization: `Bearer unknown${k}.${"x".repeat(43)}` },
      });
    }
    expect((await entries("home", "signin.failed", 100)).length).toBeLessThanOrEqual(120);
  });

  it("failed sign-ins do not displace refused calls, and omitted entries are counted", async () => {
    const fail = (k: number) =>
      current.server.exchange({
        ...{ method: "GET", url: "/v1/whoami", from: `198.51.100.${k}` },
        headers: { authorization: `Bearer unknown${k}.${"x".repeat(43)}` },
      });
    for (let k = 0; k < 200; k++) await fail(k);
    await post(`/v1/runs/${scene.idle}/redrive`, tokenOf("acme", "worker"), { reason: "mine" });
    expect(await entries("acme", "call.refused")).toHaveLength(1);
    const warned = current.lines.filter(({ event }) => event === "server.audit_full");
    expect(warned).toMatchObject([{ level: "warn", fields: { action: "signin.failed" } }]);
    const before = (await entries("home", "signin.failed", 100)).length;
    await clock.elapse(61_000);
    await fail(201);
    const [last] = await entries("home", "signin.failed", before + 1);
    expect(last!.detail).toMatchObject({ unwritten: 200 - before });
  });

  it("counts an IPv6 /64 network as one address", async () => {
    for (let k = 0; k < 20; k++) {
      await current.server.exchange({
        ...{ method: "GET", url: "/v1/whoami", from: `2001:db8::${k.toString(16)}` },
        headers: { authorization: `Bearer unknown${k}.${"x".repeat(43)}` },
      });
    }
    await post(`/v1/runs/${scene.idle}/redrive`, tokenOf("acme", "worker"), { reason: "mine" });
    await entries("acme", "call.refused");
    expect(await entries("home", "signin.failed")).toHaveLength(1);
  });
});

describe("tokens", () => {
  const admin = tokenOf("acme", "admin");
  it("the list shows when each was last used", async () => {
    await ask(current.server.exchange, "GET", "/v1/whoami", { token: tokenOf("acme", "reader") });
    for (;;) {
      const { json } = await ask(current.server.exchange, "GET", "/v1/tokens", { token: admin });
      const { tokens } = json as { tokens: { id: string; usedAt: number | null }[] };
      expect(tokens.find(({ id }) => id === "acme-starter")!.usedAt).toBeNull();
      if (typeof tokens.find(({ id }) => id === "acme-reader")!.usedAt === "number") break;
      await setImmediate();
    }
    const remote = await openRemote("http://127.0.0.1:1", { exchange: current.server.exchange, token: admin });
    const [listed] = (await remote.read.tokens("acme")).filter(({ id }) => id === "acme-reader");
    expect(listed!.usedAt).toBe((await current.store.read.token("acme-reader"))!.usedAt);
    await remote.close();
  });

  it("cannot outlive the configured maximum", async () => {
    const make = (expiresInMs?: number) =>
      post("/v1/tokens", admin, { name: "ci", role: "reader", reason: "r", ...(expiresInMs && { expiresInMs }) });
    expect(await make(91 * day)).toMatchObject({ status: 400, json: { code: "TAPE_BAD_INPUT" } });
    const { createdAt, expiresAt } = ((await make()).json as { token: { createdAt: number; expiresAt: number } }).token;
    expect(expiresAt - createdAt).toBe(90 * day);
  });
});
