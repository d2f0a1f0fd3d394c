import { describe, expect, it } from "vitest";
import { z } from "zod";
import { seededRandom } from "../../src/base/random.ts";
import { type AskOptions, Talk } from "../../src/host/talk.ts";
import { fork } from "../../src/operator/fork.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { gate, type ReplyGate } from "../../src/sdk/gate.ts";
import type { Callback } from "../../src/sdk/talk.ts";
import { type AnyWorkflow, workflow } from "../../src/sdk/workflow.ts";
import { checkProjection } from "../../testkit/projection.ts";
import { type Process, type Stage, stage, tenant } from "./stage.ts";

const flow = (name: string, run: (tape: TapeContext, input: never) => unknown): AnyWorkflow =>
  workflow(name, run as never) as unknown as AnyWorkflow;
const waiting = (s: Stage, p: Process, id: string) => p.until(async () => (await s.run(id)).status === "WAITING");

const add = gate<number, { total: number }>("add", { schema: z.number().max(100), reply: true });
/** Adds up what it is requested to, until it is requested for zero; rejects what is negative. */
const cart = flow("cart", async (tape) => {
  for (let total = 0; ; ) {
    const request = await tape.gate(add);
    if (request.status !== "received") return total;
    if (request.value < 0) {
      request.reject(new RangeError("negative"));
      continue;
    }
    total += request.value;
    tape.publish("total", total);
    if (request.value === 0) return total;
    request.reply({ total });
  }
});

function asker(s: Stage, p: Process) {
  const talk = new Talk({ store: s.store, tenant, clock: s.clock, random: seededRandom("asker") });
  return async (id: string, value: number, options: AskOptions = {}): Promise<unknown> => {
    let over = false;
    const requested = talk.ask(id, add, value, options).finally(() => {
      over = true;
    });
    requested.catch(() => {});
    await p.until(() => over);
    return requested;
  };
}

describe("published values", () => {
  it("are read while the run is parked, with no process alive, and replay publishes nothing again", async () => {
    const s = await stage();
    const steady = flow("steady", async (tape) => {
      tape.publish("progress", { page: 1 });
      await tape.step("read", () => 1);
      tape.publish("progress", { page: 2 });
      await tape.gate(gate("go"));
      tape.publish("done", true);
    });
    const p = s.process([steady]);
    const id = await p.start(steady);
    await waiting(s, p, id);
    p.crash();
    expect(await s.store.read.published(tenant, id)).toMatchObject([{ name: "progress", value: { page: 2 } }]);
    const before = (await s.kinds(id)).filter((kind) => kind === "state.published");
    expect(before).toHaveLength(2);
    await s.store.intake.signal(tenant, id, { name: "go", value: 1 });
    const q = s.process([steady]);
    expect((await q.over(id)).status).toBe("COMPLETED");
    expect((await s.kinds(id)).filter((kind) => kind === "state.published")).toHaveLength(3);
    expect((await s.store.read.published(tenant, id)).map(({ name }) => name)).toEqual(["done", "progress"]);
  });

  it("are checked at the call: a bad one throws there, and the run continues", async () => {
    const s = await stage({ limits: { publishedNames: 2, payloadBytes: 2_000 } });
    const codeOf = (work: () => void): string => {
      try {
        work();
        return "none";
      } catch (error) {
        return (error as { code: string }).code;
      }
    };
    const strict = flow("strict", async (tape) => {
      const codes = [
        codeOf(() => tape.publish("a", () => 1)),
        codeOf(() => tape.publish("a", "x".repeat(4_000))),
        codeOf(() => tape.publish("", 1)),
        codeOf(() => tape.publish("n".repeat(600), 1)),
      ];
      for (const name of ["a", "b", "a"]) tape.publish(name, 1);
      codes.push(codeOf(() => tape.publish("c", 1)));
      codes.push(await tape.step("nested", () => codeOf(() => tape.publish("a", 2))));
      await tape.sleep("1s");
      return codes;
    });
    const p = s.process([strict]);
    const id = await p.start(strict);
    const { status, outcome } = await p.over(id);
    const large = "TAPE_TOO_LARGE";
    expect([status, outcome]).toEqual([
      "COMPLETED",
      ["TAPE_NOT_ENCODABLE", large, "TAPE_BAD_INPUT", large, large, "TAPE_NESTED"],
    ]);
    expect((await s.kinds(id)).filter((kind) => kind === "state.published")).toHaveLength(3);
  });
});

