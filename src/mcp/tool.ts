import { z } from "zod";
import type { Clock } from "../base/clock.ts";
import type { Role } from "../protocol/route.ts";
import type { Api } from "./api.ts";

/** One piece of a result, as the protocol defines it. */
export interface Content {
  readonly type: string;
  readonly [field: string]: unknown;
}

export interface ToolResult {
  readonly content: readonly Content[];
  readonly structuredContent?: unknown;
  readonly isError?: true;
}

/** What a tool works with. */
export interface ToolContext {
  readonly api: Api;
  readonly clock: Clock;
  /** Aborts when the client cancels the call or disconnects. */
  readonly signal: AbortSignal;
  /** Reports progress, if the client has asked for it. */
  progress(done: number, total: number, message: string): void;
  /** Sends a log message, if the client wants messages of this level. */
  message(level: MessageLevel, data: unknown): void;
}

/** Severities of the protocol, lowest first. */
export const messageLevels = [
  ...(["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] as const),
];
export type MessageLevel = (typeof messageLevels)[number];

/** Hints for clients, for instance whether to ask their user first. The server does not rely on them. */
export interface Annotations {
  readonly readOnlyHint: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint: boolean;
}

export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** Tokens with less than this role see no such tool. */
  readonly role: Role;
  readonly args: z.ZodObject;
  readonly annotations: Annotations;
  /** It sends notifications while it works, so over HTTP its response is a stream. */
  readonly notifies?: true;
  run(args: unknown, context: ToolContext): Promise<ToolResult>;
}

/** A tool whose result is JSON. */
export function jsonTool<A extends z.ZodObject>(
  tool: Omit<Tool, "args" | "run"> & { readonly args: A },
  run: (args: z.output<A>, context: ToolContext) => Promise<object>,
): Tool {
  return { ...tool, run: async (args, context) => jsonResult(await run(args as z.output<A>, context)) };
}

export function jsonResult(json: object): ToolResult {
  return { content: [{ type: "text", text: JSON.stringify(json) }], structuredContent: json };
}

/** The tool as `tools/list` shows it. */
export function describeTool({ name, title, description, args, annotations }: Tool): object {
  const { $schema: _dialect, ...inputSchema } = z.toJSONSchema(args, { io: "input", unrepresentable: "any" });
  return { name, title, description, inputSchema, annotations: { title, ...annotations } };
}

export const readOnly: Annotations = { readOnlyHint: true, openWorldHint: false };
