import { describe, expect, it } from "vitest";
import { makeFence } from "../../src/model/fence.ts";
import type { NewRecord } from "../../src/model/records.ts";
import { everything } from "../../testkit/conformance/holder.ts";
import { type McpStage, mcpStage, who } from "./stage.ts";

/** Opens gates of the held run; returns nothing, because the lists show them. */
async function openGates({ store, scene }: McpStage, ...gates: object[]): Promise<void> {
  const { journal, token, nonce } = scene.fence;
  const records = gates.map((gate, k) => ({ kind: "gate.opened", data: { pos: 10 + k, ...gate } })) as NewRecord[];
  const fence = makeFence("acme", journal, BigInt(token), BigInt(nonce));
  await store.fenced.append(fence, { after: scene.head, records });
}

const codeOf = async (call: Promise<{ isError: boolean; json: Record<string, unknown> }>) => {
  const { isError, json } = await call;
  return isError ? json.code : "done";
};

describe("tools that read", () => {
  it("find what needs an operator, and show it", async () => {
    const { call, scene, request } = await mcpStage();
    const runs = await call("list_runs", { inDoubt: true }, "reader");
    expect(runs.json).toMatchObject({ runs: [{ run: scene.inDoubt, workflow: "pay" }] });
    expect(JSON.parse(runs.text)).toEqual(runs.json);
    expect((await call("list_doubts", {}, "reader")).json).toMatchObject({
      effects: [{ run: scene.inDoubt, pos: 0, sub: 0, name: "wire", status: "UNKNOWN" }],
    });
    expect((await call("list_doubts", { run: scene.inDoubt }, "reader")).json).toMatchObject({
      effects: [{ runId: scene.inDoubt, observations: 0, evidence: [], effect: { name: "wire" } }],
    });
    expect((await call("list_gates", {}, "reader")).json.gates).toMatchObject([
      { run: scene.run, gate: "cfo", binds: null, payload: "canary", forAgents: false },
      { run: scene.talk, gate: "paid", callback: "json" },
    ]);
    const run = await call("get_run", { run: scene.run }, "reader");
    expect(run.json.run).toMatchObject({ id: scene.run, status: "RUNNING" });
    expect(run.json.records.map(({ kind }: { kind: string }) => kind)).toContain("gate.opened");
    expect((await call("explain_lease", { run: scene.run }, "reader")).json).toMatchObject({
      ...{ lease: { state: "HELD", label: "worker" }, terms: [{ label: "worker" }], earlierTerms: 0 },
    });
    expect((await call("explain_lease", { name: scene.lease }, "reader")).json).toMatchObject({
      lease: { state: "HELD" },
    });
    expect(await codeOf(call("explain_lease", {}, "reader"))).toBe("TAPE_BAD_INPUT");
    expect((await call("fork_plan", { run: scene.run }, "reader")).json).toMatchObject({ kept: expect.any(Array) });
    expect(await codeOf(call("get_run", { run: "ghost" }, "reader"))).toBe("TAPE_RUN_NOT_FOUND");
    const { resources } = (await request("resources/list", {}, "reader")) as { resources: { uri: string }[] };
    expect(resources.map(({ uri }) => uri)).toContain(`tape://runs/${scene.idle}`);
    const { contents } = (await request("resources/read", { uri: `tape://runs/${scene.idle}` }, "reader")) as {
      contents: [{ uri: string; text: string }];
    };
    expect(JSON.parse(contents[0].text)).toMatchObject({ run: { id: scene.idle }, records: [{ kind: "run.created" }] });
  });

  it("rebuild a conversation from the journal", async () => {
    const stage = await mcpStage();
    const { call, scene, store } = stage;
    const { journal, token, nonce } = scene.fence;
    const fence = makeFence("acme", journal, BigInt(token), BigInt(nonce));
    const message = (role: string, text: string) => ({ role, parts: [{ type: "text", text }] });
    const decided = {
      kind: "decision.made",
      data: {
        ...{ pos: 20, name: "agent 1", model: "openai/gpt", usage: { input: 7, output: 2 } },
        request: { messages: [message("user", "pay 7")], hash: "h" },
        value: { message: message("assistant", "paying"), hash: "h", finish: "tool-calls" },
      },
    };
    const plain = { kind: "decision.made", data: { pos: 21, name: "judge", value: "yes", rationale: "it fits" } };
    await store.fenced.append(fence, { after: scene.head, records: [decided, plain] as NewRecord[] });
    const { json } = await call("conversation", { run: scene.run }, "operator");
    expect(json).toMatchObject({ run: scene.run, sums: { turns: 2, input: 7, output: 2, models: ["openai/gpt"] } });
    expect(json.turns).toMatchObject([
      {
        n: expect.any(Number),
        model: "openai/gpt",
        messages: [message("user", "pay 7")],
        answer: message("assistant", "paying"),
      },
      { agent: "judge" },
    ]);
    const { json: hidden } = await call("conversation", { run: scene.run }, "reader");
    expect(hidden).toMatchObject({ hidden: true, sums: { turns: 2, input: 7 } });
    expect(JSON.stringify(hidden.turns)).not.toContain("pay 7");
    expect(await codeOf(call("conversation", { run: "ghost" }, "reader"))).toBe("TAPE_RUN_NOT_FOUND");
  });

  it("deliver everything in bounded pages, and a row that is too long in parts", async () => {
    const stage = await mcpStage();
    const long = { text: "é😀".repeat(40_000) };
    const gates = Array.from({ length: 60 }, (_, k) => ({
      name: `g-${k}`,
      payload: k === 5 ? long : { k, fill: "x".repeat(3_000) },
    }));
    await openGates(stage, ...gates);
    const { call, scene } = stage;
    const seen: { gate: string; payload: unknown }[] = [];
    let parts = "";
    let pages = 0;
    for (let cursor: string | undefined; pages < 100; ) {
      const { json, text } = await call(
        "list_gates",
        { run: scene.run, limit: 50, ...(cursor && { cursor }) },
        "reader",
      );
      pages++;
      expect(text.length).toBeLessThan(100_000);
      if (json.part !== undefined) parts += json.part.text;
      if (json.part !== undefined && json.part.from + json.part.text.length === json.part.chars)
        seen.push(JSON.parse(parts));
      seen.push(...(json.gates ?? []));
      if (json.next === undefined) break;
      cursor = json.next;
    }
    expect(seen.map(({ gate }) => gate)).toEqual(["cfo", ...gates.map(({ name }) => name)]);
    expect(seen[6]?.payload).toEqual(long);
    expect(pages).toBeGreaterThan(5);
    for (const cursor of ["x", "1~x", "~~", "9.9", `${"1".repeat(700)}`]) {
      expect(await codeOf(call("list_gates", { cursor }, "reader")), cursor).toBe("TAPE_BAD_INPUT");
      expect(await codeOf(call("get_run", { run: scene.run, cursor }, "reader")), cursor).toBe("TAPE_BAD_INPUT");
    }
    const kinds: string[] = [];
    let read = 0;
    for (let cursor: string | undefined; read < 100; read++) {
      const { json } = await call("get_run", { run: scene.run, ...(cursor && { cursor }) }, "reader");
      kinds.push(...(json.records ?? []).map(({ kind }: { kind: string }) => kind));
      if (json.next === undefined) break;
      cursor = json.next;
    }
    expect(kinds.filter((kind) => kind === "gate.opened")).toHaveLength(60); // of 61 one came in parts
    expect(read).toBeGreaterThan(3);
  });
});

