import { strict as assert } from "node:assert";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import type { Term } from "../../src/model/lease.ts";
import type { NewRecord } from "../../src/model/records.ts";
import { type RouteName, routes } from "../../src/protocol/contract.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { everything } from "../../testkit/conformance/holder.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { requestOf } from "../server/samples.ts";
import { giveTokens, makeScene, type Scene, tokenOf } from "../server/scene.ts";
import { ask, type Stage, stage } from "../server/stage.ts";

/**
 * Tenant crossing: a worker of globex knows the owner and the nonce with which acme's worker holds a run. Callers choose
 * both, and acme's readers could see them. It repeats that find to get its term.
 */

const backends: Readonly<Record<string, () => Promise<string>>> = {
  memory: async () => "memory:",
  SQLite: async () => {
    const folder = await mkdtemp(join(tmpdir(), "tape-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    return `sqlite:${join(folder, "tape.db")}`;
  },
  PostgreSQL: async () => {
    const url = await freshDatabase(inject("postgres18"));
    onTestFinished(() => dropDatabase(url));
    return url;
  },
};

/** PostgreSQL has its own clock; the other stores use one that stands still, so that their views do not change. */
const clockOf = (backend: string): Clock => (backend === "PostgreSQL" ? systemClock : new ManualClock());

async function victim(url: string, clock: Clock = systemClock): Promise<Stage & { readonly scene: Scene }> {
  const one = await stage({ credentials: "required", tenant: "home", url, clock });
  onTestFinished(() => one.close());
  const scene = await makeScene(one.store, "acme");
  await giveTokens(one.store, "globex");
  return { ...one, scene };
}

/** The victim's leases: in the scene, worker/1 holds them with these nonces. */
const owner = "worker/1";
const nonces = { run: 101n, name: 104n };
const thief = { owner, label: "x", reactor: "recovery", ttlMs: 30_000 };
const step = (pos: number): NewRecord => ({
  kind: "step.done",
  data: { pos, name: "forged", value: "globex was here" },
});

describe.each(Object.entries(backends))("%s: a lease is held by an owner, a nonce and a tenant", (name, urlOf) => {
  it("over HTTP another tenant gets and learns nothing; the holder continues", async () => {
    const { server, store, scene } = await victim(await urlOf(), clockOf(name));
    const find = (tenant: string, nonce: string) =>
      ask(server.exchange, "POST", "/v1/store/find", {
        token: tokenOf(tenant, "worker"),
        body: { claimant: thief, nextReactor: "none", staleOf: [], limit: 9, nonce },
      });
    const write = (tenant: string, after: number, record: object = step(9)) =>
      ask(server.exchange, "POST", "/v1/store/append", {
        token: tokenOf(tenant, "worker"),
        body: { batch: [{ fence: scene.fence, entry: { after, records: [record] } }] },
      });
    const before = await everything(store, "acme");
    for (const nonce of Object.values(nonces)) {
      const foreign = await find("globex", String(nonce));
      const absent = await find("globex", "987654321");
      expect([foreign.status, foreign.json]).toEqual([absent.status, absent.json]);
      expect(foreign.json).toEqual({ terms: [] });
    }
    const ending = { kind: "run.ended", data: { status: "COMPLETED", outcome: "stolen by globex", notesTaken: 0 } };
    for (const record of [step(9), ending]) {
      const { json } = await write("globex", scene.head, record);
      expect(json).toMatchObject({ results: [{ ok: false, error: { code: "TAPE_FENCED" } }] });
      expect(JSON.stringify(json)).toContain("current token is none");
    }
    expect(await everything(store, "acme")).toBe(before);
    // The victim is not affected: its fence, its repeated find and its renewal work.
    expect((await find("acme", String(nonces.run))).json).toMatchObject({ terms: [{ tenant: "acme" }] });
    expect((await write("acme", scene.head)).json).toMatchObject({ results: [{ ok: true }] });
    const renewal = { body: { renewals: [{ fence: scene.fence, progress: 1 }] }, token: tokenOf("acme", "worker") };
    const { json } = await ask(server.exchange, "POST", "/v1/store/renew", renewal);
    expect(json).toMatchObject({ results: [{ ok: true }] });
  });

  it("the store grants a tenant nothing of another tenant by find, acquire or create", async () => {
    const { store, scene } = await victim(await urlOf(), clockOf(name));
    const before = await everything(store, "acme");
    const granted: Term[] = [];
    for (const nonce of Object.values(nonces)) {
      granted.push(
        ...(await store.claim.find({
          claimant: thief,
          nextReactor: "none",
          staleOf: [],
          limit: 9,
          nonce,
          tenant: "globex",
        })),
      );
    }
    expect(granted).toEqual([]);
    const refusal = store.claim.acquire("globex", {
      ...{ target: { journal: scene.journal }, claimant: thief, nonce: nonces.run, expect: "free_or_expired" },
    });
    await expect(refusal).rejects.toMatchObject({ code: "TAPE_LEASE_NOT_FOUND" });
    const spec = { id: scene.run, workflow: "pay", input: { secret: "canary" } };
    const [made] = await store.intake.createRuns("globex", [spec], { ...thief, nonce: nonces.run });
    expect(made).toMatchObject({ ok: true, fresh: true, term: { tenant: "globex" } });
    expect(made?.ok && made.journal).not.toBe(scene.journal);
    expect(await everything(store, "acme")).toBe(before);
    // A find for all tenants still returns it.
    const all = await store.claim.find({
      claimant: thief,
      nextReactor: "none",
      staleOf: [],
      limit: 9,
      nonce: nonces.run,
    });
    expect(all.map(({ tenant, kind }) => [tenant, kind])).toContainEqual(["acme", "run"]);
  });
});

describe("what a reader may see does not authorise writes", () => {
  const nonce = 461168601842990233n;

  /** The response to acme's admin, who may call all routes; streams are read until they are idle. */
  async function responseOf(name: RouteName): Promise<string> {
    const clock = new ManualClock();
    const { server, store, scene } = await victim("memory:", clock);
    const [created] = await store.intake.createRuns("acme", [{ id: "held", workflow: "pay", input: 1 }], {
      ...{ owner: "w/9f3k", label: "w", reactor: "recovery", ttlMs: 600_000, nonce },
    });
    assert.ok(created?.ok && created.term);
    const wire = { pos: 0, name: "wire", semantics: "non_idempotent", dispatch: "inline", key: "k", argsHash: "h" };
    const records = [
      { kind: "effect.intended", data: { ...wire, args: 1 } },
      { kind: "effect.dispatched", data: { pos: 0, attempt: 1, sendWithinMs: 600_000 } },
      { kind: "effect.settled", data: { pos: 0, to: "UNKNOWN", reason: "ack_lost" } },
    ] as unknown as NewRecord[];
    await store.fenced.append(created.term.fence, { after: 1, records });
    const ownScene = { ...scene, run: "held", inDoubt: "held", journal: created.journal };
    const { method, url, body } = requestOf(name, ownScene);
    const gone = new AbortController();
    const response = await server.exchange({
      ...{ method, url: url.replace(/status=[^&]*/, ""), signal: gone.signal },
      headers: { "content-type": "application/json", authorization: `Bearer ${tokenOf("acme", "admin")}` },
      ...(body === undefined ? {} : { body: new TextEncoder().encode(JSON.stringify(body)) }),
    });
    const reading = textOf(response.body);
    await clock.elapse(10);
    gone.abort();
    return reading;
  }

  it("only the three routes that grant a term return its nonce", async () => {
    const granting: readonly RouteName[] = ["store.find", "store.acquire", "store.create"];
    const leaks: string[] = [];
    for (const { name } of routes) {
      if (granting.includes(name)) continue;
      const text = await responseOf(name);
      if (text.includes(String(nonce)) || text.includes("attemptNonce")) leaks.push(name);
    }
    expect(leaks).toEqual([]);
    // The effect in flight is part of the response.
    expect(await responseOf("effects.list")).toContain('"attemptToken":"1"');
  });
});

async function textOf(body: Uint8Array | AsyncIterable<Uint8Array>): Promise<string> {
  if (body instanceof Uint8Array) return Buffer.from(body).toString();
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