describe("requests", () => {
  it("get their reply; the same key gets the same reply, also long after the end", async () => {
    const s = await stage();
    const p = s.process([cart]);
    const ask = asker(s, p);
    const id = await p.start(cart);
    await waiting(s, p, id);
    expect(await ask(id, 5, { key: "k-1" })).toEqual({ total: 5 });
    expect(await ask(id, 7, { key: "k-2" })).toEqual({ total: 12 });
    expect(await ask(id, 99, { key: "k-1" })).toEqual({ total: 5 });
    await expect(ask(id, -1, { key: "k-3" })).rejects.toMatchObject({
      code: "TAPE_ASK_REJECTED",
      cause: { name: "RangeError", message: "negative" },
    });
    await expect(ask(id, 0)).rejects.toMatchObject({ code: "TAPE_RUN_ENDED", details: { status: "COMPLETED" } });
    await expect(ask(id, 1)).rejects.toMatchObject({ code: "TAPE_RUN_ENDED", cause: 12 });
    expect(await ask(id, 1, { key: "k-2" })).toEqual({ total: 12 });
    await expect(ask(id, 1, { key: "k-3" })).rejects.toMatchObject({ code: "TAPE_ASK_REJECTED" });
    await expect(ask("none", 1)).rejects.toMatchObject({ code: "TAPE_RUN_NOT_FOUND" });
    expect((await s.run(id)).outcome).toBe(12);
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("that time out change nothing: the run answers later, once", async () => {
    const s = await stage();
    const p = s.process([cart]);
    const id = await p.start(cart);
    await waiting(s, p, id);
    const talk = new Talk({ store: s.store, tenant, clock: s.clock, random: seededRandom("asker") });
    const hurried = talk.ask(id, add, 4, { key: "k", timeout: "10s" });
    hurried.catch(() => {});
    p.crash();
    for (let k = 0; k < 12; k++) await s.clock.elapse(1_000);
    await expect(hurried).rejects.toMatchObject({ code: "TAPE_NO_REPLY", details: { run: id, n: 1 } });
    const q = s.process([cart]);
    expect(await asker(s, q)(id, 4, { key: "k" })).toEqual({ total: 4 });
    expect(await s.notes(id)).toHaveLength(1);
    expect((await s.kinds(id)).filter((kind) => kind === "reply.sent")).toHaveLength(1);
  });

  it("that do not fit the schema are refused at the sender, and else in the run", async () => {
    const s = await stage();
    const p = s.process([cart]);
    const ask = asker(s, p);
    const id = await p.start(cart);
    await waiting(s, p, id);
    await expect(ask(id, 1_000)).rejects.toMatchObject({ code: "TAPE_BAD_GATE_VALUE" });
    expect(await s.notes(id)).toHaveLength(0);
    const loose = { ...add, schema: undefined } as ReplyGate<number, unknown>;
    const talk = new Talk({ store: s.store, tenant, clock: s.clock, random: seededRandom("asker") });
    let over = false;
    const requested = talk.ask(id, loose, 1_000).finally(() => {
      over = true;
    });
    requested.catch(() => {});
    await p.until(() => over);
    await expect(requested).rejects.toMatchObject({ code: "TAPE_BAD_GATE_VALUE" });
    expect(await ask(id, 1)).toEqual({ total: 1 });
    const plain = gate<number>("add") as ReplyGate<number, unknown>;
    await expect(talk.ask(id, plain, 1)).rejects.toMatchObject({ code: "TAPE_BAD_INPUT", details: { field: "gate" } });
  });
});

describe("a start with signals", () => {
  it("starts the run, or sends them to the one that lives", async () => {
    const s = await stage();
    const message = gate<string>("message");
    const chat = flow("chat", async (tape) => {
      const texts: unknown[] = [];
      while (texts.length < 3) {
        const answer = await tape.gate(message);
        texts.push(answer.status === "received" && answer.value);
      }
      return texts;
    });
    const p = s.process([chat]);
    const send = (value: string) => ({ id: "chat-7", signals: [{ name: "message", value, key: value }] });
    await p.start(chat, "first", send("a"));
    await waiting(s, p, "chat-7");
    await p.start(chat, "second", send("b"));
    await p.start(chat, "third", send("b"));
    await p.start(chat, "third", send("c"));
    expect((await p.over("chat-7")).outcome).toEqual(["a", "b", "c"]);
    await expect(p.start(chat, "late", send("d"))).rejects.toMatchObject({ code: "TAPE_RUN_ENDED" });
    await p.start(chat, "late", send("a"));
  });
});

describe("a child call", () => {
  it("returns the child's result, and throws its failure", async () => {
    const s = await stage();
    const half = workflow("half", async (_tape, n: number) => {
      if (n % 2 === 1) throw new Error("odd");
      return n / 2;
    });
    const parent = flow("parent", async (tape) => {
      const value = await tape.call(half, 8);
      const failure = await tape.call(half, 3).catch((error: { code: string }) => error.code);
      return [value, failure];
    });
    const p = s.process([parent, half as unknown as AnyWorkflow]);
    expect((await p.over(await p.start(parent))).outcome).toEqual([4, "TAPE_RUN_FAILED"]);
  });
});

describe("callbacks", () => {
  const hooks: string[] = [];
  const pays = flow("pays", async (tape) => {
    const hook: Callback<{ receipt: number }> = await tape.callback("paid", { timeout: "2d" });
    await tape.step("charge", () => {
      hooks.push(hook.token);
    });
    const answer = await hook.result();
    hooks.push(hook.token);
    return answer;
  });
  const lastToken = () => hooks.at(-1)!;

  it("are opened by their token alone, which is the same on replay and not in the journal", async () => {
    const s = await stage();
    const p = s.process([pays]);
    const id = await p.start(pays);
    await waiting(s, p, id);
    const token = lastToken();
    p.crash();
    await s.store.intake.signal(tenant, id, { name: "paid", value: "forged" });
    const q = s.process([pays]);
    await q.until(async () => (await s.run(id)).status === "WAITING");
    expect(await s.store.intake.deliver(tenant, token, { value: { receipt: 7 } })).toEqual({ duplicate: false });
    expect((await q.over(id)).outcome).toEqual({ status: "received", value: { receipt: 7 } });
    expect(lastToken()).toBe(token);
    expect(await s.store.intake.deliver(tenant, token, { value: 8 })).toEqual({ duplicate: true });
    const text = JSON.stringify([await s.records(id), await s.notes(id)], (_key, value: unknown) =>
      typeof value === "bigint" ? String(value) : value,
    );
    expect(text).not.toContain(token.split(".")[2]);
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("that come before the code waits are kept; those after the time-out are not found", async () => {
    const s = await stage();
    const early = flow("early", async (tape) => {
      const [first, second] = [await tape.callback("a"), await tape.callback("b", { raw: true, timeout: "1h" })];
      hooks.push(first.token, second.token);
      await tape.gate(gate("go"));
      const result = await first.result();
      expect(() => first.url).toThrow(/TAPE_NO_PUBLIC_URL/);
      return [result, await second.result()];
    });
    const p = s.process([early]);
    const id = await p.start(early);
    await waiting(s, p, id);
    const [first, second] = hooks.slice(-2) as [string, string];
    await s.store.intake.deliver(tenant, first, { value: "soon" });
    await s.store.intake.signal(tenant, id, { name: "go", value: 1 });
    await p.until(async () => (await s.kinds(id)).includes("gate.resolved"));
    await waiting(s, p, id);
    await s.clock.elapse(3_600_000);
    expect((await p.over(id)).outcome).toEqual([{ status: "received", value: "soon" }, { status: "timeout" }]);
    await expect(s.store.intake.deliver(tenant, second, { value: 1 })).rejects.toMatchObject({
      code: "TAPE_NOT_FOUND",
    });
  });
});

describe("a fork", () => {
  it("keeps requests, replies and callbacks, unless what happened in between runs again", async () => {
    const s = await stage();
    const tokens: string[] = [];
    const order = flow("order", async (tape) => {
      const hook = await tape.callback<number>("paid");
      tokens.push(hook.token);
      const request = await tape.gate(add);
      if (request.status === "received") request.reply({ total: request.value });
      const paid = await hook.result();
      return [request.status, paid, await tape.step("book", () => "booked")];
    });
    const p = s.process([order]);
    const id = await p.start(order, null, { id: "first" });
    await waiting(s, p, id);
    expect(await asker(s, p)(id, 3)).toEqual({ total: 3 });
    await s.store.intake.deliver(tenant, tokens[0]!, { value: 9 });
    const { outcome } = await p.over(id);
    const deps = { store: s.store, keeper: p.keeper, tenant, clock: s.clock, random: seededRandom("fork") };
    const request = { by: "ada", reason: "a test", id: "copy" };
    await expect(fork(deps, id, { ...request, at: 1 })).rejects.toMatchObject({
      code: "TAPE_BAD_FORK_POINT",
      details: { pos: 0 },
    });
    await fork(deps, id, { ...request, at: 3 });
    expect((await p.over("copy")).outcome).toEqual(outcome);
    expect(await s.store.read.reply(tenant, "copy", 1)).toBeUndefined();
    expect(tokens.at(-1)).not.toBe(tokens[0]);
  });
});
