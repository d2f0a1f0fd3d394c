import { afterEach, describe, expect, it } from "vitest";
import type { QueueSpec } from "../../src/model/queue.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { everything } from "../../testkit/conformance/holder.ts";
import { crossedSteps, crossQueues } from "../kit/crossed-queues.ts";
import { giveTokens, tokenOf } from "./scene.ts";
import { ask, type Reply, type Stage, stage } from "./stage.ts";

let current: Stage | undefined;
afterEach(() => current?.close());

const claimant = { owner: "worker/1", label: "worker", reactor: "recovery", ttlMs: 60_000 };
const usual: QueueSpec = { concurrency: 1, counts: "running" };

interface Scene extends Stage {
  readonly clock: ManualClock;
  call(role: "reader" | "starter" | "worker" | "operator", method: string, url: string, body?: unknown): Promise<Reply>;
  /** Admits runs of the queue, as a worker does. */
  admit(nonce: string, room?: number): Promise<string[]>;
}

async function scene(spec = usual): Promise<Scene> {
  const clock = new ManualClock();
  const made = await stage({ credentials: "required", tenant: "home", clock });
  current = made;
  const { server, store } = made;
  await giveTokens(store, "acme");
  await store.intake.putQueue("acme", "models", spec);
  const call: Scene["call"] = (role, method, url, body) =>
    ask(server.exchange, method, url, { token: tokenOf("acme", role), ...(body !== undefined && { body }) });
  return {
    ...made,
    clock,
    call,
    async admit(nonce, room = 10) {
      const found = { claimant, nextReactor: "recovery", staleOf: ["recovery"], limit: 10, nonce, workflows: ["ask"] };
      const { json } = await call("worker", "POST", "/v1/store/find", { ...found, queues: [{ name: "models", room }] });
      return (json as { terms: { name: string; queue: string }[] }).terms.map(({ name, queue }) => `${name} ${queue}`);
    },
  };
}

const start = (id: string, more: object = {}) => ({ id, workflow: "ask", input: id, queue: "models", ...more });