describe("tools that start and signal", () => {
  it("start a run once, whatever is repeated, and audit it", async () => {
    const { call, store } = await mcpStage();
    const start = (more: object = {}) =>
      call("start_run", { run: "n-1", workflow: "pay", input: { day: 1 }, ...who, ...more }, "starter");
    expect((await start()).json).toMatchObject({ run: "n-1", started: true });
    expect((await start()).json).toMatchObject({ run: "n-1", started: false });
    expect(await codeOf(start({ input: 2 }))).toBe("TAPE_RUN_CONFLICT");
    expect(await codeOf(start({ by: undefined }))).toBe("TAPE_BAD_INPUT");
    expect(await codeOf(start({ reason: "" }))).toBe("TAPE_BAD_INPUT");
    const audit = await store.read.audit("acme");
    expect(audit.filter(({ action }) => action === "run.start")).toMatchObject([
      { by: "starter of acme for ada", reason: "a test", detail: { run: "n-1", fresh: false } },
      { via: { token: "acme-starter", channel: "mcp" }, detail: { run: "n-1", fresh: true } },
    ]);
  });

  it("wait for a run at most as long as requested", async () => {
    const { call, scene } = await mcpStage();
    const { json } = await call("await_run", { run: scene.run, timeoutMs: 20 }, "starter");
    expect(json).toMatchObject({ run: scene.run, status: "RUNNING", ended: false });
    expect((await call("await_run", { run: scene.stuck, timeoutMs: 60_000 }, "starter")).json.status).toBe("STUCK");
    expect(await codeOf(call("await_run", { run: scene.run, timeoutMs: 60_001 }, "starter"))).toBe("TAPE_BAD_INPUT");
  });

  it("signal only gates that are open and for agents", async () => {
    const stage = await mcpStage();
    const { call, scene, store } = stage;
    await openGates(stage, { name: "triage", approvers: { agents: true } }, { name: "boss" });
    const signal = (gate: string, value: unknown = "billing") =>
      call("signal", { run: scene.run, gate, value, ...who }, "starter");
    const before = await everything(store, "acme");
    expect(await codeOf(signal("boss"))).toBe("TAPE_NOT_APPROVER");
    expect(await codeOf(signal("cfo"))).toBe("TAPE_NOT_APPROVER");
    expect(await codeOf(signal("later"))).toBe("TAPE_GATE_STALE");
    expect(await everything(store, "acme")).toBe(before);
    expect((await signal("triage")).json).toMatchObject({ sent: { duplicate: false } });
    expect(await codeOf(signal("triage", "again"))).toBe("TAPE_GATE_STALE");
    const notes = await store.read.journal("acme", { run: scene.run }, { inbox: true });
    expect(notes).toMatchObject([{ data: { name: "triage", value: "billing", by: "starter of acme for ada" } }]);
    expect((await store.read.audit("acme"))[0]).toMatchObject({
      ...{ action: "run.signal", by: "starter of acme for ada", reason: "a test", via: { channel: "mcp" } },
    });
  });
});

