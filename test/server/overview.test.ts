import { afterEach, expect, it } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { sinkLease } from "../../src/model/dead-letter.ts";
import { checkpointText } from "../../src/model/sink-checkpoint.ts";
import type { ReadOps } from "../../src/store/contract/store.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { letter } from "../../testkit/conformance/foreign-calls.ts";
import { acquired, claimant, request } from "../../testkit/conformance/frame.ts";
import { intent } from "../../testkit/conformance/holder.ts";
import { renewed } from "../../testkit/conformance/lease-fixtures.ts";
import { makeScene, tokenOf } from "./scene.ts";
import { ask, type Stage, stage } from "./stage.ts";

let current: Stage;
afterEach(() => current.close());

async function opened() {
  current = await stage({ credentials: "required" });
  const { store, server } = current;
  const scene = await makeScene(store, "acme");
  const call = (method: string, url: string, body?: unknown, key?: string) =>
    ask(server.exchange, method, url, {
      token: tokenOf("acme", "operator"),
      ...(body === undefined ? {} : { body }),
      ...(key === undefined ? {} : { key }),
    });
  return { store, scene, call };
}

it("counts rows up to a bound that it names", async () => {
  const { store, call } = await opened();
  const ids = Array.from({ length: 150 }, (_none, k) => `many-${k}`);
  await store.intake.createRuns(
    "acme",
    ids.map((id) => ({ id, workflow: "many", input: null })),
  );
  const { json } = await call("GET", "/v1/overview");
  const { runs, inDoubt, gates, leases } = json as {
    runs: { status: string; count: number; more: boolean }[];
    inDoubt: object;
    gates: object;
    leases: object;
  };
  const of = (status: string) => runs.find((one) => one.status === status);
  expect(of("RUNNABLE")).toEqual({ status: "RUNNABLE", count: 100, more: true });
  expect(of("STUCK")).toEqual({ status: "STUCK", count: 1, more: false });
  expect(of("RUNNING")).toEqual({ status: "RUNNING", count: 2, more: false });
  expect({ inDoubt, gates }).toEqual({ inDoubt: { count: 1, more: false }, gates: { count: 2, more: false } });
  expect(leases).toEqual({ held: 4, expired: 0, stalling: 0, more: false });
});

it("shares one read among concurrent callers, and caches it by its cost", async () => {
  const clock = new ManualClock();
  const real = await openStore("memory:", { clock });
  let polls = 0;
  const runs: ReadOps["runs"] = async (...requested) => {
    polls++;
    await clock.elapse(10);
    return real.read.runs(...requested);
  };
  current = await stage({ store: { ...real, read: { ...real.read, runs } }, clock });
  const read = () => ask(current.server.exchange, "GET", "/v1/overview");
  await Promise.all(Array.from({ length: 10 }, read));
  const once = polls;
  expect(once).toBe(9); // one for each status, and those that failed lately
  await read();
  expect(polls).toBe(once);
  await clock.elapse(30_000);
  await read();
  expect(polls).toBe(2 * once);
  await real.close();
});

it("names journals, and omits those of other tenants", async () => {
  const { scene, call } = await opened();
  const { json } = await call("GET", `/v1/journals?of=${scene.journal},900001,${scene.journal}`);
  expect(json).toEqual({ journals: [{ journal: scene.journal, name: scene.run }] });
  for (const wrong of ["x", "1,x", "-1", "0", "1".repeat(16)]) {
    expect(await call("GET", `/v1/journals?of=${wrong}`), wrong).toMatchObject({ status: 400 });
  }
});

it.each([1, 2, 3, 4, 7, 8, 9, 100])("finds the head of a journal of %i records", async (records) => {
  const { store, call } = await opened();
  const claimant = { owner: "w/1", label: "w", reactor: "recovery", ttlMs: 60_000, nonce: 1n };
  const [created] = await store.intake.createRuns("acme", [{ id: "long", workflow: "w", input: null }], claimant);
  if (!created?.ok || created.term === undefined) throw new Error("not created");
  const steps = Array.from({ length: records - 1 }, (_none, pos) => ({
    ...{ kind: "step.done" as const, data: { pos, name: "s", value: pos } },
  }));
  if (steps.length > 0) await store.fenced.append(created.term.fence, { after: 1, records: steps });
  expect((await call("GET", "/v1/runs/long/head")).json).toEqual({ head: records });
});

it("forks once per key, and never repeats an effect that was not named", async () => {
  const { store, scene, call } = await opened();
  const { inDoubt } = scene;
  expect((await call("GET", `/v1/runs/${inDoubt}/fork?at=0`)).json).toMatchObject({
    at: 0,
    alreadyHappened: [{ pos: 0, name: "wire", repeatable: false }],
  });
  const body = { at: 0, reason: "again" };
  expect(await call("POST", `/v1/runs/${inDoubt}/fork`, body, "fork-1")).toMatchObject({
    status: 400,
    json: { code: "TAPE_FORK_REPEATS" },
  });
  expect(await store.read.run("acme", "fork-1")).toBeUndefined();
  const named = { ...body, repeat: [0] };
  for (let times = 0; times < 2; times++) {
    const { status, json } = await call("POST", `/v1/runs/${inDoubt}/fork`, named, "fork-1");
    expect({ status, json }).toEqual({ status: 200, json: { id: "fork-1" } });
  }
  const kinds = (await store.read.journal("acme", { run: "fork-1" })).map(({ kind }) => kind);
  expect(kinds.filter((kind) => kind === "operator.action")).toHaveLength(1);
  // The key of one fork is no key to another run's.
  const other = await call("POST", `/v1/runs/${scene.idle}/fork`, { at: 0, reason: "again" }, "fork-1");
  expect(other).toMatchObject({ status: 409, json: { code: "TAPE_RUN_CONFLICT" } });
  const [entry] = await store.read.audit("acme");
  expect(entry).toMatchObject({ action: "fork", by: "operator of acme", reason: "again" });
});

