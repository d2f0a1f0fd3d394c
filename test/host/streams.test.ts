import { describe, expect, it, onTestFinished } from "vitest";
import { followRun, type RunEvent } from "../../src/host/follow-run.ts";
import { Tape } from "../../src/host/tape.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { stream } from "../../src/sdk/stream.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";

const tokens = stream<string>("tokens");
const parts = (events: readonly RunEvent[]): unknown[] =>
  events.map(({ cursor: _, ...event }) =>
    "text" in event ? event.text : "pos" in event ? [event.type, event.pos] : event.type,
  );

describe("run.stream", () => {
  it("yields values with their offsets, resumes, and ends with the run", async () => {
    const talk = workflow("talk", (tape, words: readonly string[]) =>
      tape.decide("say", async (d) => {
        for (const word of words) await d.stream(tokens).write(word);
        return d.stream(tokens).text();
      }),
    );
    await using app = await Tape.open({ store: "memory:", runner: createRunner({ workflows: [talk] }), log: "silent" });
    const run = await app.start(talk, ["to", "be"]);
    const seen: unknown[] = [];
    for await (const chunk of run.stream(tokens)) seen.push(chunk);
    expect(seen).toEqual([
      { offset: 0, part: 0, value: "to" },
      { offset: 1, part: 0, value: "be" },
    ]);
    expect(await run.result()).toBe("tobe");
    const rest: unknown[] = [];
    for await (const chunk of (await app.run(run.id)).stream("tokens", { from: 1 })) rest.push(chunk);
    expect(rest).toEqual(seen.slice(1));
    expect((await app.streams.list(run.id)).map(({ name, next }) => [name, next])).toEqual([["tokens", 2]]);
    const token = await app.streams.token(run.id, tokens, { ttl: "1h" });
    expect(await app.store.read.streamAccess(token)).toMatchObject({ run: run.id, stream: "tokens" });
    await expect(app.streams.token(run.id, tokens, { ttl: "soon" as never })).rejects.toThrow(/TAPE_BAD_INPUT/);
    await expect(run.stream(tokens, { from: -1 }).next()).rejects.toThrow(/TAPE_BAD_INPUT/);
    await expect(app.streams.read("none", tokens).next()).rejects.toThrow(/TAPE_RUN_NOT_FOUND/);
    const stop = AbortSignal.abort(new Error("enough"));
    await expect(run.stream(tokens, { signal: stop }).next()).rejects.toThrow(/enough/);
  });
});

describe("followRun", () => {
  const pay = effect("pay", () => "paid", { semantics: "idempotent" });
  const cfo = gate<boolean>("cfo");
  const agent = workflow("agent", async (tape) => {
    await tape.decide("first", async (d) => {
      await d.emit({ type: "reasoning", text: "hm" });
      await d.emit("pay it");
      await d.emit({ type: "tool-call", name: "pay" });
      d.record({ model: "m", usage: { output: 3 } });
      return 1;
    });
    await tape.gate(cfo, { payload: { usd: 7 } });
    await pay(undefined);
    await tape.decide("second", async (d) => void (await d.emit("done")));
    return "ok";
  });
  const whole = [
    ["turn-started", 0],
    "hm",
    "pay it",
    ["part", 0],
    ["turn-ended", 0],
    ["approval-wanted", 1],
    ["tool-call", 2],
    ["tool-result", 2],
    ["turn-started", 3],
    "done",
    ["turn-ended", 3],
    "ended",
  ];

  it("merges journal and stream, and each cursor resumes exactly after its event", async () => {
    await using app = await Tape.open({
      ...{ store: "memory:" as const, log: "silent" as const },
      runner: createRunner({ workflows: [agent], effects: [pay] }),
    });
    const run = await app.start(agent, undefined);
    const events: RunEvent[] = [];
    for await (const event of followRun(app, run.id)) {
      events.push(event);
      if (event.type === "approval-wanted") await app.signal(run.id, cfo, true);
    }
    expect(parts(events)).toEqual(whole);
    expect(events[4]).toMatchObject({ name: "first", value: 1, model: "m", usage: { output: 3 } });
    expect(events.at(-1)).toMatchObject({ status: "COMPLETED", outcome: "ok" });
    for (const [k, { cursor }] of events.entries()) {
      const rest: RunEvent[] = [];
      for await (const event of followRun(app, run.id, { after: cursor })) rest.push(event);
      const expected = whole.slice(k + 1);
      // A turn that began before the cursor is announced again: a new reader does not know it.
      const again = ["hm", "pay it", "part", "done"].includes(String([expected[0]].flat()[0])) ? 1 : 0;
      expect(parts(rest).slice(again)).toEqual(expected);
    }
    await expect(followRun(app, run.id, { after: "x" }).next()).rejects.toThrow(/TAPE_BAD_INPUT/);
    await expect(followRun(app, "none").next()).rejects.toThrow(/TAPE_RUN_NOT_FOUND/);
  });

  it("says that a turn starts again, so that the half turn is dropped", async () => {
    let show = (): void => {};
    const shown = new Promise<void>((resolve) => {
      show = resolve;
    });
    const flaky = workflow("flaky", (tape) =>
      tape.decide(
        "d",
        async (d) => {
          await d.emit(`try ${d.attempt}`);
          if (d.attempt === 1) {
            await shown;
            throw new Error("429");
          }
        },
        { retry: { attempts: 2, base: "1ms" } },
      ),
    );
    const app = await Tape.open({ store: "memory:", runner: createRunner({ workflows: [flaky] }), log: "silent" });
    onTestFinished(() => app.close());
    const run = await app.start(flaky, undefined);
    const events: RunEvent[] = [];
    for await (const event of followRun(app, run.id)) {
      events.push(event);
      if (event.type === "text") show();
    }
    expect(parts(events)).toEqual([
      ["turn-started", 0],
      "try 1",
      ["turn-reset", 0],
      ["turn-started", 0],
      "try 2",
      ["turn-ended", 0],
      "ended",
    ]); // prettier-ignore
  });
});
