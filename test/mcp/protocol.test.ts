import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assumedVersion, latestVersion, protocolVersions } from "../../src/mcp/versions.ts";
import { mcpStage } from "./stage.ts";

const initialize = (protocolVersion: unknown) => ({
  ...{ jsonrpc: "2.0", id: 1, method: "initialize" },
  params: { protocolVersion, capabilities: {}, clientInfo: { name: "test", version: "1" } },
});

describe("the protocol", () => {
  it("negotiates the client's version, and offers the newest for any other", async () => {
    const { post } = await mcpStage();
    for (const version of protocolVersions) {
      const { json } = await post(initialize(version), "reader", { headers: {} });
      expect(json).toMatchObject({ id: 1, result: { protocolVersion: version, serverInfo: { name: "durable-tape" } } });
    }
    for (const other of ["2024-11-05", "2030-01-01", ""]) {
      expect((await post(initialize(other))).json).toMatchObject({ result: { protocolVersion: latestVersion } });
    }
    expect((await post(initialize(7))).json).toMatchObject({ error: { code: -32_602 } });
  });

  it("answers messages as written here", async () => {
    const { post } = await mcpStage();
    const data = { code: "TAPE_BAD_INPUT" };
    const exchanged: readonly (readonly [sent: unknown, status: number, answer: unknown])[] = [
      [{ jsonrpc: "2.0", id: "a", method: "ping" }, 200, { jsonrpc: "2.0", id: "a", result: {} }],
      [{ jsonrpc: "2.0", method: "notifications/initialized" }, 202, ""],
      [{ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 7 } }, 202, ""],
      [{ jsonrpc: "2.0", id: 4, result: {} }, 202, ""],
      [
        { jsonrpc: "2.0", id: 2, method: "prompts/list" },
        200,
        { jsonrpc: "2.0", id: 2, error: { code: -32_601, message: "no method prompts/list" } },
      ],
      [
        { jsonrpc: "2.0", id: 3, method: "tools/call", params: { name: "nope" } },
        200,
        { jsonrpc: "2.0", id: 3, error: { code: -32_602, message: "no tool nope" } },
      ],
      [
        { jsonrpc: "2.0", id: null, method: "ping" },
        400,
        {
          jsonrpc: "2.0",
          id: null,
          error: { code: -32_600, message: "id must be a short string or an integer", data },
        },
      ],
      [
        { id: 5, method: "ping" },
        200,
        {
          jsonrpc: "2.0",
          id: 5,
          error: { code: -32_600, message: 'a message is an object with jsonrpc: "2.0"', data },
        },
      ],
      [
        { jsonrpc: "2.0", id: 6, method: "ping", params: [1] },
        200,
        { jsonrpc: "2.0", id: 6, error: { code: -32_600, message: "params must be an object", data } },
      ],
      [
        { jsonrpc: "2.0", id: 8, method: "logging/setLevel", params: { level: "info" } },
        200,
        { jsonrpc: "2.0", id: 8, result: {} },
      ],
      [
        { jsonrpc: "2.0", id: 9, method: "tools/list", params: { cursor: "x" } },
        200,
        { jsonrpc: "2.0", id: 9, error: { code: -32_602, message: "cursor: not one of this list" } },
      ],
      [
        { jsonrpc: "2.0", id: 10, method: "resources/read", params: { uri: "tape://runs/ghost" } },
        200,
        {
          ...{ jsonrpc: "2.0", id: 10 },
          error: { code: -32_002, message: "no such resource", data: { uri: "tape://runs/ghost" } },
        },
      ],
    ];
    for (const [sent, status, answer] of exchanged) {
      const reply = await post(sent);
      expect([sent, reply.status, reply.json]).toEqual([sent, status, answer]);
    }
    const level = { jsonrpc: "2.0", id: 1, method: "logging/setLevel", params: { level: "loud" } };
    expect((await post(level)).json).toMatchObject({ error: { code: -32_602 } });
  });

  it("lists the tools as written in golden/tools-list.golden", async () => {
    const { request } = await mcpStage();
    const text = `${JSON.stringify(await request("tools/list", {}, "admin"), null, 2)}\n`;
    await expect(text).toMatchFileSnapshot("golden/tools-list.golden");
  });

  it("has batches in the oldest version alone, with a bound", async () => {
    const { post } = await mcpStage();
    const ping = (id: number) => ({ jsonrpc: "2.0", id, method: "ping" });
    const oldest = { headers: { "mcp-protocol-version": "2025-03-26" } };
    const both = await post(
      [ping(1), { jsonrpc: "2.0", method: "notifications/initialized" }, ping(2)],
      "reader",
      oldest,
    );
    expect([both.status, both.json]).toEqual([200, [1, 2].map((id) => ({ jsonrpc: "2.0", id, result: {} }))]);
    expect(assumedVersion).toBe("2025-03-26");
    expect((await post([ping(1)], "reader", { headers: {} })).status).toBe(200);
    expect((await post([{ jsonrpc: "2.0", method: "notifications/initialized" }], "reader", oldest)).status).toBe(202);
    for (const [sent, more] of [
      [[ping(1)], {}],
      [[], oldest],
      [Array.from({ length: 33 }, (_, k) => ping(k)), oldest],
    ] as const) {
      expect(await post(sent, "reader", more)).toMatchObject({ status: 400, json: { error: { code: -32_600 } } });
    }
  });

  it("returns structure from 2025-06-18 on, and text in every version", async () => {
    const { post } = await mcpStage();
    const call = {
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "list_runs", arguments: { limit: 1 } },
    };
    for (const version of protocolVersions) {
      const { json } = await post(call, "reader", { headers: { "mcp-protocol-version": version } });
      const { content, structuredContent } = (
        json as { result: { content: [{ text: string }]; structuredContent?: unknown } }
      ).result;
      expect(JSON.parse(content[0].text)).toMatchObject({ runs: [{ workflow: "pay" }] });
      expect(structuredContent === undefined).toBe(version === "2025-03-26");
    }
    expect((await post(call, "reader", { headers: { "mcp-protocol-version": "1999-01-01" } })).status).toBe(400);
  });

  it("answers any JSON with a valid message, and never fails inside", async () => {
    const { post, lines } = await mcpStage();
    const methods = [
      "initialize",
      "ping",
      "tools/list",
      "tools/call",
      "resources/list",
      "resources/read",
      "logging/setLevel",
    ];
    const tools = [
      "list_runs",
      "get_run",
      "signal",
      "answer_gate",
      "fork",
      "await_run",
      "resolve_effect",
      "list_doubts",
    ];
    const args = fc.dictionary(
      fc.constantFrom("run", "cursor", "limit", "gate", "binds", "value", "pos", "as", "by", "reason", "timeoutMs"),
      fc.oneof(
        fc.jsonValue(),
        fc.string(),
        fc.integer(),
        fc.constantFrom("canary-pay", "~9", "1~999999999", "9.9.9~1"),
      ),
    );
    const message = fc.record(
      {
        jsonrpc: fc.constantFrom("2.0", "1.0"),
        id: fc.oneof(fc.integer(), fc.string(), fc.constant(null), fc.double()),
        method: fc.oneof(fc.constantFrom(...methods), fc.string()),
        params: fc.oneof(
          fc.jsonValue(),
          fc.record({ name: fc.constantFrom(...tools), arguments: fc.oneof(args, fc.jsonValue()) }),
          fc.record({
            uri: fc.oneof(fc.string(), fc.constant("tape://runs/%"), fc.constant("tape://runs/canary-pay")),
          }),
        ),
      },
      { requiredKeys: [] },
    );
    let answered = 0;
    await fc.assert(
      fc.asyncProperty(fc.oneof({ weight: 5, arbitrary: message }, fc.jsonValue()), async (sent) => {
        const { status, json } = await post(sent, "operator");
        expect([200, 202, 400]).toContain(status);
        if (status === 202) return;
        const found = json as { jsonrpc?: string; error?: { code: number }; code?: string };
        // The server itself refuses what no request may contain.
        if (found.code !== undefined) return expect(found.code).toBe("TAPE_BAD_INPUT");
        answered++;
        expect(found.jsonrpc).toBe("2.0");
        expect(found.error?.code).not.toBe(-32_603);
      }),
      { numRuns: 150 },
    );
    expect(answered).toBeGreaterThan(50);
    expect(lines.filter(({ event }) => event === "mcp.failed" || event === "server.failed")).toEqual([]);
  });
});
