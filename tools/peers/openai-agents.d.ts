// What the adapter of OpenAI Agents uses of it. `npm run outside` checks the adapter against the real types.
declare module "@openai/agents" {
  export interface AgentItem {
    readonly type?: string;
  }
  export type AgentInputItem = AgentItem;
  export type AgentOutputItem = AgentItem;

  export class Usage {
    constructor(input?: object);
    inputTokens: number;
    outputTokens: number;
    inputTokensDetails: Record<string, number>[];
    outputTokensDetails: Record<string, number>[];
  }

  export interface ModelRequest {
    systemInstructions?: string;
    input: string | AgentInputItem[];
    modelSettings: { maxTokens?: number; retry?: unknown };
    tools: { name: string }[];
    tracing: unknown;
    signal?: AbortSignal;
  }
  export interface ModelResponse {
    usage: Usage;
    output: AgentOutputItem[];
    responseId?: string;
    requestId?: string;
    rawUsage?: Record<string, unknown>;
  }
  export type StreamEvent =
    | { type: "output_text_delta"; delta: string }
    | { type: "response_started" }
    | {
        type: "response_done";
        response: { id: string; requestId?: string | undefined; usage: object; output: AgentOutputItem[] };
      };
  export interface Model {
    getResponse(request: ModelRequest): Promise<ModelResponse>;
    getStreamedResponse(request: ModelRequest): AsyncIterable<StreamEvent>;
    getRetryAdvice?(): unknown;
  }
  export interface ModelProvider {
    getModel(name?: string): Promise<Model> | Model;
  }
  export class OpenAIProvider implements ModelProvider {
    getModel(name?: string): Promise<Model>;
  }
  export function getDefaultModel(): string;

  export interface RunContext {
    readonly context: unknown;
  }
  export interface FunctionTool {
    type: "function";
    name: string;
    invoke(context: RunContext, input: string, details?: never): Promise<unknown>;
  }
  export type Tool = FunctionTool | { type: "hosted_tool"; name: string };
  export function tool(options: never): FunctionTool;

  export type SessionHistoryTransactionArgs = {
    operationId: string;
    transaction:
      | { type: "append_items"; items: AgentInputItem[] }
      | { type: "replace_suffix"; expectedSuffix: AgentInputItem[]; replacement: AgentInputItem[] };
  };
  export interface SessionHistoryTransactionAwareSession {
    getSessionId(): Promise<string>;
    getItems(limit?: number): Promise<AgentInputItem[]>;
    addItems(items: AgentInputItem[]): Promise<void>;
    popItem(): Promise<AgentInputItem | undefined>;
    clearSession(): Promise<void>;
    applyHistoryTransaction(args: SessionHistoryTransactionArgs): Promise<void> | void;
  }
  export class UserError extends Error {}
}

/** OpenAI's client: only its error classes are used, where it is installed. */
declare module "openai" {
  export class APIError extends Error {}
}
