import { describe, expect, it } from "vitest";
import type { Role } from "../../src/protocol/route.ts";
import { everything } from "../../testkit/conformance/holder.ts";
import { giveTokens } from "../server/scene.ts";
import { type McpStage, mcpStage, who } from "./stage.ts";

/** Written down by hand once more: which tools exist for whom must not follow from the code that is tested. */
const readers = ["list_runs", "get_run", "conversation", "list_gates", "list_doubts", "explain_lease", "fork_plan"];
const starters = [...readers, "start_run", "await_run", "signal"];
const operators = [...starters, "answer_gate", "resolve_effect", "redrive", "cancel_run", "fork"];
const listed: Readonly<Record<Role, readonly string[]>> = {
  ...{ reader: readers, starter: starters, worker: starters, operator: operators, admin: operators },
};

/** Arguments that are valid, for each tool. */
const argsFor = ({ scene }: Pick<McpStage, "scene">): Readonly<Record<string, object>> =>
  Object.fromEntries([
    ["list_runs", {}],
    ["get_run", { run: scene.run }],
    ["conversation", { run: scene.run }],
    ["list_gates", { run: scene.run }],
    ["list_doubts", { run: scene.inDoubt }],
    ["explain_lease", { run: scene.run }],
    ["fork_plan", { run: scene.run }],
    ["start_run", { run: "new-1", workflow: "pay", ...who }],
    ["await_run", { run: scene.run, timeoutMs: 0 }],
    ["signal", { run: scene.run, gate: "cfo", value: 1, ...who }],
    ["answer_gate", { run: scene.run, gate: "cfo", binds: null, value: 1, ...who }],
    ["resolve_effect", { run: scene.inDoubt, pos: 0, as: "failed", error: "no", ...who }],
    ["redrive", { run: scene.stuck, ...who }],
    ["cancel_run", { run: scene.idle, ...who }],
    ["fork", { run: scene.idle, id: "fork-1", ...who }],
  ]);

describe("the role of the token", () => {
  it("decides which tools are listed, and refuses and audits all others", async () => {
    const stage = await mcpStage();
    const args = argsFor(stage);
    expect(Object.keys(args)).toEqual(operators);
    const before = await everything(stage.store, "acme");
    let refused = 0;
    for (const role of Object.keys(listed) as Role[]) {
      const { tools } = (await stage.request("tools/list", {}, role)) as { tools: { name: string }[] };
      expect(
        tools.map(({ name }) => name),
        role,
      ).toEqual(listed[role]);
      for (const name of operators.filter((tool) => !listed[role].includes(tool))) {
        refused++;
        await expect(stage.call(name, args[name]!, role), `${role} ${name}`).rejects.toMatchObject({
          ...{
            code: -32_602,
            data: { code: "TAPE_FORBIDDEN", needs: starters.includes(name) ? "starter" : "operator" },
          },
        });
      }
    }
    expect(refused).toBe(8 + 5 + 5);
    // A refusal is written after its response.
    const refusals = async () =>
      (await stage.store.read.audit("acme")).filter(({ action }) => action === "call.refused");
    while ((await refusals()).length < refused) await new Promise((soon) => setImmediate(soon));
    expect((await refusals())[0]).toMatchObject({
      action: "call.refused",
      detail: { route: expect.stringMatching(/^mcp /) },
    });
    expect(await everything(stage.store, "acme")).toBe(before);
  });

  it("marks tools that change something, and those that may destroy", async () => {
    const { request } = await mcpStage();
    const { tools } = (await request("tools/list")) as {
      tools: { name: string; annotations: { readOnlyHint: boolean; destructiveHint?: boolean }; inputSchema: object }[];
    };
    const named = (test: (hints: (typeof tools)[number]["annotations"]) => boolean) =>
      tools.filter(({ annotations }) => test(annotations)).map(({ name }) => name);
    expect(named(({ readOnlyHint }) => readOnlyHint)).toEqual([...readers, "await_run"]);
    expect(named(({ destructiveHint }) => destructiveHint === true)).toEqual([
      ...["answer_gate", "resolve_effect", "cancel_run", "fork"],
    ]);
    for (const { name, inputSchema, annotations } of tools) {
      const { required = [] } = inputSchema as { required?: string[] };
      if (!annotations.readOnlyHint) expect(required, name).toEqual(expect.arrayContaining(["by", "reason"]));
    }
  });

  it("shows another tenant's runs exactly like runs that do not exist", async () => {
    const stage = await mcpStage();
    await giveTokens(stage.store, "globex");
    const { scene } = stage;
    const before = await everything(stage.store, "acme");
    const ghost = { ...scene, run: "ghost-pay", inDoubt: "ghost-doubt", stuck: "ghost-stuck", idle: "ghost-idle" };
    const plain = (text: string) => text.replaceAll(/(canary|ghost)-/g, "NAME-");
    for (const [name, args] of Object.entries(argsFor(stage))) {
      if (name === "start_run") continue;
      const foreign = await stage.call(name, args, "admin", "globex");
      const absent = await stage.call(name, argsFor({ scene: ghost })[name]!, "admin", "globex");
      expect([name, plain(foreign.text)]).toEqual([name, plain(absent.text)]);
      expect(foreign.text).not.toContain('canary"');
    }
    expect(await everything(stage.store, "acme")).toBe(before);
    const own = await stage.call("start_run", { run: scene.run, workflow: "pay", ...who }, "admin", "globex");
    expect(own.json).toMatchObject({ run: scene.run, started: true });
    for (const uri of [`tape://runs/${scene.idle}`, "tape://runs/ghost"]) {
      const { json } = await stage.post({ jsonrpc: "2.0", id: 1, method: "resources/read", params: { uri } }, "admin", {
        tenant: "globex",
      });
      expect(json).toMatchObject({ error: { code: -32_002 } });
    }
  });

  it("is refused without a token, or with a wrong one", async () => {
    const { server } = await mcpStage();
    for (const authorization of [undefined, "Bearer acme-admin.wrong", `Bearer no-one.${"x".repeat(43)}`]) {
      const body = new TextEncoder().encode(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }));
      const { status, headers } = await server.exchange({
        ...{ method: "POST", url: "/mcp", body },
        headers: { "content-type": "application/json", ...(authorization !== undefined && { authorization }) },
      });
      expect([status, headers["www-authenticate"]]).toEqual([401, "Bearer"]);
    }
  });
});
