// What src/langgraph uses of LangGraph, for the compiler of a tree that does not have it. `npm run outside` checks the same
// sources against the real types.

declare module "@langchain/core/runnables" {
  export interface RunnableConfig {
    callbacks?: unknown;
    signal?: AbortSignal;
    // biome-ignore lint/suspicious/noExplicitAny: as LangGraph declares it
    configurable?: Record<string, any>;
  }
}

declare module "@langchain/core/messages" {
  export interface StoredMessage {
    type: string;
    data: { content: string };
  }
  export interface ToolCall {
    id?: string;
    name: string;
    args: Record<string, unknown>;
  }
  export interface UsageMetadata {
    input_tokens: number;
    output_tokens: number;
    input_token_details?: { cache_read?: number; cache_creation?: number };
    output_token_details?: { reasoning?: number };
  }
  export class BaseMessage {
    id?: string;
    name?: string;
    content: string | readonly object[];
    response_metadata: Record<string, unknown>;
    get text(): string;
    getType(): string;
    _updateId(id: string): void;
  }
  export class AIMessage extends BaseMessage {
    tool_calls?: ToolCall[];
    usage_metadata?: UsageMetadata;
  }
  export class AIMessageChunk extends AIMessage {
    tool_call_chunks?: unknown[];
    constructor(fields: { content: string });
    concat(chunk: AIMessageChunk): AIMessageChunk;
  }
  export class ToolMessage extends BaseMessage {
    constructor(fields: { content: string; tool_call_id: string; name: string; status: "error" });
  }
  export function isBaseMessage(value: unknown): value is BaseMessage;
  export function convertToChunk(message: BaseMessage): BaseMessage;
  export function mapChatMessagesToStoredMessages(messages: BaseMessage[]): StoredMessage[];
  export function mapStoredMessagesToChatMessages(messages: StoredMessage[]): BaseMessage[];
}

declare module "@langchain/core/outputs" {
  import type { AIMessageChunk, BaseMessage } from "@langchain/core/messages";

  export interface ChatResult {
    generations: { text: string; message: BaseMessage }[];
  }
  export class ChatGenerationChunk {
    message: AIMessageChunk;
    constructor(fields: { text: string; message: AIMessageChunk });
  }
}

declare module "@langchain/core/language_models/chat_models" {
  import type { BaseMessage } from "@langchain/core/messages";
  import type { ChatGenerationChunk, ChatResult } from "@langchain/core/outputs";

  export abstract class BaseChatModel {
    abstract _llmType(): string;
    abstract _generate(messages: BaseMessage[], options: never, manager?: never): Promise<ChatResult>;
    _streamResponseChunks(
      messages: BaseMessage[],
      options: never,
      manager?: never,
    ): AsyncGenerator<ChatGenerationChunk>;
    _streamChatModelEvents(messages: BaseMessage[], options: never, manager?: never): AsyncGenerator<unknown>;
    getLsParams(options: never): { ls_provider?: string; ls_model_name?: string; ls_max_tokens?: number };
    bindTools?(tools: never[], options?: never): unknown;
    withConfig(config: never): unknown;
  }
}

declare module "@langchain/core/tools" {
  export interface StructuredToolInterface {
    name: string;
  }
}

declare module "@langchain/langgraph" {
  export class Command {
    update?: unknown;
    goto?: unknown;
    resume?: unknown;
    graph?: string;
    constructor(fields: { resume?: unknown; update?: unknown; goto?: unknown; graph?: string });
  }
  export function isCommand(value: unknown): value is Command;
  export function isGraphInterrupt(error: unknown): boolean;
}

declare module "@langchain/langgraph-checkpoint" {
  import type { RunnableConfig } from "@langchain/core/runnables";

  export interface SerializerProtocol {
    dumpsTyped(data: unknown): Promise<[string, Uint8Array]>;
    // biome-ignore lint/suspicious/noExplicitAny: as LangGraph declares it
    loadsTyped(type: string, data: Uint8Array | string): Promise<any>;
  }
  export type ChannelVersions = Record<string, number | string>;
  export interface Checkpoint {
    v: number;
    id: string;
    ts: string;
    channel_values: Record<string, unknown>;
    channel_versions: ChannelVersions;
    versions_seen: Record<string, ChannelVersions>;
  }
  export interface CheckpointMetadata {
    source: "input" | "loop" | "update" | "fork";
    step: number;
    parents: Record<string, string>;
  }
  export type PendingWrite = [string, unknown];
  export type CheckpointPendingWrite = [string, string, unknown];
  export interface CheckpointTuple {
    config: RunnableConfig;
    checkpoint: Checkpoint;
    metadata?: CheckpointMetadata;
    parentConfig?: RunnableConfig;
    pendingWrites?: CheckpointPendingWrite[];
  }
  export interface CheckpointListOptions {
    limit?: number;
    before?: RunnableConfig;
    filter?: Record<string, unknown>;
  }
  export abstract class BaseCheckpointSaver {
    serde: SerializerProtocol;
    constructor(serde?: SerializerProtocol);
    abstract getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined>;
    abstract list(config: RunnableConfig, options?: CheckpointListOptions): AsyncGenerator<CheckpointTuple>;
    abstract put(
      config: RunnableConfig,
      checkpoint: Checkpoint,
      metadata: CheckpointMetadata,
      newVersions: ChannelVersions,
    ): Promise<RunnableConfig>;
    abstract putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void>;
    abstract deleteThread(threadId: string): Promise<void>;
    getNextVersion(current: number | undefined): number;
  }
  export class MemorySaver {}
  export const TASKS: string;
  export const WRITES_IDX_MAP: Record<string, number>;
  export function copyCheckpoint(checkpoint: Checkpoint): Checkpoint;
  export function getCheckpointId(config: RunnableConfig): string;
  export function maxChannelVersion(...versions: (number | string)[]): number | string;

  export interface Item {
    // biome-ignore lint/suspicious/noExplicitAny: as LangGraph declares it
    value: Record<string, any>;
    key: string;
    namespace: string[];
    createdAt: Date;
    updatedAt: Date;
  }
  export interface SearchItem extends Item {
    score?: number;
  }
  export interface GetOperation {
    namespace: string[];
    key: string;
  }
  export interface SearchOperation {
    namespacePrefix: string[];
    filter?: Record<string, unknown>;
    limit?: number;
    offset?: number;
    query?: string;
  }
  export interface PutOperation extends GetOperation {
    // biome-ignore lint/suspicious/noExplicitAny: as LangGraph declares it
    value: Record<string, any> | null;
  }
  export interface MatchCondition {
    matchType: "prefix" | "suffix";
    path: string[];
  }
  export interface ListNamespacesOperation {
    matchConditions?: MatchCondition[];
    maxDepth?: number;
    limit: number;
    offset: number;
  }
  export type Operation = GetOperation | SearchOperation | PutOperation | ListNamespacesOperation;
  export type OperationResults<Operations extends readonly Operation[]> = { [K in keyof Operations]: unknown };
  export abstract class BaseStore {
    abstract batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>>;
  }
}
