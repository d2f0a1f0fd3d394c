import { strict as assert } from "node:assert";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { operatorResolution } from "../../src/engine/item/operator-resolution.ts";
import type { Term } from "../../src/model/lease.ts";
import type { NewRecord } from "../../src/model/records.ts";
import type { Role } from "../../src/protocol/route.ts";
import { makeScene, type Scene, tokenOf } from "../server/scene.ts";
import { ask, type Stage, stage } from "../server/stage.ts";

/** A worker's token could record operator actions. */
let current: Stage;
let scene: Scene;
beforeEach(async () => {
  current = await stage({ credentials: "required", tenant: "home" });
  scene = await makeScene(current.store, "acme");
});
afterEach(() => current.close());

const claimant = { owner: "w/1", label: "w", reactor: "recovery", ttlMs: 600_000 };
let nonce = 900n;

/** A term of `acme` for a worker. */
async function hold(target: object): Promise<Term> {
  const request = { target, claimant, nonce: nonce++, expect: "free_or_expired" } as never;
  const result = await current.store.claim.acquire("acme", request);
  assert.ok(result.ok);
  return result.term;
}

interface AppendItemResult {
  readonly ok: boolean;
  readonly head?: number;
  readonly error?: { readonly code: string; readonly details: unknown };
}

async function append(role: Role, { fence, head }: Term, ...records: unknown[]): Promise<AppendItemResult> {
  const wire = { journal: fence.journal, token: String(fence.token), nonce: String(fence.nonce) };
  const body = { batch: [{ fence: wire, entry: { after: head, records } }] };
  const { json } = await ask(current.server.exchange, "POST", "/v1/store/append", {
    ...{ body, token: tokenOf("acme", role) },
  });
  return (json as { results: [AppendItemResult] }).results[0];
}

const forbidden = { ok: false, error: { code: "TAPE_FORBIDDEN", details: { needs: "operator" } } };
const operatorAction = (action: string, detail?: unknown): NewRecord => ({
  kind: "operator.action",
  data: { by: "ada", action, reason: "seen", ...(detail === undefined ? {} : { detail }) },
});
const released = (notesTaken = 0): NewRecord => ({ kind: "term.ended", data: { reason: "released", notesTaken } });

