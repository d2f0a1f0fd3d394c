import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { durableTool } from "../../src/agent/tool-call.ts";
import { Tape } from "../../src/host/tape.ts";
import { gate } from "../../src/sdk/gate.ts";
import { stream } from "../../src/sdk/stream.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { assistant, ScriptedModel, user } from "../agent/scripted.ts";
import { program, temporaryFolder } from "./stage.ts";

const add = gate<number, number>("add", { reply: true });
const sum = workflow("sum", async (tape) => {
  let total = 0;
  for (;;) {
    const request = await tape.gate(add);
    if (request.status !== "received") return total;
    total += request.value;
    tape.publish("total", total);
    request.reply(total);
    if (total >= 10) return total;
    if (total === 5) await tape.callback("paid").then((paid) => paid.result());
  }
});

describe("talking on the command line", () => {
  it("asks a run, prints what it has published, and follows it to the end", async () => {
    const store = `sqlite:${join(await temporaryFolder(), "tape.db")}`;
    const app = await Tape.open({ store, runner: createRunner({ workflows: [sum] }), log: "silent" });
    onTestFinished(() => app.close());
    await app.start(sum, null, { id: "sum-1" });
    const tape = (...args: string[]) => program(...args, "--store", store);
    expect(await tape("ask", "sum-1", "add", "--value", "4", "--key", "k")).toMatchObject({ code: 0, stdout: "4\n" });
    expect(JSON.parse((await tape("ask", "sum-1", "add", "--value", "9", "--key", "k", "-o", "json")).stdout)).toEqual({
      reply: 4,
    });
    const shown = JSON.parse((await tape("published", "sum-1", "-o", "json")).stdout) as object[];
    expect(shown).toMatchObject([{ name: "total", value: 4 }]);
    expect((await tape("published", "sum-1", "other")).stdout).toContain("nothing");
    expect((await tape("published", "none")).code).toBe(1);
    const watched = tape("watch", "sum-1", "total");
    expect(await app.ask("sum-1", add, 6)).toBe(10);
    expect((await watched).stdout).toMatch(/10\n$/);
    expect((await tape("ask", "sum-1", "add", "--value", "1")).stderr).toContain("TAPE_RUN_ENDED");
  });

  it("names a callback that a run waits for, and how long to wait for a reply", async () => {
    const store = `sqlite:${join(await temporaryFolder(), "tape.db")}`;
    const app = await Tape.open({ store, runner: createRunner({ workflows: [sum] }), log: "silent" });
    onTestFinished(() => app.close());
    const run = await app.start(sum, null, { id: "sum-2" });
    await app.ask(run.id, add, 5);
    await expect.poll(() => run.status()).toBe("WAITING");
    const tape = (...args: string[]) => program(...args, "--store", store);
    expect((await tape("inspect", "sum-2")).stdout).toMatch(/waits for callback paid, open for/);
    const late = await tape("ask", "sum-2", "add", "--value", "1", "--timeout", "50ms");
    expect([late.code, late.stderr]).toEqual([1, expect.stringContaining("TAPE_NO_REPLY")]);
  });

  it("lists the streams of a run, and prints one from an offset on", async () => {
    const store = `sqlite:${join(await temporaryFolder(), "tape.db")}`;
    const talk = workflow("talk", (step) =>
      step.step("say", async (d) => {
        for (const word of ["to", "be", "or not"]) await d.stream(stream("tokens")).write(word);
      }),
    );
    const app = await Tape.open({ store, runner: createRunner({ workflows: [talk] }), log: "silent" });
    onTestFinished(() => app.close());
    await (await app.start(talk, undefined, { id: "talk-1" })).result();
    const tape = (...args: string[]) => program(...args, "--store", store);
    expect(await tape("stream", "talk-1", "tokens", "--from", "1")).toMatchObject({ code: 0, stdout: "be\nor not\n" });
    const shown = JSON.parse((await tape("streams", "talk-1", "-o", "json")).stdout) as object[];
    expect(shown).toMatchObject([{ name: "tokens", next: 3 }]);
    expect((await tape("stream", "talk-1", "tokens", "--from", "x")).stderr).toContain("TAPE_BAD_INPUT");
    expect((await tape("streams", "none")).code).toBe(1);
  });

  it("prints the conversation of a run with its models, as text, as JSON and from a turn on", async () => {
    const store = `sqlite:${join(await temporaryFolder(), "tape.db")}`;
    const pay = durableTool("bank", "pay", () => "paid", { semantics: "idempotent" });
    const model = new ScriptedModel((k) =>
      k === 1
        ? { role: "assistant", parts: [{ type: "tool_call", id: "c1", name: "pay", input: { amount: 7 } }] }
        : assistant("it is paid"),
    );
    const chat = workflow("chat", async () => {
      const answer = await model.ask([user("pay the invoice")]);
      await pay.call({ call: "c1", input: { amount: 7 } });
      await model.ask([user("pay the invoice"), answer]);
    });
    const runner = createRunner({ workflows: [chat], effects: [pay.effect!] });
    const app = await Tape.open({ store, runner, log: "silent" });
    onTestFinished(() => app.close());
    await (await app.start(chat, undefined, { id: "chat-1" })).result();
    const tape = (...args: string[]) => program(...args, "--store", store);
    const { stdout } = await tape("conversation", "chat-1");
    expect(stdout).toContain("2 turns, 2 calls; 20 tokens in, 10 out");
    expect(stdout).toContain("user: pay the invoice");
    expect(stdout).toMatch(/pay c1 {2}.*amount.*\n {4}effect \d+ bank\.pay CONFIRMED, 1 attempts, token \d+/);
    expect(stdout).toContain("assistant: it is paid");
    const json = JSON.parse((await tape("conversation", "chat-1", "--from", "1", "-o", "json")).stdout) as object;
    expect(json).toMatchObject({ from: 1, turns: [{ agent: "clerk" }], sums: { turns: 2 } });
    expect((await tape("conversation", "chat-1", "--limit", "1")).stdout).toContain("more turns: --from 1");
    expect((await tape("conversation", "none")).code).toBe(1);
  });
});
