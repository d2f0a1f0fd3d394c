import type { z } from "zod";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import { problemOf } from "../protocol/problem.ts";
import { mayDo, type Role } from "../protocol/route.ts";
import type { Api } from "./api.ts";
import {
  errorMessage,
  idOf,
  invalidRequest,
  isObject,
  notification,
  RpcError,
  type RpcMessage,
  type RpcNotification,
  type RpcParams,
  type RpcResponse,
  readMessage,
  resultMessage,
  rpcCodes,
} from "./json-rpc.ts";
import { listResources, readResource, resourceTemplates } from "./resources.ts";
import {
  describeTool,
  type MessageLevel,
  messageLevels,
  type Tool,
  type ToolContext,
  type ToolResult,
} from "./tool.ts";
import { hasStructure, negotiated, type ProtocolVersion } from "./versions.ts";

export interface McpServerOptions {
  readonly api: Api;
  readonly clock: Clock;
  readonly log: Log;
  readonly tools: readonly Tool[];
  /** Of the caller's token. It decides which tools exist for this caller. */
  readonly role: Role;
  readonly version: string;
  /** A call of a tool that the role does not permit. */
  readonly onForbidden?: (tool: string, needs: Role) => void;
}

/** What is agreed with one client. Over HTTP each request has its own, because there are no sessions. */
export interface Session {
  /** undefined: the client has not initialized. */
  version: ProtocolVersion | undefined;
  level: MessageLevel;
}

/** The way back to the client while its request is in progress. */
export interface Peer {
  readonly signal: AbortSignal;
  notify(message: RpcNotification): void;
}

export const newSession = (version?: ProtocolVersion): Session => ({ version, level: "warning" });

const instructions = `Tape records every run of a workflow in a journal. Read before you act: list_doubts has effects of
which nothing confirms whether they happened, list_gates what waits for an answer. Never guess the outcome of an effect:
ask the system that it called, then resolve_effect. Answer a gate only with the binds that list_gates showed you, and
never one whose run you started. A result with "next" has more: call the tool again with it as cursor.`.replaceAll(
  "\n",
  " ",
);

/**
 * The Model Context Protocol, independent of its transport: one message in, at most one message out. It keeps nothing
 * but its options; what a client has agreed is in its session.
 */
export class McpServer {
  readonly #options: McpServerOptions;

  constructor(options: McpServerOptions) {
    this.#options = options;
  }

  /** The response; undefined for a notification, or the client's response to nothing. */
  async handle(json: unknown, session: Session, peer: Peer): Promise<RpcResponse | undefined> {
    let message: RpcMessage;
    try {
      message = readMessage(json);
    } catch (error) {
      return errorMessage(idOf(json), error as RpcError);
    }
    if (message.kind !== "request") return undefined;
    const { id, method, params } = message;
    try {
      return resultMessage(id, await this.#result(method, params, session, peer));
    } catch (error) {
      const isCancelled = peer.signal.aborted && !(error instanceof RpcError);
      return errorMessage(id, isCancelled ? cancelled() : this.#rpcError(error, method));
    }
  }

  /** Whether the response to this message may be preceded by notifications. */
  notifies(json: unknown): boolean {
    if (!isObject(json) || json.method !== "tools/call" || !isObject(json.params)) return false;
    const { name } = json.params;
    return this.#options.tools.some((tool) => tool.name === name && tool.notifies === true);
  }

  async #result(method: string, params: RpcParams, session: Session, peer: Peer): Promise<unknown> {
    const { api } = this.#options;
    if (method === "initialize") return this.#initialize(params, session);
    if (method === "ping") return {};
    if (session.version === undefined) throw invalidRequest(`${method}: initialize first`);
    switch (method) {
      case "tools/list":
        return this.#list(params);
      case "tools/call":
        return this.#call(params, session, peer);
      case "resources/list":
        return listResources(api, cursorOf(params));
      case "resources/templates/list":
        assertFirstPage(params);
        return { resourceTemplates };
      case "resources/read":
        return readResource(api, params.uri);
      case "logging/setLevel": {
        const level = messageLevels.find((one) => one === params.level);
        if (level === undefined) throw invalidParams(`level must be one of ${messageLevels.join(", ")}`);
        session.level = level;
        return {};
      }
      default:
        throw new RpcError(rpcCodes.methodNotFound, `no method ${method}`);
    }
  }

  #initialize({ protocolVersion }: RpcParams, session: Session): object {
    if (typeof protocolVersion !== "string") throw invalidParams("protocolVersion must be a string");
    session.version = negotiated(protocolVersion);
    return {
      protocolVersion: session.version,
      capabilities: { tools: {}, resources: {}, logging: {} },
      serverInfo: { name: "durable-tape", title: "Tape", version: this.#options.version },
      instructions,
    };
  }

  #list(params: RpcParams): object {
    assertFirstPage(params);
    const { tools, role } = this.#options;
    return { tools: tools.filter((tool) => mayDo(role, tool.role)).map(described) };
  }

