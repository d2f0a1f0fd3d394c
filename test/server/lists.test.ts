import { afterEach, describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { ResponseOf } from "../../src/protocol/contract.ts";
import type { ReadOps } from "../../src/store/contract/store.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { record } from "../../testkit/conformance/frame.ts";
import {
  armed,
  begin,
  confirmed,
  dispatched,
  ended,
  intent,
  settled,
  startChild,
} from "../../testkit/conformance/holder.ts";
import { makeScene, tokenOf } from "./scene.ts";
import { ask, type Stage, stage } from "./stage.ts";

let current: Stage;
afterEach(() => current.close());

const minute = 60_000;

async function opened(wrap: (read: ReadOps) => ReadOps = (read) => read) {
  const clock = new ManualClock();
  const real = await openStore("memory:", { clock, random: seededRandom("lists") });
  const store = { ...real, read: wrap(real.read) };
  current = await stage({ credentials: "required", clock, store });
  const { server } = current;
  const scene = await makeScene(real, "acme");
  const get = async <T>(url: string, tenant = "acme"): Promise<T> => {
    const reply = await ask(server.exchange, "GET", url, { token: tokenOf(tenant, "reader") });
    expect(reply.status, JSON.stringify(reply.json)).toBe(200);
    return reply.json as T;
  };
  const post = (url: string, body: unknown, tenant = "acme") =>
    ask(server.exchange, "POST", url, { body, token: tokenOf(tenant, "operator") });
  return { store: real, clock, scene, get, post, server };
}

describe("the overview's history", () => {
  it("counts runs from the store, and final buckets only once", async () => {
    const requested: number[] = [];
    const { store, clock, get } = await opened((read) => ({
      ...read,
      rate: (tenant, since, sizeMs, buckets) => {
        requested.push(buckets);
        return read.rate(tenant, since, sizeMs, buckets);
      },
    }));
    const read = () => get<ResponseOf<"overview.history">>("/v1/overview/history?minutes=10&buckets=10");
    const first = await read();
    expect(first.bucketMs).toBe(minute);
    expect(first.runs).toHaveLength(10);
    expect(first.runs.at(-1)).toMatchObject({ started: 8, ended: 1, failed: 0, more: false });
    await store.intake.createRuns("acme", [{ id: "now", workflow: "w", input: 1 }]);
    expect((await read()).runs.at(-1)!.started).toBe(9); // the present may still change
    await clock.elapse(2 * minute);
    await store.intake.createRuns("acme", [{ id: "later", workflow: "w", input: 1 }]);
    const second = await read();
    expect(second.runs.map(({ started }) => started)).toEqual([0, 0, 0, 0, 0, 0, 0, 9, 0, 1]);
    expect(second.now).toBeLessThan(second.runs.at(-1)!.at + minute);
    expect(requested[0]).toBe(10);
    expect(requested.at(-1)).toBeLessThanOrEqual(4);
    expect(await read()).toEqual(second);
  });

  it("samples each reactor's lag once a minute, per tenant", async () => {
    const { clock, get, server } = await opened();
    const read = () => get<ResponseOf<"overview.history">>("/v1/overview/history");
    await read();
    await clock.elapse(3 * minute);
    const { reactors, now } = await read();
    const of = (name: string) => reactors.find(({ reactor }) => reactor === name)!.samples;
    expect(reactors.map(({ reactor }) => reactor)).toEqual([
      ...["compensation", "outbox", "reconciler", "recovery", "timers"],
    ]);
    // The scene's idle run has waited for recovery from the start, and no process takes it.
    expect(of("recovery").map(({ lagMs }) => lagMs)).toEqual([0, minute, 2 * minute, 3 * minute]);
    expect(of("compensation").map(({ lagMs }) => lagMs)).toEqual([0, 0, 0, 0]);
    expect(of("recovery").at(-1)!.at).toBe(now);
    server.close(); // nothing is sampled any more
    await clock.elapse(5 * minute);
    expect((await read()).reactors.map(({ samples }) => samples.length)).toEqual([1, 1, 1, 1, 1]);
  });

  it("loses one sample when the store fails briefly", async () => {
    let broken = false;
    const { clock, get } = await opened((read) => ({
      ...read,
      agenda: (tenant) => (broken ? Promise.reject(new Error("gone")) : read.agenda(tenant)),
    }));
    await get("/v1/overview"); // the overview begins it
    await clock.elapse(minute);
    broken = true;
    await clock.elapse(minute);
    broken = false;
    await clock.elapse(minute);
    const { reactors } = await get<ResponseOf<"overview.history">>("/v1/overview/history");
    expect(reactors[0]!.samples.map(({ at }) => Math.round((at - reactors[0]!.samples[0]!.at) / minute))).toEqual([
      0, 1, 3,
    ]);
    expect(current.lines.some(({ event }) => event === "server.sample_failed")).toBe(true);
  });

  it("refuses requests beyond its bounds", async () => {
    const { server } = await opened();
    const reply = (url: string) => ask(server.exchange, "GET", url, { token: tokenOf("acme", "reader") });
    for (const query of ["minutes=0", "minutes=1441", "buckets=0", "buckets=241"]) {
      expect(await reply(`/v1/overview/history?${query}`), query).toMatchObject({ json: { code: "TAPE_BAD_INPUT" } });
    }
    expect((await reply("/v1/rate?since=0&sizeMs=1&buckets=100000")).status).toBe(413);
  });
});

describe("in-doubt", () => {
  it("lists observations, requests and the next observation of each effect", async () => {
    const { store, clock, scene, get, post } = await opened();
    const none = await get<{ inDoubt: { runId: string; nextInMs: number | null; lastRequest: unknown }[] }>(
      "/v1/in-doubt",
    );
    expect(none.inDoubt).toMatchObject([{ runId: "canary-doubt", runStatus: "WAITING", observations: 0, nextInMs: 0 }]);
    const claimant = { owner: "r/1", label: "reconciler 1", reactor: "reconciler", ttlMs: minute };
    const [term] = await store.claim.find({
      ...{ claimant, nextReactor: "reconciler", staleOf: [], limit: 1, nonce: 77n, tenant: "acme" },
    });
    expect(await get("/v1/in-doubt")).toMatchObject({ inDoubt: [{ observer: "reconciler 1", nextInMs: null }] });
    const run = (await store.read.run("acme", scene.inDoubt))!.journal;
    const detail = { observed: "inconclusive", reason: "busy" };
    await store.fenced.append(term!.fence, {
      after: term!.head,
      records: [
        { kind: "effect.observed", data: { run, pos: 0, sub: 0, observation: "inconclusive", detail } },
        { kind: "term.ended", data: { reason: "released", notesTaken: 0, nextReactor: "reconciler", delayMs: 9_000 } },
      ],
    });
    await clock.elapse(1_000);
    expect(await get("/v1/in-doubt")).toMatchObject({
      inDoubt: [
        { observations: 1, nextInMs: 8_000, observer: null, lastObservation: { observation: "inconclusive", detail } },
      ],
      more: false,
    });
    const body = { resolution: { as: "observe" }, reason: "the bank is back" };
    expect((await post(`/v1/runs/${scene.inDoubt}/effects/0/0/resolve`, body)).status).toBe(200);
    expect(await get("/v1/in-doubt?role=effect")).toMatchObject({
      inDoubt: [
        {
          nextInMs: 0,
          lastRequest: { by: "operator of acme", reason: "the bank is back", detail: { as: "observe" } },
        },
      ],
    });
    expect(await get("/v1/in-doubt?role=compensation")).toEqual({ inDoubt: [], more: false });
    expect(await get("/v1/in-doubt?limit=1")).toMatchObject({ more: false });
  });

  it("shows late evidence with its effect", async () => {
    const { store, scene, get } = await opened();
    const [effect] = await store.read.effects("acme", { run: scene.inDoubt });
    const attempt = { run: effect!.run, pos: 0, token: effect!.attemptToken!, nonce: 103n }; // the scene's
    await store.intake.leaveEvidence("acme", attempt, { happened: true, value: "W-1" });
    expect(await get("/v1/in-doubt")).toMatchObject({
      inDoubt: [{ evidence: [{ attempt: 1, happened: true, value: "W-1" }] }],
    });
  });

  it("makes a confirmed effect's compensation due, with author and reason in the audit", async () => {
    const { store, post, get } = await opened();
    const run = await begin(store);
    await run.write(...confirmed(0), armed(0));
    await run.release(0);
    const body = { resolution: { as: "compensate" }, reason: "wrong account" };
    const compensate = (sub = 0, more = body) => post(`/v1/runs/${run.id}/effects/0/${sub}/resolve`, more);
    expect((await compensate()).status).toBe(200);
    expect((await run.effect(0, 1)).status).toBe("PENDING");
    const [entry] = await store.read.audit("acme");
    expect(entry).toMatchObject({
      by: "operator of acme",
      action: "resolve",
      reason: "wrong account",
      subject: run.id,
    });
    expect(entry).toMatchObject({ detail: { as: "compensate", pos: 0 } });
    expect(await compensate()).toMatchObject({ status: 409, json: { code: "TAPE_ILLEGAL_TRANSITION" } });
    expect(await compensate(1)).toMatchObject({ status: 409 });
    expect(await compensate(0, { ...body, reason: "" })).toMatchObject({ status: 400 });
    expect((await store.read.audit("acme")).filter(({ by }) => by !== "setup")).toHaveLength(1);
    expect(await get(`/v1/runs?inDoubt=true`)).toMatchObject({ runs: [{ id: "canary-doubt" }] });
  });
});

describe("a tree", () => {
  it("is the same from any of its runs: root, children, obligations", async () => {
    const { store, get, server } = await opened();
    const root = await begin(store);
    const child = await startChild(root, 4, `${root.id}.4`);
    const grandchild = await startChild(child, 0, `${child.id}.0`);
    await root.write(...confirmed(5), armed(5), ...confirmed(6), armed(6));
    const tree = await get<ResponseOf<"runs.tree">>(`/v1/runs/${grandchild.id}/tree`);
    expect(tree.root).toBe(root.id);
    expect(tree.runs.map(({ id, parent, parentPos }) => [id, parent, parentPos])).toEqual([
      [root.id, null, null],
      [child.id, root.journal, 4],
      [grandchild.id, child.journal, 0],
    ]);
    expect(tree.obligations.map(({ pos, status }) => [pos, status])).toEqual([
      [6, "ARMED"],
      [5, "ARMED"],
    ]);
    expect(tree.more).toBe(false);
    expect(await get(`/v1/runs/${root.id}/tree?limit=1`)).toMatchObject({ more: true, runs: [{}, { id: child.id }] });
    const foreign = await ask(server.exchange, "GET", `/v1/runs/${root.id}/tree`, { token: "acme-reader.wrong" });
    expect(foreign.status).toBe(401);
    expect(
      await ask(server.exchange, "GET", "/v1/runs/missing/tree", { token: tokenOf("acme", "reader") }),
    ).toMatchObject({ status: 404, json: { code: "TAPE_RUN_NOT_FOUND" } });
  });
});

describe("runs and budgets", () => {
  it("combine filters from the query string", async () => {
    const { store, clock, get } = await opened();
    await clock.elapse(minute);
    const since = clock.wall();
    const run = await begin(store, { id: "pay/ä 1", workflow: "pay" });
    await run.write(intent(0, { semantics: "non_idempotent" }), dispatched(0), settled(0, "UNKNOWN"));
    const over = await begin(store, { id: "pay/ä 2", workflow: "pay" });
    await over.write(ended("FAILED", { outcome: "no" }));
    const ids = async (query: Record<string, string>) =>
      (await get<{ runs: { id: string }[] }>(`/v1/runs?${new URLSearchParams(query)}`)).runs.map(({ id }) => id);
    expect(await ids({ startedSince: String(since) })).toEqual([over.id, run.id]);
    expect(await ids({ startedUntil: String(since), limit: "1" })).toHaveLength(1);
    expect(await ids({ endedSince: String(since), status: "FAILED" })).toEqual([over.id]);
    expect(await ids({ prefix: "pay/ä" })).toEqual([run.id, over.id]);
    expect(await ids({ prefix: "pay/ä", inDoubt: "true" })).toEqual([run.id]);
    expect(await ids({ inDoubt: "true", startedSince: String(since) })).toEqual([run.id]);
  });

  it("sum up budgets, and name the one nearest to its cap", async () => {
    const { get } = await opened();
    // Three runs of the scene have a cap of five millionths each.
    expect(await get("/v1/budgets?limit=1")).toMatchObject({
      budgets: [{ unit: "usd", cap: 5, spent: 0, workflow: "pay" }],
      units: [{ unit: "usd", runs: 3, cap: 15, reserved: 0, spent: 0 }],
      more: false,
    });
  });
});

describe("lists by name", () => {
  it.each([
    ["/v1/runs?status=DONE", /status must be one of QUEUED, RUNNABLE, .*COMPENSATED, not DONE/],
    ["/v1/runs?status=STUCK,stuck", /not stuck; did you mean STUCK\?/],
    ["/v1/effects?status=DONE", /status must be one of PENDING, .*, not DONE/],
    ["/v1/effects?role=compensation&status=CONFIRMED", /status must be one of ARMED, .*, not CONFIRMED/],
    ["/v1/effects?role=other", /role/],
    ["/v1/gates?open=maybe", /open/],
    ["/v1/gates?after=yesterday", /after|cursor/],
  ])("%s is refused with what there is", async (url, message) => {
    const { server } = await opened();
    const { status, json } = await ask(server.exchange, "GET", url, { token: tokenOf("acme", "reader") });
    expect(status).toBe(400);
    expect(json).toMatchObject({ code: "TAPE_BAD_INPUT", detail: expect.stringMatching(message) as string });
  });

  it("return a cursor for the next page, and none on the last page", async () => {
    const { store, get } = await opened();
    for (const _k of [1, 2, 3]) {
      const run = await begin(store);
      await run.write(record("gate.opened", { pos: 0, name: "g" }), intent(1));
    }
    const all = async (path: string, field: "gates" | "effects") => {
      const seen: { run: number; pos: number }[] = [];
      for (let after = ""; ; ) {
        const page = await get<Record<typeof field, typeof seen> & { next?: string }>(`${path}limit=2${after}`);
        seen.push(...page[field]);
        if (page.next === undefined) return seen.map(({ run, pos }) => `${run}.${pos}`);
        after = `&after=${page.next}`;
      }
    };
    for (const [path, field] of [
      ["/v1/gates?", "gates"],
      ["/v1/gates?open=true&", "gates"],
      ["/v1/effects?", "effects"],
    ] as const) {
      // biome-ignore format: a line
      const whole = await get<Record<typeof field, { run: number; pos: number }[]>>(path.slice(0, -1));
      const seen = await all(path, field);
      expect(seen).toEqual(whole[field].map(({ run, pos }) => `${run}.${pos}`));
      expect(seen.length).toBeGreaterThanOrEqual(3);
    }
  });
});
