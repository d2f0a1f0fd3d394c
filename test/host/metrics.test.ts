import * as api from "@opentelemetry/api";
import { MeterProvider, MetricReader } from "@opentelemetry/sdk-metrics";
import { describe, expect, it, onTestFinished } from "vitest";
import { functionSink } from "../../src/events/sinks/function.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { SingletonContext } from "../../src/host/singleton/term.ts";
import { Tape } from "../../src/host/tape.ts";
import { openTelemetryMetrics } from "../../src/host/telemetry-metrics.ts";
import { sinkLease } from "../../src/model/dead-letter.ts";
import { TapeError } from "../../src/model/errors.ts";
import { checkpointText } from "../../src/model/sink-checkpoint.ts";
import { effect } from "../../src/sdk/effect.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { letter } from "../../testkit/conformance/foreign-calls.ts";
import { acquired, claimant, request as requestOf } from "../../testkit/conformance/frame.ts";
import { VirtualTime } from "../../testkit/kit/virtual-time.ts";
import { figure, lint } from "../prometheus.ts";

const mail = effect("mail", async (to: string) => to, { dispatch: "outbox", allowUnsafe: "a test" });
const hello = workflow("hello", async (tape, name: string) => `hello ${await tape.effect(mail.with(name))}`);
const runner = createRunner({ workflows: [hello], effects: [mail] });

/** An app in virtual time. `away`: the store does not respond; `hangs`: its polls never return. */
async function scene(options: { away?: () => boolean; hangs?: () => boolean } = {}) {
  const { away = () => false, hangs = () => false } = options;
  const time = new VirtualTime();
  const opened = await openStore("memory:", { clock: time });
  let censuses = 0;
  const refuse = () => new TapeError("TAPE_STORE_UNREACHABLE", "no connection");
  const store: Store = {
    ...opened,
    health: async () => (away() ? Promise.reject(refuse()) : opened.health()),
    claim: { ...opened.claim, find: (request) => (hangs() ? new Promise(() => {}) : opened.claim.find(request)) },
    read: {
      ...opened.read,
      agenda: (...args) => (hangs() ? new Promise(() => {}) : opened.read.agenda(...args)),
      census: async (tenant) => {
        censuses++;
        return away() ? Promise.reject(refuse()) : opened.read.census(tenant);
      },
    },
  };
  const app = await time.during(Tape.open({ store, runner, clock: time, log: "silent", report: false }));
  onTestFinished(() => time.during(app.close().then(() => opened.close())));
  const get = async (path: string, method = "GET") => {
    const response = await time.during(app.metricsHandler(new Request(`http://localhost${path}`, { method })));
    return { status: response.status, type: response.headers.get("content-type"), text: await response.text() };
  };
  return { app, store: opened, time, get, censuses: () => censuses };
}