describe("tools of operators", () => {
  it("answer a gate only with the binds that it has, and not for the token that started the run", async () => {
    const stage = await mcpStage();
    const { call, scene, store } = stage;
    const own = await call("start_run", { run: "own-1", workflow: "pay", ...who }, "operator");
    expect(own.json.started).toBe(true);
    await openGates(stage, { name: "boss", binds: "call-1", payload: { amount: 7 } });
    const answer = (binds: string | null, more: object = {}) =>
      call("answer_gate", { run: scene.run, gate: "boss", binds, value: { ok: true }, ...who, ...more }, "operator");
    const before = await everything(store, "acme");
    expect(await codeOf(answer("call-0"))).toBe("TAPE_GATE_STALE");
    expect(await codeOf(answer(null))).toBe("TAPE_GATE_STALE");
    expect(await codeOf(answer("call-1", { run: "own-1" }))).toBe("TAPE_SELF_APPROVAL");
    const without = { run: scene.run, gate: "boss", value: 1, ...who };
    expect(await codeOf(call("answer_gate", without, "operator"))).toBe("TAPE_BAD_INPUT");
    expect(await everything(store, "acme")).toBe(before);
    expect((await answer("call-1")).json).toMatchObject({ sent: { duplicate: false } });
    expect(await codeOf(answer("call-1"))).toBe("TAPE_GATE_STALE");
    expect((await store.read.audit("acme"))[0]).toMatchObject({
      ...{ action: "run.signal", by: "operator of acme for ada", reason: "a test" },
      via: { token: "acme-operator", role: "operator", channel: "mcp" },
    });
  });

  it("resolve, redrive, cancel and fork, each audited as by mcp", async () => {
    const { call, scene, store } = await mcpStage();
    const done = async (tool: string, args: object) =>
      expect(await codeOf(call(tool, { ...args, ...who }))).toBe("done");
    await done("resolve_effect", { run: scene.inDoubt, pos: 0, as: "confirmed", value: { receipt: 7 } });
    await done("redrive", { run: scene.stuck });
    await done("fork", { run: scene.idle, id: "fork-1" });
    await done("fork", { run: scene.idle, id: "fork-1" });
    await done("cancel_run", { run: scene.idle });
    const entries = (await store.read.audit("acme")).filter(({ by }) => by === "operator of acme for ada");
    expect(new Set(entries.map(({ action }) => action))).toEqual(new Set(["resolve", "redrive", "fork", "run.cancel"]));
    for (const { via, reason } of entries)
      expect({ via, reason }).toMatchObject({ via: { channel: "mcp" }, reason: "a test" });
    const resolved = await store.read.journal("acme", { journal: scene.item });
    expect(resolved.find(({ kind }) => kind === "operator.action")?.data).toMatchObject({
      ...{ action: "resolve", detail: { as: "confirmed", value: { receipt: 7 } } },
    });
    expect(await codeOf(call("redrive", { run: "ghost", ...who }))).toBe("TAPE_RUN_NOT_FOUND");
  });

  it("a call over HTTP is not marked as one by mcp", async () => {
    const { scene, store, server } = await mcpStage();
    const { ask } = await import("../server/stage.ts");
    const token = `acme-operator.${"x".repeat(43)}`;
    const path = `/v1/runs/${scene.stuck}/redrive`;
    expect((await ask(server.exchange, "POST", path, { token, body: { reason: "by hand" } })).status).toBe(200);
    const [entry] = await store.read.audit("acme");
    expect(entry?.via).not.toHaveProperty("channel");
  });
});
