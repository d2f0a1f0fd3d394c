import { afterEach, describe, expect, it } from "vitest";
import { Metrics } from "../../src/base/metrics.ts";
import { figure, lint } from "../prometheus.ts";
import { requestOf } from "./samples.ts";
import { giveTokens, makeScene, tokenOf } from "./scene.ts";
import { ask, type Stage, stage } from "./stage.ts";

let current: Stage | undefined;
afterEach(() => current?.close());

describe("/metrics", () => {
  it("lints clean, counts what happened, and names neither tenant nor run", async () => {
    current = await stage({ credentials: "required" });
    const { server, store } = current;
    const scene = await makeScene(store, "acme");
    const token = tokenOf("acme", "admin");
    const call = async (name: Parameters<typeof requestOf>[0]) => {
      const { method, url, ...rest } = requestOf(name, scene);
      return ask(server.exchange, method, url, { ...rest, token });
    };
    await call("store.acquire");
    await call("store.create");
    await call("store.renew");
    await store.claim.pause("acme", scene.lease, true, "ops", "test");
    const { fence } = scene;
    const stale = { body: { renewals: [{ fence: { ...fence, token: "7" }, progress: 1 }] }, token };
    await ask(server.exchange, "POST", "/v1/store/renew", stale);
    await ask(server.exchange, "GET", "/v1/runs/missing", { token });
    await ask(server.exchange, "GET", '/v1/"quoted\\', { token });
    const open = await server.exchange({
      method: "GET",
      url: "/v1/feed/stream",
      headers: { authorization: `Bearer ${token}` },
    });
    const text = String((await ask(server.exchange, "GET", "/metrics")).json);
    expect(lint(text)).toEqual([]);
    expect(figure(text, 'tape_lease_acquires_total{reason="start"}')).toBe(2);
    expect(figure(text, 'tape_lease_losses_total{code="TAPE_FENCED"}')).toBe(1);
    expect(figure(text, 'tape_http_requests_total{route="runs.get",status="404"}')).toBe(1);
    expect(figure(text, 'tape_http_refusals_total{code="TAPE_NO_ROUTE"}')).toBe(1);
    expect(figure(text, 'tape_http_request_duration_seconds_count{route="store.renew"}')).toBe(2);
    expect(figure(text, "tape_http_requests_in_flight")).toBe(1); // this one
    expect(figure(text, "tape_http_streams_open")).toBe(1);
    expect(text).not.toMatch(/acme|canary|quoted/);
    expect(open.status).toBe(200);
    await server.drain(0);
  });

  it("shows the queues of the caller's tenant, and none without a credential", async () => {
    current = await stage({ credentials: "required" });
    const { server, store } = current;
    const { queue } = await makeScene(store, "acme");
    await giveTokens(store, "globex");
    const find = { claimant: { owner: "w/9", label: "w", reactor: "recovery", ttlMs: 60_000 }, nextReactor: "none" };
    const request = {
      ...find,
      staleOf: [],
      limit: 1,
      nonce: "9",
      workflows: ["pay"],
      queues: [{ name: queue, room: 1 }],
    };
    await ask(server.exchange, "POST", "/v1/store/find", { body: request, token: tokenOf("acme", "worker") });
    await store.intake.pauseQueue("acme", queue, true, { by: "ada", reason: "drill" });
    const metrics = async (of?: string) =>
      String(
        (await ask(server.exchange, "GET", "/metrics", of === undefined ? {} : { token: tokenOf(of, "reader") })).json,
      );
    const own = await metrics("acme");
    expect(lint(own)).toEqual([]);
    const of = (name: string) => figure(own, `tape_queue_${name}{queue="${queue}"}`);
    expect([of("waiting"), of("running"), of("limit"), of("started_total"), of("paused")]).toEqual([0, 1, 2, 1, 1]);
    expect(of("oldest_wait_seconds")).toBe(0);
    expect(of("wait_seconds_count")).toBe(1);
    expect(await metrics("globex")).not.toContain(queue);
    expect(await metrics()).not.toContain("tape_queue");
  });

  it("has cumulative histogram buckets", () => {
    const metrics = new Metrics();
    const observe = metrics.histogram("tape_try_seconds", "A try.");
    for (const seconds of [0.0005, 0.003, 0.003, 4, 100]) observe(seconds, { route: "x" });
    const text = metrics.text();
    expect(lint(text)).toEqual([]);
    const bucket = (le: string) => figure(text, `tape_try_seconds_bucket{route="x",le="${le}"}`);
    expect([bucket("0.001"), bucket("0.0025"), bucket("0.005"), bucket("5"), bucket("30"), bucket("+Inf")]).toEqual([
      ...[1, 1, 3, 4, 4, 5],
    ]);
    expect(figure(text, 'tape_try_seconds_sum{route="x"}')).toBeCloseTo(104.0065);
  });

  it("escapes label values", () => {
    const metrics = new Metrics();
    metrics.counter("tape_tries_total", "Tries.")({ code: 'a"} 1\n\\' });
    expect(lint(metrics.text())).toEqual([]);
    expect(metrics.text()).toContain('tape_tries_total{code="a\\"} 1\\n\\\\"} 1');
  });

  it("is linted by a linter that finds faults", () => {
    expect(lint("# HELP other_total X.\n# TYPE other_total gauge\nother_total 1\n")).toHaveLength(2);
    expect(lint("tape_x 1\n")).toEqual(["tape_x has no HELP or no TYPE", "tape_x stands apart from its family"]);
    expect(lint("# HELP tape_x_ms X.\n# TYPE tape_x_ms gauge\ntape_x_ms one\n")).toHaveLength(2);
  });
});