describe("queues over HTTP", () => {
  it("admits queued runs one by one, and explains why the others wait", async () => {
    const { call, admit, clock } = await scene();
    for (const id of ["a", "b"]) expect((await call("starter", "POST", "/v1/runs", start(id))).status).toBe(200);
    const urgent = await call("starter", "POST", "/v1/runs", start("c", { priority: 1, key: "vip" }));
    expect(urgent.json).toMatchObject({ id: "c", fresh: true });
    expect(await admit("1")).toEqual(["c models"]);
    expect(await admit("2")).toEqual([]);
    await clock.elapse(20_000); // by then a process would have reported that it serves the queue
    const { json } = await call("reader", "GET", "/v1/runs/b/queue");
    expect(json).toMatchObject({ position: { run: "b", queue: "models", key: "", class: 5, state: "QUEUED" } });
    const { reasons } = (json as { position: { reasons: object[] } }).position;
    expect(reasons).toContainEqual({ why: "queue_full", running: 1, limit: 1, runs: ["c"] });
    expect(reasons).toContainEqual({ why: "behind", runs: 1, more: false });
    expect(reasons).toContainEqual({ why: "unserved", workflow: "ask" }); // no process has reported anything
    expect((await call("reader", "GET", "/v1/runs/c/queue")).json).toMatchObject({
      position: { state: "HELD", reasons: [] },
    });
    const { json: list } = await call("reader", "GET", "/v1/queues");
    expect(list).toMatchObject({ queues: [{ name: "models", running: 1, waiting: 2, keys: 2, started: 1 }] });
    const { json: keys } = await call("reader", "GET", "/v1/queues/models/keys");
    expect(keys).toMatchObject({
      keys: [
        { key: "", running: 0, waiting: 2 },
        { key: "vip", running: 1, waiting: 0 },
      ],
    });
    const { json: held } = await call("reader", "GET", "/v1/queues/models/runs?state=HELD");
    expect(held).toMatchObject({ runs: [{ run: "c", key: "vip", state: "HELD", status: "RUNNING" }] });
  });

  it("names a cycle of queues to each of its runs, and in the overview", async () => {
    const { call, store, clock } = await scene();
    await crossQueues(store, "acme");
    const cycle = { why: "cycle", steps: crossedSteps };
    for (const run of ["load", "lift", "load.0", "lift.0"]) {
      const { json } = await call("reader", "GET", `/v1/runs/${run}/queue`);
      expect((json as { position: { reasons: object[] } }).position.reasons).toContainEqual(cycle);
    }
    await clock.elapse(60_000);
    expect((await call("reader", "GET", "/v1/overview")).json).toMatchObject({
      queueCycles: [{ steps: crossedSteps }],
    });
    await store.intake.cancel("acme", "load.0", { by: "ada", reason: "drill" });
    await clock.elapse(60_000); // the overview is cached
    expect((await call("reader", "GET", "/v1/overview")).json).toMatchObject({ queueCycles: [] });
  });

  it("serves a queue to the workers that report it", async () => {
    const { call, store, clock } = await scene();
    await store.intake.createRuns("acme", [{ ...start("a"), input: 1 }]);
    await clock.elapse(20_000);
    const body = { workflows: ["ask"], effects: [], queues: ["models"] };
    await store.intake.reportProcess("acme", { owner: "w/1", label: "w", body });
    expect((await call("reader", "GET", "/v1/runs/a/queue")).json).toMatchObject({ position: { reasons: [] } });
    await store.intake.reportProcess("acme", { owner: "w/1", label: "w", body: { ...body, queues: ["mails"] } });
    expect((await call("reader", "GET", "/v1/runs/a/queue")).json).toMatchObject({
      position: { reasons: [{ why: "unserved", workflow: "ask" }] },
    });
  });

  it("reports a run without a queue, and no run", async () => {
    const { call } = await scene();
    await call("starter", "POST", "/v1/runs", { id: "free", workflow: "ask", input: 1 });
    expect((await call("reader", "GET", "/v1/runs/free/queue")).json).toEqual({});
    expect(await call("reader", "GET", "/v1/runs/none/queue")).toMatchObject({
      status: 404,
      json: { code: "TAPE_RUN_NOT_FOUND" },
    });
    expect(await call("reader", "GET", "/v1/queues/none/keys")).toMatchObject({ json: { code: "TAPE_QUEUE_UNKNOWN" } });
  });

  it("returns the run that took a start", async () => {
    const { call } = await scene();
    const unique = (onConflict: string) => ({ unique: { key: "acme", onConflict } });
    await call("starter", "POST", "/v1/runs", start("first", unique("join")));
    expect((await call("starter", "POST", "/v1/runs", start("second", unique("join")))).json).toMatchObject({
      id: "first",
      fresh: false,
    });
    expect(await call("starter", "POST", "/v1/runs", start("third", unique("reject")))).toMatchObject({
      json: { code: "TAPE_RUN_LIVE", details: { run: "first" } },
    });
  });

  it("gives each run of a batch its own result", async () => {
    const { call, store } = await scene();
    const runs = [
      start("a"),
      { ...start("b"), queue: "none" },
      start("c", { delayMs: 60_000, startAt: 1 }),
      start("d"),
    ];
    const { status, json } = await call("starter", "POST", "/v1/runs/batch", { runs });
    expect(status).toBe(200);
    expect(json).toMatchObject({
      results: [
        { ok: true, id: "a", fresh: true },
        { ok: false, error: { code: "TAPE_QUEUE_UNKNOWN" } },
        { ok: false, error: { code: "TAPE_BAD_INPUT" } },
        { ok: true, id: "d", fresh: true },
      ],
    });
    const again = await call("starter", "POST", "/v1/runs/batch", { runs: [start("a")] });
    expect(again.json).toMatchObject({ results: [{ ok: true, id: "a", fresh: false }] });
    expect((await store.read.runs("acme")).map(({ id }) => id).toSorted()).toEqual(["a", "d"]);
  });

  it("changes limits and pauses, each with an audited reason; a repeat changes nothing", async () => {
    const { call, store, server, admit } = await scene();
    await call("starter", "POST", "/v1/runs/batch", { runs: [start("a"), start("b"), start("c")] });
    const paused = await call("operator", "POST", "/v1/queues/models/pause", { reason: "deploy", by: "ada" });
    expect(paused.json).toMatchObject({ paused: { by: "operator of acme for ada", reason: "deploy" } });
    expect(await admit("1")).toEqual([]);
    await call("operator", "POST", "/v1/queues/models/resume", { reason: "deployed" });
    const change = { change: { concurrency: 2 }, reason: "more quota" };
    const once = { body: change, token: tokenOf("acme", "operator"), key: "set-1" };
    const set = await ask(server.exchange, "PUT", "/v1/queues/models/override", once);
    expect(set.json).toMatchObject({ limits: { concurrency: 2 }, override: { concurrency: 2 } });
    expect((await ask(server.exchange, "PUT", "/v1/queues/models/override", once)).json).toEqual(set.json);
    expect(await admit("2")).toEqual(["a models", "b models"]);
    const reset = await call("operator", "DELETE", "/v1/queues/models/override?reason=back%20to%20normal");
    expect(reset.json).toMatchObject({ limits: { concurrency: 1 }, running: 2 });
    expect(reset.json).not.toHaveProperty("override");
    const audit = await store.read.audit("acme");
    expect(audit.map(({ by, reason }) => `${by}: ${reason}`).filter((text) => text.includes("operator"))).toEqual([
      "operator of acme: back to normal",
      "operator of acme: more quota",
      "operator of acme: deployed",
      "operator of acme for ada: deploy",
    ]);
  });

  it.each([
    ["PUT", "/v1/queues/models/override", { change: { rate: { limit: -1, perMs: 1, burst: 1 } }, reason: "r" }],
    ["PUT", "/v1/queues/models/override", { change: { concurrency: 0 }, reason: "r" }],
    ["PUT", "/v1/queues/models/override", { change: { concurrency: 1 } }],
    ["POST", "/v1/queues/models/pause", { reason: "" }],
    ["POST", "/v1/queues/models/pause", { reason: "r", key: "k".repeat(10_240) }],
    ["POST", "/v1/runs", start("x", { priority: 0 })],
    ["POST", "/v1/runs", start("x", { delayMs: Number.MAX_SAFE_INTEGER })],
    ["POST", "/v1/runs", start("x", { key: "k".repeat(10_240) })],
    ["POST", "/v1/runs", start("x", { unique: { key: "", onConflict: "join" } })],
    ["POST", "/v1/runs/batch", { runs: [] }],
    ["POST", "/v1/runs/batch", { runs: [{ workflow: "ask" }] }],
  ])("refuses bad input before anything is written: %s %s %j", async (method, url, body) => {
    const { call, store } = await scene();
    const before = await everything(store, "acme");
    expect(await call("operator", method, url, body)).toMatchObject({ status: 400, json: { code: "TAPE_BAD_INPUT" } });
    expect(await everything(store, "acme")).toBe(before);
  });
});
