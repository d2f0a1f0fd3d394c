// What the adapter of ADK uses of it. `npm run outside` checks the adapter against the real types.
declare module "@google/adk" {
  export interface LlmRequest {
    contents: { role?: string; parts?: object[] }[];
    config?: {
      systemInstruction?: unknown;
      tools?: unknown[];
      abortSignal?: AbortSignal;
      httpOptions?: unknown;
      maxOutputTokens?: number;
    };
    toolsDict: Record<string, BaseTool>;
  }
  export interface LlmResponse {
    content?: { role?: string; parts?: object[] };
    partial?: boolean;
    errorCode?: string;
    finishReason?: string;
    usageMetadata?: {
      promptTokenCount?: number;
      candidatesTokenCount?: number;
      thoughtsTokenCount?: number;
      cachedContentTokenCount?: number;
    };
  }
  export interface BaseLlmConnection {
    close(): Promise<void>;
  }
  export abstract class BaseLlm {
    readonly model: string;
    constructor(options: { model: string });
    abstract generateContentAsync(
      request: LlmRequest,
      stream?: boolean,
      abortSignal?: AbortSignal,
    ): AsyncGenerator<LlmResponse, void>;
    abstract connect(request: LlmRequest): Promise<BaseLlmConnection>;
  }

  export interface BaseAgent {
    readonly name: string;
  }
  export interface LlmAgent extends BaseAgent {
    model?: string | BaseLlm;
    readonly canonicalModel: BaseLlm;
  }
  export function isLlmAgent(agent: unknown): agent is LlmAgent;

  export interface InvocationContext {
    readonly agent?: BaseAgent;
    branch?: string;
    readonly sessionService?: BaseSessionService;
  }
  export interface Context {
    readonly invocationContext: InvocationContext;
    readonly functionCallId?: string;
    readonly state: { update(delta: Record<string, unknown>): void };
    readonly actions: { stateDelta: Record<string, unknown> };
  }

  export abstract class BaseTool {
    readonly name: string;
    runAsync(request: { args: Record<string, unknown>; toolContext: Context }): Promise<unknown>;
  }
  export interface FunctionTool extends BaseTool {
    checkRequireConfirmation(args: unknown, context?: Context): Promise<boolean>;
  }
  export function isFunctionTool(tool: unknown): tool is FunctionTool;
  export function isAgentTool(tool: unknown): boolean;

  interface ModelHook {
    callbackContext: Context;
    llmRequest: LlmRequest;
  }
  export abstract class BasePlugin {
    readonly name: string;
    constructor(name: string);
    beforeModelCallback(call: ModelHook): Promise<LlmResponse | undefined>;
    onModelErrorCallback(call: ModelHook & { error: Error }): Promise<LlmResponse | undefined>;
    beforeToolCallback(call: {
      tool: BaseTool;
      toolArgs: Record<string, unknown>;
      toolContext: Context;
    }): Promise<Record<string, unknown> | undefined>;
    afterRunCallback(call: { invocationContext: InvocationContext }): Promise<void>;
  }

  export interface Event {
    partial?: boolean;
    branch?: string;
    timestamp: number;
    actions: { stateDelta: Record<string, unknown> };
  }
  export interface Session {
    id: string;
    appName: string;
    userId: string;
    state: Record<string, unknown>;
    events: Event[];
    lastUpdateTime: number;
  }
  export interface CreateSessionRequest {
    appName: string;
    userId: string;
    state?: Record<string, unknown>;
    sessionId?: string;
  }
  export interface DeleteSessionRequest {
    appName: string;
    userId: string;
    sessionId: string;
  }
  export interface GetSessionRequest extends DeleteSessionRequest {
    config?: { numRecentEvents?: number; afterTimestamp?: number };
  }
  export interface ListSessionsRequest {
    appName: string;
    userId?: string;
    limit?: number;
    offset?: number;
    page?: number;
    order?: "asc" | "desc";
  }
  export interface ListSessionsResponse {
    sessions: Session[];
    page: number;
    limit: number;
    totalItems: number;
    totalPages: number;
  }
  export interface AppendEventRequest {
    session: Session;
    event: Event;
  }
  export abstract class BaseSessionService {
    abstract createSession(request: CreateSessionRequest): Promise<Session>;
    abstract getSession(request: GetSessionRequest): Promise<Session | undefined>;
    abstract listSessions(request: ListSessionsRequest): Promise<ListSessionsResponse>;
    abstract deleteSession(request: DeleteSessionRequest): Promise<void>;
    appendEvent(request: AppendEventRequest): Promise<Event>;
  }
  export function createSession(params: Partial<Session> & { id: string; appName: string }): Session;
  export function trimTempState(state: Record<string, unknown>): Record<string, unknown>;
  export function mergeStates(
    app?: Record<string, unknown>,
    user?: Record<string, unknown>,
    session?: Record<string, unknown>,
  ): Record<string, unknown>;
}

/** Gemini's client: only its error classes are used, where it is installed. */
declare module "@google/genai" {
  export class ApiError extends Error {}
}