describe("app.metricsHandler", () => {
  it("serves the counters of this process and the figures of the store, without names", async () => {
    const { app, store, time, get } = await scene();
    expect(await time.during(app.start(hello, "Ada", { id: "canary" }).then((run) => run.result()))).toBe("hello Ada");
    await time.during(acquired(store, requestOf({ name: "canary" }), app.tenant));
    await time.during(time.sleep(1_000));
    const { status, type, text } = await get("/metrics");
    expect([status, type]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8"]);
    expect(lint(text)).toEqual([]);
    expect(figure(text, 'tape_reactor_done_total{reactor="outbox"}')).toBe(1);
    expect(figure(text, 'tape_lease_acquires_total{reactor="recovery",reason="start"}')).toBe(1);
    expect(text).toMatch(/^tape_lease_acquires_total\{reactor="outbox",reason="\w+"\} 1$/m);
    expect(figure(text, 'tape_reactor_due{reactor="recovery"}')).toBe(0);
    expect(figure(text, 'tape_runs{status="STUCK"}')).toBe(0);
    expect(figure(text, 'tape_lease_held{kind="name"}')).toBe(1);
    expect(figure(text, "tape_feed_blocked_seconds")).toBe(0);
    expect(text).not.toContain("canary");
    expect(text).not.toContain(app.tenant);
  });

  it("has the state of sinks from the store, whether or not this process runs them", async () => {
    const { app, store, time, get } = await scene();
    const sinkTerm = (sink: string) =>
      acquired(
        store,
        requestOf({ name: sinkLease(sink) }, { claimant: claimant("w", { ttlMs: 86_400_000 }) }),
        app.tenant,
      );
    const [billing, crm] = [await time.during(sinkTerm("billing")), await time.during(sinkTerm("crm"))];
    const place = { cursor: await store.read.frontier(app.tenant), at: time.wall(), epoch: 0 };
    const paused = { by: "ada", reason: "maintenance", at: time.wall() };
    await time.during(store.fenced.checkpoint(billing.fence, checkpointText(place)));
    await time.during(store.fenced.checkpoint(crm.fence, checkpointText({ ...place, paused })));
    await time.during(store.fenced.deadLetter(billing.fence, letter("7:1:5", 7)));
    await time.during(app.start(hello, "Ada").then((run) => run.result()));
    await time.during(time.sleep(7_200_000));
    const { text } = await get("/metrics");
    expect(lint(text)).toEqual([]);
    const of = (name: string) => ["billing", "crm"].map((sink) => figure(text, `${name}{sink="${sink}"}`));
    expect(of("tape_sink_paused")).toEqual([0, 1]);
    expect(of("tape_sink_dead_letters_open")).toEqual([1, 0]);
    expect(of("tape_retention_held")).toEqual([1, 1]);
    for (const lag of of("tape_sink_lag_seconds")) expect(lag).toBeCloseTo(7_200, -2);
    const { fence } = billing;
    const passed = { cursor: await store.read.frontier(app.tenant), at: time.wall(), epoch: 0 };
    await time.during(store.fenced.checkpoint(fence, checkpointText(passed)));
    await time.during(time.sleep(15_000));
    const after = (await get("/metrics")).text;
    expect(figure(after, 'tape_sink_lag_seconds{sink="billing"}')).toBe(0);
    expect(figure(after, 'tape_retention_held{sink="billing"}')).toBe(0);
  });

  it("counts shards that this process holds", async () => {
    const { app, time, get } = await scene();
    const body = ({ sleep }: SingletonContext) => sleep("1h");
    await time.during(app.singleton("sweep", body, { shards: 4, max: 3 }));
    await time.during(time.sleep(10_000));
    const { text } = await get("/metrics");
    const figures = ["tape_singleton_shards", "tape_singleton_shards_unheld"];
    expect(figures.map((name) => figure(text, `${name}{name="sweep"}`))).toEqual([3, 1]);
  });

  it("counts no shard as unheld that a process takes", async () => {
    const { app, time, get } = await scene();
    await time.during(app.singleton("sweep", ({ sleep }) => sleep("1h"), { shards: 4 }));
    await time.during(time.sleep(10_000));
    expect(figure((await get("/metrics")).text, 'tape_singleton_shards_unheld{name="sweep"}')).toBe(0);
  });

  it("has the figures of the sinks that this process runs", async () => {
    const { app, time, get } = await scene();
    const seen: string[] = [];
    const sink = functionSink(async (events) => void seen.push(...events.map(({ id }) => id)));
    app.fanouts.start({ name: "billing", sink, from: "start" });
    await time.during(app.start(hello, "Ada").then((run) => run.result()));
    await time.during(time.sleep(5_000));
    expect(seen.length).toBeGreaterThan(0);
    const { text } = await get("/metrics");
    expect(lint(text)).toEqual([]);
    expect(figure(text, 'tape_sink_events_total{sink="billing"}')).toBe(seen.length);
    expect(figure(text, 'tape_sink_paused{sink="billing"}')).toBe(0);
    expect(figure(text, 'tape_sink_lag_seconds{sink="billing"}')).toBe(0);
  });

  it("asks the store once in 15 s, and only when it is scraped", async () => {
    const { time, get, censuses } = await scene();
    await time.during(time.sleep(120_000));
    expect(censuses()).toBe(0);
    await Promise.all([get("/metrics"), get("/metrics")]);
    for (let k = 0; k < 14; k++) {
      await get("/metrics");
      await time.during(time.sleep(1_000));
    }
    expect(censuses()).toBe(1);
    await time.during(time.sleep(1_000));
    await get("/metrics");
    expect(censuses()).toBe(2);
  });

  it("has no figures of a store that does not respond, and counts that", async () => {
    let isAway = false;
    const { time, get } = await scene({ away: () => isAway });
    expect((await get("/metrics")).text).toContain("tape_reactor_lag_seconds{");
    isAway = true;
    await time.during(time.sleep(15_000));
    const { status, text } = await get("/metrics");
    expect(status).toBe(200);
    expect(text).not.toContain("tape_reactor_lag_seconds{");
    expect(figure(text, "tape_census_failures_total")).toBe(1);
    expect(lint(text)).toEqual([]);
    expect(await get("/readyz")).toMatchObject({ status: 503, text: '{"status":"store_unreachable"}\n' });
    expect((await get("/livez")).status).toBe(200);
  });

  it("reports a process that polls no more as wedged, unless the store is away", async () => {
    let [isAway, hangs] = [false, false];
    const { time, get } = await scene({ away: () => isAway, hangs: () => hangs });
    await time.during(time.sleep(600_000));
    expect(await get("/livez")).toMatchObject({ status: 200, text: '{"status":"ok"}\n' });
    hangs = true;
    await time.during(time.sleep(48_000)); // five polls of 5 s, and 30 s for a slow one, since the last poll
    expect((await get("/livez")).status).toBe(200);
    await time.during(time.sleep(14_000));
    expect(await get("/livez")).toMatchObject({ status: 503, text: '{"status":"wedged"}\n' });
    expect(JSON.parse((await get("/healthz")).text)).toMatchObject({ status: "wedged" });
    isAway = true;
    expect((await get("/livez")).status).toBe(200);
  });

  it("reports readiness, also while it drains, and refuses other paths and methods", async () => {
    const { app, time, get } = await scene();
    expect((await get("/readyz")).text).toBe('{"status":"ok"}\n');
    const health = JSON.parse((await get("/healthz")).text) as Record<string, unknown>;
    expect(health).toMatchObject({ status: "ok", driving: 0, reactors: { recovery: { faults: 0 } } });
    expect(await get("/livez", "HEAD")).toMatchObject({ status: 200, text: "" });
    expect((await get("/metrics", "POST")).status).toBe(405);
    for (const path of ["/", "/v1/runs", "/metrics/", "/__proto__"]) expect((await get(path)).status).toBe(404);
    const closing = app.close();
    expect(await get("/readyz")).toMatchObject({ status: 503, text: '{"status":"draining"}\n' });
    await time.during(closing);
  });
});

describe("a port", () => {
  const open = (listen: string) => Tape.open({ store: "memory:", runner, log: "silent", metrics: { listen } });

  it("serves the same on loopback, and closes with the app", async () => {
    const app = await open("0");
    expect(app.metrics.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const response = await fetch(`${app.metrics.url}/metrics?x=1`);
    expect(lint(await response.text())).toEqual([]);
    expect((await fetch(`${app.metrics.url}/livez`, { method: "HEAD" })).status).toBe(200);
    expect((await fetch(`${app.metrics.url}/metrics`, { method: "POST", body: "x" })).status).toBe(405);
    await app.close();
    await expect(fetch(`${app.metrics.url}/livez`)).rejects.toThrow();
  });

  it("is refused with a code if it is taken or no address", async () => {
    await using app = await open("127.0.0.1:0");
    const taken = new URL(app.metrics.url!).host;
    for (const listen of [taken, "here", "127.0.0.1:", "127.0.0.1:70000", ":1", "1.2.3"]) {
      await expect(open(listen), listen).rejects.toMatchObject({ code: "TAPE_BAD_CONFIG" });
    }
    for (const metrics of [{ listen: 5 }, { port: 5 }, { export: "otel" }]) {
      const opened = Tape.open({ store: "memory:", runner, metrics: metrics as { listen: string } });
      await expect(opened).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });
    }
  });
});