it("names runs that may hang, and unserved workflows and effects", async () => {
  const clock = new ManualClock();
  const store = await openStore("memory:", { clock });
  current = await stage({ store, clock });
  const read = async () => (await ask(current.server.exchange, "GET", "/v1/overview")).json as Record<string, unknown>;
  const tenant = "default";
  await store.intake.createRuns(tenant, [{ id: "typo", workflow: "invioce", input: null }]);
  const held = { owner: "w/1", label: "worker-a", reactor: "recovery", ttlMs: 600_000, nonce: 7n };
  const [created] = await store.intake.createRuns(tenant, [{ id: "slow", workflow: "invoice", input: null }], held);
  if (!created?.ok || created.term === undefined) throw new Error("not created");
  const outbox = { dispatch: "outbox", name: "wire", args: null } as const;
  await store.fenced.append(created.term.fence, { after: 1, records: [intent(0, outbox)] });
  await store.intake.putQueue(tenant, "model", { counts: "running" });
  await store.intake.createRuns(tenant, [{ id: "queued", workflow: "invoice", input: null, queue: "model" }]);
  const report = { owner: "w/1", label: "worker-a" };
  await store.intake.reportProcess(tenant, {
    ...report,
    body: { workflows: ["invoice"], effects: ["wires"], queues: ["models"] },
  });
  expect(await read()).toMatchObject({ hung: [], unserved: [], unservedEffects: [], unservedQueues: [] }); // nothing has waited for long
  await clock.elapse(20_000);
  expect(await read()).toMatchObject({
    hung: [],
    unserved: [{ workflow: "invioce", runs: 1, suggestion: "invoice" }],
    unservedEffects: [{ effect: "wire", items: 1, suggestion: "wires" }],
    unservedQueues: [{ queue: "model", runs: 1, suggestion: "models" }],
  });
  await store.intake.reportProcess(tenant, {
    ...report,
    body: { workflows: ["invoice", "invioce"], effects: ["wire"], queues: ["model"] },
  });
  await clock.elapse(31_000);
  await store.intake.reportProcess(tenant, {
    ...report,
    body: { workflows: ["invoice", "invioce"], effects: ["wire"], queues: ["model"] },
  });
  expect(await read()).toMatchObject({ unserved: [], unservedEffects: [], unservedQueues: [] });
  for (let k = 0; k < 40; k++) {
    await clock.elapse(60_000);
    const { fence } = created.term;
    await store.claim.renew([{ fence, progress: 0 }]);
  }
  const { hung } = (await read()) as { hung: { run: string; forMs: number; owner: string }[] };
  expect(hung).toMatchObject([{ run: "slow", owner: "worker-a" }]);
  expect(hung[0]!.forMs).toBeGreaterThan(1_800_000);
});

it("names sinks that need an operator, and why", async () => {
  const clock = new ManualClock();
  const store = await openStore("memory:", { clock });
  current = await stage({ store, clock });
  const read = async () =>
    ((await ask(current.server.exchange, "GET", "/v1/overview")).json as { sinks: unknown }).sinks;
  const claimOf = request({ name: sinkLease("billing") }, { claimant: claimant("w", { ttlMs: 600_000 }) });
  const term = await acquired(store, claimOf, "default");
  const place = { cursor: await store.read.frontier("default"), at: clock.wall(), epoch: 0 };
  await store.fenced.checkpoint(term.fence, checkpointText(place));
  expect(await read()).toEqual([]);
  await store.intake.createRuns("default", [{ id: "a", workflow: "w", input: 1 }]);
  await clock.elapse(61_000);
  await renewed(store, term, 1, "retrying: 503");
  const need = { sink: "billing", lagMs: 61_000, openLetters: 0, keptRuns: 0, note: "retrying: 503" };
  expect(await read()).toEqual([{ ...need, problems: ["blocked"] }]);
  await clock.elapse(31_000);
  await renewed(store, term, 2, "delivering");
  expect(await read()).toEqual([]); // it is late, but not by long
  const paused = { by: "ada", reason: "maintenance", at: clock.wall() };
  await store.fenced.checkpoint(term.fence, checkpointText({ ...place, paused }));
  await store.fenced.deadLetter(term.fence, letter("7:1:5", 7));
  await clock.elapse(31_000);
  const note = "ada: maintenance";
  expect(await read()).toEqual([
    { ...need, lagMs: 123_000, openLetters: 1, note, problems: ["paused", "dead_letters"] },
  ]);
});
