import { onTestFinished } from "vitest";
import type { RpcResponse } from "../../src/mcp/json-rpc.ts";
import type { Role } from "../../src/protocol/route.ts";
import { makeScene, type Scene, tokenOf } from "../server/scene.ts";
import { ask, type Reply, type Stage, type StageOptions, stage } from "../server/stage.ts";

export interface McpStage extends Stage {
  readonly scene: Scene;
  /** One message to `POST /mcp`, with the token of a role. */
  post(message: unknown, role?: Role, more?: { tenant?: string; headers?: Record<string, string> }): Promise<Reply>;
  /** The result of a method; throws its error. */
  request(method: string, params?: object, role?: Role): Promise<Record<string, unknown>>;
  call(tool: string, args: object, role?: Role, tenant?: string): Promise<ToolAnswer>;
}

export interface ToolAnswer {
  // biome-ignore lint/suspicious/noExplicitAny: each tool has a result of its own, and the tests compare it
  readonly json: Record<string, any>;
  readonly text: string;
  readonly isError: boolean;
}

export const latest = { "mcp-protocol-version": "2025-11-25" };

/** A server with credentials, and a scene of the tenant acme. */
export async function mcpStage(options: StageOptions = {}): Promise<McpStage> {
  const one = await stage({ credentials: "required", tenant: "acme", ...options });
  onTestFinished(() => one.close());
  const scene = await makeScene(one.store, "acme");
  const post: McpStage["post"] = (message, role = "operator", { tenant = "acme", headers = latest } = {}) =>
    ask(one.server.exchange, "POST", "/mcp", { body: message, token: tokenOf(tenant, role), headers });
  const answer = async (method: string, params: object, role?: Role, tenant?: string): Promise<RpcResponse> => {
    const { status, json } = await post({ jsonrpc: "2.0", id: 1, method, params }, role, { ...(tenant && { tenant }) });
    if (status !== 200) throw new Error(`status ${status}: ${JSON.stringify(json)}`);
    return json as RpcResponse;
  };
  return {
    ...one,
    ...{ scene, post },
    async request(method, params = {}, role) {
      const { result, error } = await answer(method, params, role);
      if (error !== undefined) throw Object.assign(new Error(error.message), error);
      return result as Record<string, unknown>;
    },
    async call(name, args, role, tenant) {
      const { result, error } = await answer("tools/call", { name, arguments: args }, role, tenant);
      if (error !== undefined) throw Object.assign(new Error(error.message), error);
      const {
        content,
        structuredContent,
        isError = false,
      } = result as {
        content: [{ text: string }];
        structuredContent: Record<string, unknown>;
        isError?: boolean;
      };
      return { json: structuredContent, text: content[0].text, isError };
    },
  };
}

export const who = { by: "ada", reason: "a test" };