it("openTelemetryMetrics exports the same figures, in base units", async () => {
  class Reader extends MetricReader {
    protected override onForceFlush = async (): Promise<void> => {};
    protected override onShutdown = async (): Promise<void> => {};
  }
  const reader = new Reader();
  const provider = new MeterProvider({ readers: [reader] });
  onTestFinished(() => provider.shutdown());
  const metrics = { ...api.metrics, getMeter: (name: string) => provider.getMeter(name) };
  const app = await Tape.open({
    ...{ store: "memory:", runner, log: "silent" as const },
    metrics: { export: openTelemetryMetrics({ metrics }) },
  });
  await (await app.start(hello, "Ada")).result();
  const collect = async () => {
    const { resourceMetrics, errors } = await reader.collect();
    expect(errors).toEqual([]);
    return resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
  };
  const exported = await collect();
  const points = (name: string) => exported.find(({ descriptor }) => descriptor.name === name);
  const families = [...(await app.metrics.text()).matchAll(/^# TYPE (\S+) (?!histogram)(\S+)$/gm)].map(
    ([, name]) => name!,
  );
  const plain = families.map((name) => name.replace(/_(total|seconds)$/, ""));
  const withSamples = plain.filter(
    (name) => !/unserved|failures|losses|takeovers|sink|retention|push|model|alarms|shards/.test(name),
  );
  expect(exported.map(({ descriptor }) => descriptor.name)).toEqual(expect.arrayContaining(withSamples));
  expect(points("tape_reactor_lag")?.descriptor.unit).toBe("s");
  const done = points("tape_reactor_done")?.dataPoints.find(({ attributes }) => attributes.reactor === "outbox");
  expect(done?.value).toBe(1);
  expect(points("tape_runs")?.dataPoints.map(({ attributes }) => attributes.status)).toContain("STUCK");
  await app.close();
  let reads = 0;
  Object.assign(app.metrics, { refresh: async () => void reads++ });
  await collect();
  expect(reads).toBe(0);
});
