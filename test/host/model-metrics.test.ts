import { describe, expect, it, onTestFinished } from "vitest";
import { Metrics } from "../../src/base/metrics.ts";
import { countedModels } from "../../src/host/model-metrics.ts";
import { openStore } from "../../src/host/open-store.ts";
import { runReactors } from "../../src/host/run-reactors.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { assistant, ProviderError, ScriptedModel, user } from "../agent/scripted.ts";
import { figure, lint } from "../prometheus.ts";

function scripted() {
  const model = new ScriptedModel((k) => {
    if (k === 1) throw new ProviderError(503);
    return assistant("hello");
  });
  const ask = workflow("ask", async (tape) => {
    const price = { scripted: { input: 100_000, output: 0 } };
    await model.ask([user("one")], { price, retry: { attempts: 2, base: 1 } });
    await tape.sleep(20); // the replay after it counts nothing
    await model.ask([user("two")]);
  });
  return { ask, runner: createRunner({ workflows: [ask] }) };
}

const ok = 'tape_model_calls_total{model="local/scripted",outcome="ok"}';
const failed = 'tape_model_calls_total{model="local/scripted",outcome="failed"}';

describe("the metrics of models", () => {
  it("count calls by outcome, tokens by direction and cost, of this process alone", async () => {
    const { ask, runner } = scripted();
    const app = await Tape.open({ store: "memory:", runner, log: "silent" });
    onTestFinished(() => app.close());
    await (await app.start(ask, undefined as never)).result();
    const text = await app.metrics.text();
    expect(lint(text)).toEqual([]);
    expect([figure(text, ok), figure(text, failed)]).toEqual([2, 1]);
    expect(figure(text, 'tape_model_tokens_total{model="local/scripted",direction="input"}')).toBe(20);
    expect(figure(text, 'tape_model_tokens_total{model="local/scripted",direction="output"}')).toBe(10);
    expect(figure(text, "tape_model_cost_usd_total")).toBe(1);
  });

  it("count the calls of reactors that run beside the app", async () => {
    const { ask, runner } = scripted();
    const store = await openStore("memory:");
    onTestFinished(() => store.close());
    const app = await Tape.open({ store, runner, work: false, log: "silent" });
    onTestFinished(() => app.close());
    const reactors = await runReactors(app, { runner, log: "silent" });
    onTestFinished(() => reactors.stop());
    await (await app.start(ask, undefined as never)).result();
    expect(figure(await app.metrics.text(), ok)).toBe(2);
  });

  it("have a bounded number of labels", () => {
    const registry = new Metrics();
    const count = countedModels(registry);
    for (let k = 0; k < 200; k++) count({ model: `m${k} ${"x".repeat(200)}`, outcome: "ok", usage: { input: 1 } });
    const text = registry.text();
    expect(lint(text)).toEqual([]);
    const series = text.split("\n").filter((line) => line.startsWith("tape_model_calls_total{"));
    expect(series).toHaveLength(51);
    expect(figure(text, 'tape_model_calls_total{model="other",outcome="ok"}')).toBe(150);
    expect(Math.max(...series.map((line) => line.length))).toBeLessThan(160);
  });
});
