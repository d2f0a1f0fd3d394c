import { describe, expect, it } from "vitest";
import { effect } from "../../src/sdk/effect.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { heldLeases, onEachStore, pushStage } from "./stage.ts";

const hello = workflow("hello", async (tape, name: string) => tape.step("greet", () => `hello ${name}`));
const send = effect("send", async (what: string) => `sent ${what}`, { dispatch: "outbox", allowUnsafe: "a test" });
const order = workflow("order", async (tape, what: string) => tape.effect(send.with(what)));
const nap = workflow("nap", async (tape, ms: number) => {
  await tape.sleep(ms);
  return "rested";
});
const runner = createRunner({ workflows: [hello, order, nap], effects: [send] });

describe("app.react", () => {
  onEachStore("drives runs, and says whether there are more", async (stage) => {
    const app = await stage.app(runner);
    for (const id of ["a", "b", "c"]) await app.start(hello, id, { id });
    const first = await app.react("recovery", { limit: 2 });
    expect(first).toMatchObject({ found: 2, done: 2, failed: 0, more: true, surrendered: [] });
    expect(await app.react("recovery", { limit: 2 })).toMatchObject({ found: 1, more: false });
    expect(await app.react("recovery", { limit: 2 })).toMatchObject({ found: 0, more: false });
    for (const id of ["a", "b", "c"]) expect(await (await app.run(id)).result()).toBe(`hello ${id}`);
    expect(await heldLeases(stage.store)).toEqual([]);
  });

  onEachStore("takes a run through outbox, recovery and timers, one call each", async (stage) => {
    const app = await stage.app(runner);
    await app.start(order, "tea", { id: "o" });
    await app.start(nap, 1, { id: "n" });
    expect(await app.react("recovery")).toMatchObject({ found: 2, done: 2 });
    expect(await app.react("outbox")).toMatchObject({ found: 1, done: 1 });
    for (let fired = 0; fired === 0; ) fired = (await app.react("timers")).found;
    for (let found = 2; found > 0; ) found -= (await app.react("recovery")).found;
    expect(await (await app.run("o")).result()).toBe("sent tea");
    expect(await (await app.run("n")).result()).toBe("rested");
    expect(await heldLeases(stage.store)).toEqual([]);
  });

  onEachStore("releases a run that does not finish in time: another process continues it", async (stage) => {
    let release = (): void => {};
    let started = 0;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const slow = workflow("slow", async (tape) =>
      tape.step("wait", async () => {
        started++;
        if (started === 1) await held;
        return started;
      }),
    );
    const app = await stage.app(createRunner({ workflows: [slow] }));
    const other = await stage.app(createRunner({ workflows: [slow] }));
    await app.start(slow, undefined, { id: "s" });
    // Its body hangs, so it is released where it is.
    expect(await app.react("recovery", { within: 100 })).toMatchObject({
      found: 1,
      done: 0,
      failed: 1,
      surrendered: ["s"],
    });
    expect(await heldLeases(stage.store)).toEqual([]);
    expect(await other.react("recovery")).toMatchObject({ found: 1, done: 1 });
    release();
    expect(await (await app.run("s")).result()).toBe(2);
  });

  it("releases what is in progress when the caller has gone", async () => {
    const stage = await pushStage();
    const gone = new AbortController();
    let started = 0;
    const slow = workflow("slow", async (tape) =>
      tape.step("wait", async () => {
        if (++started > 1) return "done";
        gone.abort();
        return new Promise<string>(() => {});
      }),
    );
    const app = await stage.app(createRunner({ workflows: [slow] }));
    await app.start(slow, undefined, { id: "s" });
    const counts = await app.react("recovery", { signal: gone.signal, within: 200 });
    expect(counts).toMatchObject({ found: 1, surrendered: ["s"] });
    expect(await app.react("recovery")).toMatchObject({ found: 1, done: 1 });
  });

  it("does not load runs ahead of their timers, for which a request would wait", async () => {
    const stage = await pushStage();
    const app = await stage.app(runner);
    await app.start(nap, 900, { id: "n" });
    expect(await app.react("recovery")).toMatchObject({ found: 1 });
    expect(await app.react("recovery")).toMatchObject({ found: 0 });
    expect(await heldLeases(stage.store)).toEqual([]);
  });

  it("two calls at once claim each item once", async () => {
    const stage = await pushStage();
    let calls = 0;
    const ping = effect("ping", async (_: number) => ++calls, { dispatch: "outbox", allowUnsafe: "a test" });
    const flow = workflow("flow", async (tape) => tape.effect(ping.with(1)));
    const app = await stage.app(createRunner({ workflows: [flow], effects: [ping] }));
    for (let k = 0; k < 5; k++) await app.start(flow, undefined, { id: `f${k}` });
    await app.react("recovery");
    const both = await Promise.all([app.react("outbox"), app.react("outbox")]);
    expect(both.reduce((sum, { found }) => sum + found, 0)).toBe(5);
    expect(calls).toBe(5);
  });

  it("rejects an unknown reactor and options out of bounds, and ends with the app", async () => {
    const stage = await pushStage();
    const app = await stage.app(runner);
    await expect(app.react("recover")).rejects.toThrow("did you mean recovery?");
    await expect(app.react("recovery", { limit: 0 })).rejects.toThrow("limit is a whole number from 1 to 1000");
    await expect(app.react("recovery", { within: "soon" as never })).rejects.toThrow("within");
    await expect(app.react("recovery", { withn: 5 } as never)).rejects.toThrow("withn");
    await app.close();
    await expect(app.react("recovery")).rejects.toMatchObject({ code: "TAPE_STORE_CLOSED" });
  });
});
