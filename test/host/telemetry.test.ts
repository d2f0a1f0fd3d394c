import { AsyncLocalStorage } from "node:async_hooks";
import * as api from "@opentelemetry/api";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { spanContextOfRun } from "../../src/engine/journal/spans.ts";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { openTelemetry } from "../../src/host/telemetry.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { assistant, ProviderError, ScriptedModel, user } from "../agent/scripted.ts";

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });

/** The SDK's own context manager for Node is another package; it wraps an AsyncLocalStorage. */
const storage = new AsyncLocalStorage<api.Context>();
const contexts: api.ContextManager = {
  active: () => storage.getStore() ?? api.ROOT_CONTEXT,
  with: (context, work, self, ...args) => storage.run(context, () => work.call(self as never, ...args)),
  bind: (_context, target) => target,
  enable: () => contexts,
  disable: () => contexts,
};

const go = gate("go");
const mail = effect("mail", async (to: string) => `mailed ${to}`, { semantics: "idempotent" });
const flow = workflow("flow", async (tape) => {
  await tape.step("first", () => void api.trace.getActiveSpan()?.setAttribute("seen", true));
  await tape.gate(go);
  await tape.effect(mail.with("ada"));
  await tape.step("bad", () => Promise.reject(new Error("no"))).catch(() => {});
  return "done";
});
const runner = () => createRunner({ workflows: [flow], effects: [mail] });
const named = (name: string): ReadableSpan[] => exporter.getFinishedSpans().filter((span) => span.name === name);

describe("traces for OpenTelemetry", () => {
  beforeAll(() => {
    api.context.setGlobalContextManager(contexts);
    api.trace.setGlobalTracerProvider(provider);
  });
  beforeEach(() => exporter.reset());
  afterAll(() => api.trace.disable());

  it("the drives of a run are linked in one trace; replayed operations are marked; failures are recorded", async () => {
    const store = await openStore("memory:");
    onTestFinished(() => store.close());
    const starter = api.trace.getTracer("test").startSpan("the caller");
    const around = api.trace.setSpan(api.ROOT_CONTEXT, starter);
    const first = await Tape.open({ store, runner: runner(), tracing: openTelemetry(api) });
    await api.context.with(around, () => first.start(flow, undefined as never, { id: "traced" }));
    await expect.poll(async () => (await first.runs.get("traced"))?.status).toBe("WAITING");
    await first.close();
    const second = await Tape.open({ store, runner: runner(), tracing: openTelemetry(api) });
    onTestFinished(() => second.close());
    await second.signal("traced", go, 1);
    await (await second.run("traced")).result();

    const place = spanContextOfRun("default", "traced");
    const drives = named("tape.drive");
    expect(drives).toHaveLength(2);
    for (const drive of drives) {
      expect(drive.spanContext().traceId).toBe(place.traceId);
      expect(drive.parentSpanContext?.spanId).toBe(place.spanId);
      expect(drive.links[0]?.context.spanId).toBe(place.spanId);
    }
    expect(drives[0]!.links[1]?.context.spanId).toBe(starter.spanContext().spanId);
    expect(drives.map(({ attributes }) => [attributes["tape.token"], attributes["tape.drive.end"]])).toEqual([
      ["1", "parked"],
      ["3", "ended"],
    ]);
    const steps = named("tape.step first");
    expect(steps.map(({ attributes }) => attributes["tape.replayed"])).toEqual([false, true]);
    expect(steps[0]!.attributes.seen).toBe(true); // the code of a step sees its span
    expect(steps[0]!.parentSpanContext?.spanId).toBe(drives[0]!.spanContext().spanId);
    expect(named("tape.effect mail").map(({ attributes }) => attributes["tape.replayed"])).toEqual([false]);
    expect(named("tape.step bad")[0]).toMatchObject({ status: { code: api.SpanStatusCode.ERROR, message: "no" } });
  });

  it("decisions of models have gen_ai attributes; replayed ones have no usage, failed ones an error", async () => {
    const price = { scripted: { input: 100_000, output: 0 } };
    const model = new ScriptedModel((k) => {
      if (k === 2) throw new ProviderError(400);
      return assistant("hello");
    });
    const ask = workflow("ask", async (tape) => {
      await model.ask([user("one")], { price });
      await tape.decide("plain", () => 1); // no model
      await tape.gate(go);
      await model.ask([user("two")]).catch(() => {});
    });
    const asking = createRunner({ workflows: [ask] });
    const app = await Tape.open({ store: "memory:", runner: asking, tracing: openTelemetry(api) });
    onTestFinished(() => app.close());
    const run = await app.start(ask, undefined as never, { id: "asked" });
    await expect.poll(() => run.status()).toBe("WAITING");
    await app.signal("asked", go, 1);
    await run.result();
    const call = {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "local",
      "gen_ai.request.model": "scripted",
      "gen_ai.agent.name": "clerk",
    };
    const used = {
      "gen_ai.usage.input_tokens": 10,
      "gen_ai.usage.output_tokens": 5,
      "tape.cost_usd": 1,
    };
    const genAi = (name: string): object[] =>
      named(name).map(({ attributes }) =>
        Object.fromEntries(Object.entries(attributes).filter(([key]) => /^gen_ai|cost/.test(key))),
      );
    expect(genAi("tape.decision clerk 1")).toEqual([{ ...call, ...used }, call]);
    expect(named("tape.decision clerk 1").map(({ attributes }) => attributes["tape.replayed"])).toEqual([false, true]);
    expect(genAi("tape.decision plain")).toEqual([{}, {}]);
    expect(genAi("tape.decision clerk 2")).toEqual([call]);
    expect(named("tape.decision clerk 2")[0]).toMatchObject({ status: { code: api.SpanStatusCode.ERROR } });
  });

  it("without a tracer no span is created", async () => {
    const app = await Tape.open({ store: "memory:", runner: runner() });
    onTestFinished(() => app.close());
    const run = await app.start(flow, undefined as never);
    await app.signal(run.id, go, 1);
    await run.result();
    expect(exporter.getFinishedSpans()).toEqual([]);
  });
});