describe("a worker is not an operator", () => {
  it.each([
    ["a named lease", () => ({ name: "mine" })],
    ["a run", () => ({ run: scene.idle })],
    ["an item", () => ({ journal: scene.item })],
  ])("it cannot write operator actions into the journal of %s", async (_what, target) => {
    const term = await hold(target());
    expect(await append("worker", term, operatorAction("token.create"), released())).toMatchObject(forbidden);
    expect(await current.store.read.audit("acme", {})).not.toContainEqual(expect.objectContaining({ by: "ada" }));
    // Nothing of the entry was written: the journal has the same head.
    expect(await append("worker", term, released())).toMatchObject({ ok: true, head: term.head + 1 });
  });

  it("an admin may, and the credential determines the name", async () => {
    const term = await hold({ name: "mine" });
    expect(await append("admin", term, operatorAction("lease.takeover"))).toMatchObject({ ok: true });
    const [entry] = await current.store.read.audit("acme", {});
    expect(entry).toMatchObject({ by: "admin of acme for ada", action: "lease.takeover" });
  });

  it("it cannot settle an effect as an operator, with any status", async () => {
    const term = await hold({ journal: scene.item });
    for (const to of ["CONFIRMED", "FAILED", "PENDING"]) {
      const settled = { kind: "effect.settled", data: { pos: 0, run: await journalInDoubt(), to, reason: "operator" } };
      expect(await append("worker", term, settled), to).toMatchObject(forbidden);
    }
    const [effect] = await current.store.read.effects("acme", { run: scene.inDoubt });
    expect(effect?.status).toBe("UNKNOWN");
  });

  it("it may only repeat an operator's resolution exactly", async () => {
    const path = `/v1/runs/${scene.inDoubt}/effects/0/0/resolve`;
    const body = { reason: "seen at the bank", resolution: { as: "confirmed", value: { receipt: 7 } } };
    const resolved = await ask(current.server.exchange, "POST", path, { body, token: tokenOf("acme", "operator") });
    expect(resolved.status, JSON.stringify(resolved.json)).toBe(200);
    const journal = await current.store.read.journal("acme", { journal: scene.item });
    expect(operatorResolution(journal)).toEqual({ as: "confirmed", value: { receipt: 7 } });
    const term = await hold({ journal: scene.item });
    const settled = (value: unknown, to = "CONFIRMED") => ({
      kind: "effect.settled",
      data: { pos: 0, sub: 0, run: term.run, to, reason: "operator", value },
    });
    expect(await append("worker", term, settled({ receipt: 8 }))).toMatchObject(forbidden);
    expect(await append("worker", term, settled({ receipt: 7 }, "FAILED"))).toMatchObject(forbidden);
    expect(await append("worker", term, settled({ receipt: 7 }), released())).toMatchObject({ ok: true });
    // The resolution is used up: if the effect is in doubt again, it needs another one.
    const [effect] = await current.store.read.effects("acme", { run: scene.inDoubt });
    expect(effect).toMatchObject({ status: "CONFIRMED", reason: "operator" });
  });

  it("it cannot resume a stuck run without an operator's resolution", async () => {
    const term = await hold({ run: scene.stuck });
    const unstuck = { kind: "run.unstuck", data: { to: "LIVE" } };
    expect(await append("worker", term, unstuck)).toMatchObject(forbidden);
    expect((await current.store.read.run("acme", scene.stuck))?.status).toBe("STUCK");
    expect(await append("admin", term, unstuck)).toMatchObject({ ok: true });
  });

  it("it may resume a stuck run once the timer of an operator's redrive has fired, and cannot set that timer", async () => {
    const redrive = { kind: "timer.set", data: { pos: 90, purpose: "redrive", delayMs: 0 } };
    const cancelled = { kind: "timer.cancelled", data: { pos: 90, purpose: "redrive" } };
    const unstuck = { kind: "run.unstuck", data: { to: "LIVE" } };
    const first = await hold({ run: scene.stuck });
    expect(await append("worker", first, redrive)).toMatchObject(forbidden);
    expect(await append("worker", first, cancelled)).toMatchObject(forbidden);
    expect(await append("worker", first, released(first.notes))).toMatchObject({ ok: true });
    await ask(current.server.exchange, "POST", `/v1/runs/${scene.stuck}/redrive`, {
      ...{ body: { reason: "fixed at six", inMs: 1 }, token: tokenOf("acme", "operator") },
    });
    const [timer] = await current.store.read.timers("acme", { run: scene.stuck });
    expect(timer).toMatchObject({ purpose: "redrive", status: "SET" });
    const second = await hold({ run: scene.stuck });
    expect(await append("worker", second, unstuck)).toMatchObject(forbidden);
    expect(await append("worker", second, released(second.notes))).toMatchObject({ ok: true });
    await vi.waitFor(async () => expect(await current.store.intake.fireTimer("acme", timer!)).toBe(true));
    const third = await hold({ run: scene.stuck });
    expect(await append("worker", third, unstuck)).toMatchObject({ ok: true });
  });

  it("it may resume a run that is stuck on an effect once an operator has resolved it", async () => {
    const { run } = (await current.store.read.effects("acme", { run: scene.inDoubt }))[0]!;
    const stuck = {
      kind: "run.stuck",
      data: { reason: "in doubt", effects: [{ run, pos: 0, sub: 0 }] },
    };
    const first = await hold({ run: scene.inDoubt });
    expect(await append("worker", first, stuck, released(first.notes))).toMatchObject({ ok: true });
    const unstuck = { kind: "run.unstuck", data: { to: "LIVE" } };
    const second = await hold({ run: scene.inDoubt });
    expect(await append("worker", second, unstuck)).toMatchObject(forbidden);
    expect(await append("worker", second, released(second.notes))).toMatchObject({ ok: true });
    await ask(current.server.exchange, "POST", `/v1/runs/${scene.inDoubt}/effects/0/0/resolve`, {
      ...{ body: { reason: "no", resolution: { as: "failed", error: "x" } }, token: tokenOf("acme", "operator") },
    });
    const third = await hold({ run: scene.inDoubt });
    expect(await append("worker", third, unstuck)).toMatchObject({ ok: true });
  });

  it("it cannot fork by firing a schedule", async () => {
    const { journal } = (await current.store.read.run("acme", scene.idle))!;
    const fork = { journal, pos: 0, through: 1, by: "ada", reason: "again", seeds: [{ before: 0, run: scene.idle }] };
    const [schedule] = await current.store.read.schedules("acme");
    const fire = (role: Role, more: object) =>
      ask(current.server.exchange, "POST", "/v1/store/schedules/fire", {
        body: {
          ...{ id: schedule!.id, version: schedule!.version, nextAt: null },
          runs: [{ id: "fired", workflow: "pay", input: 1, schedule: schedule!.id, ...more }],
        },
        token: tokenOf("acme", role),
      });
    for (const role of ["worker", "admin"] as const) {
      for (const more of [{ fork, forkedFrom: scene.idle }, { forkedFrom: scene.idle }]) {
        expect(await fire(role, more), role).toMatchObject({ status: 400, json: { code: "TAPE_BAD_INPUT" } });
      }
    }
    expect(await current.store.read.run("acme", "fired")).toBeUndefined();
    expect((await current.store.read.schedules("acme"))[0]).toEqual(schedule);
    expect(await fire("worker", {})).toMatchObject({ status: 200, json: { fired: true } });
  });

  it("it cannot fork, and may only record the operator who did", async () => {
    const { journal } = (await current.store.read.run("acme", scene.idle))!;
    const fork = { journal, pos: 0, through: 1, by: "ada", reason: "again", seeds: [{ before: 0, run: scene.idle }] };
    const spec = { id: "forked", workflow: "pay", input: "canary", forkedFrom: scene.idle, fork };
    const body = { calls: [{ specs: [spec], first: { ...claimant, nonce: "71" } }] };
    const create = (role: Role) =>
      ask(current.server.exchange, "POST", "/v1/store/create", { body, token: tokenOf("acme", role) });
    expect(await create("worker")).toMatchObject({ status: 403, json: { code: "TAPE_FORBIDDEN" } });
    expect(await current.store.read.run("acme", "forked")).toBeUndefined();
    expect((await create("admin")).status).toBe(200);
    const [created] = await current.store.read.journal("acme", { run: "forked" });
    expect(created).toMatchObject({ data: { fork: { by: "admin of acme for ada" } } });
    const term = await current.store.claim.acquire("acme", {
      ...{ target: { run: "forked" }, claimant, nonce: 71n, expect: "free" as const },
    });
    assert.ok(term.ok);
    const detail = { journal, pos: 0, through: 1 };
    const kept = { kind: "fork.kept", data: { records: [] } };
    const { via } = (created as { data: { fork: { via: object } } }).data.fork;
    expect(via).toEqual({ token: "acme-admin", name: "admin of acme", role: "admin" });
    const forkAction = (by: string) => ({
      kind: "operator.action",
      data: { by, action: "fork", reason: "again", detail, via },
    });
    expect(await append("worker", term.term, forkAction("bob"), kept)).toMatchObject(forbidden);
    expect(await append("worker", term.term, forkAction("admin of acme for ada"), kept)).toMatchObject({ ok: true });
  });

  it("checking its claims takes few reads, however many there are and whatever head they name", async () => {
    const { store } = current;
    let reads = 0;
    const journal: typeof store.read.journal = (...args) => {
      if (++reads > 5_000) throw new Error("too many reads");
      return store.read.journal(...args);
    };
    const { server } = await stage({
      ...{ credentials: "required", tenant: "home" },
      store: { ...store, read: { ...store.read, journal } },
    });
    const long = await hold({ run: scene.idle });
    const steps = Array.from({ length: 900 }, (_, pos) => ({
      kind: "step.done",
      data: { pos, name: "s", value: pos },
    }));
    const written = await store.fenced.append(long.fence, { after: long.head, records: steps as NewRecord[] });
    const wire = ({ fence }: Term) => ({
      ...{ journal: fence.journal, token: String(fence.token), nonce: String(fence.nonce) },
    });
    const unstuck = { kind: "run.unstuck", data: { to: "LIVE" } };
    const settled = { kind: "effect.settled", data: { pos: 0, run: 1, to: "CONFIRMED", reason: "operator" } };
    const stuck = await hold({ run: scene.stuck });
    const claims = [
      ...[stuck.head, 5, Number.MAX_SAFE_INTEGER].map((after) => ({ term: stuck, after, record: unstuck })),
      ...[written.head, 500, Number.MAX_SAFE_INTEGER].map((after) => ({ term: long, after, record: unstuck })),
      ...Array.from({ length: 300 }, () => ({ term: long, after: written.head, record: settled })),
    ];
    const batch = claims.map(({ term, after, record }) => ({ fence: wire(term), entry: { after, records: [record] } }));
    reads = 0;
    const { json } = await ask(server.exchange, "POST", "/v1/store/append", {
      ...{ body: { batch }, token: tokenOf("acme", "worker") },
    });
    const { results } = json as { results: AppendItemResult[] };
    expect(results).toHaveLength(batch.length);
    for (const result of results) expect(result).toMatchObject(forbidden);
    expect(reads).toBeLessThan(60);
    server.close();
  });
});

async function journalInDoubt(): Promise<number> {
  return (await current.store.read.run("acme", scene.inDoubt))!.journal;
}