  async #call({ name, arguments: args = {}, _meta }: RpcParams, session: Session, peer: Peer): Promise<ToolResult> {
    const { tools, role, onForbidden } = this.#options;
    const tool = tools.find((one) => one.name === name);
    if (tool === undefined) throw invalidParams(`no tool ${String(name).slice(0, 100)}`);
    if (!mayDo(role, tool.role)) {
      onForbidden?.(tool.name, tool.role);
      const message = `tool ${tool.name} needs the role ${tool.role}, but the token has ${role}`;
      throw new RpcError(rpcCodes.invalidParams, message, { code: "TAPE_FORBIDDEN", needs: tool.role });
    }
    const token = isObject(_meta) ? _meta.progressToken : undefined;
    const result = await this.#run(tool, args, this.#context(session, peer, token));
    if (hasStructure(session.version!)) return result;
    const { structuredContent: _structure, ...rest } = result;
    return rest;
  }

  async #run(tool: Tool, given: unknown, context: ToolContext): Promise<ToolResult> {
    try {
      const args = tool.args.safeParse(given);
      if (!args.success) throw badArguments(args.error);
      return await tool.run(args.data, context);
    } catch (error) {
      if (!isTapeError(error)) throw error;
      // The model reads it and can do something else, so it is a result and not an error of the protocol.
      const { code, detail, next, details } = problemOf(error);
      if (error.fault === "store")
        this.#options.log("warn", "mcp.tool_failed", { tool: tool.name, ...errorFields(error) });
      const text = `${code}: ${detail}\nNext: ${next}`;
      const problem = { code, message: detail, next, ...(details !== undefined && { details }) };
      return { content: [{ type: "text", text }], structuredContent: problem, isError: true };
    }
  }

  #context(session: Session, { signal, notify }: Peer, token: unknown): ToolContext {
    const { api, clock } = this.#options;
    const wanted = typeof token === "string" || typeof token === "number";
    return {
      ...{ api, clock, signal },
      progress: (progress, total, message) => {
        if (wanted) notify(notification("notifications/progress", { progressToken: token, progress, total, message }));
      },
      message: (level, data) => {
        if (!isShown(level, session)) return;
        notify(notification("notifications/message", { level, logger: "durable-tape", data }));
      },
    };
  }

  #rpcError(error: unknown, method: string): RpcError {
    if (error instanceof RpcError) return error;
    if (isTapeError(error)) {
      const { code, detail, next } = problemOf(error);
      return new RpcError(rpcCodes.internalError, `${code}: ${detail}`, { code, next });
    }
    this.#options.log("error", "mcp.failed", { method, ...errorFields(error) });
    return new RpcError(rpcCodes.internalError, "the server failed; see its log");
  }
}

/** Whether a client with this session wants messages of this level. */
export const isShown = (level: MessageLevel, session: Session): boolean =>
  messageLevels.indexOf(level) >= messageLevels.indexOf(session.level);

/** Descriptions never change, and a schema takes longer to write than a call. */
const descriptions = new WeakMap<Tool, object>();

function described(tool: Tool): object {
  const known = descriptions.get(tool) ?? describeTool(tool);
  descriptions.set(tool, known);
  return known;
}

function cursorOf({ cursor }: RpcParams): string | undefined {
  if (cursor === undefined || typeof cursor === "string") return cursor;
  throw invalidParams("cursor must be a string");
}

/** A list that fits into one page gives out no cursor. */
function assertFirstPage(params: RpcParams): void {
  if (cursorOf(params) !== undefined) throw invalidParams("cursor: not one of this list");
}

const cancelled = (): RpcError => new RpcError(rpcCodes.internalError, "the call was cancelled");

const invalidParams = (message: string): RpcError => new RpcError(rpcCodes.invalidParams, message);

function badArguments({ issues }: z.ZodError): TapeError {
  const [issue] = issues;
  const field = issue?.path.map(String).join(".") || "arguments";
  return new TapeError("TAPE_BAD_INPUT", `${field}: ${issue?.message ?? "invalid"}`.slice(0, 500), { field });
}
