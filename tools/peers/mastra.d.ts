// What the adapter of Mastra uses of it. `npm run outside` checks the adapter against the real types.
declare module "@mastra/core/tools" {
  export interface Tool {
    id: string;
    description: string;
    execute?: (input: never, context: never) => Promise<unknown>;
  }
  export function createTool(options: {
    id: string;
    description: string;
    inputSchema: object;
    execute: () => Promise<unknown>;
  }): Tool;
}

declare module "@mastra/core/llm" {
  export interface LanguageModel {
    readonly specificationVersion: string;
    readonly provider: string;
    readonly modelId: string;
    doGenerate(options: never): PromiseLike<unknown>;
    doStream(options: never): PromiseLike<unknown>;
  }
  export class ModelRouterLanguageModel implements LanguageModel {
    readonly specificationVersion: "v2";
    readonly provider: string;
    readonly modelId: string;
    constructor(config: string | { id: `${string}/${string}`; url?: string; apiKey?: string });
    doGenerate(options: never): Promise<unknown>;
    doStream(options: never): Promise<unknown>;
  }
}

declare module "@mastra/core/events" {
  export interface PubSub {
    close?(): Promise<void>;
  }
  export class EventEmitterPubSub implements PubSub {}
}

declare module "@mastra/core/memory" {
  export interface StorageThreadType {
    id: string;
    title?: string;
    resourceId: string;
    createdAt: Date;
    updatedAt: Date;
    metadata?: Record<string, unknown>;
  }
}

declare module "@mastra/core/storage" {
  import type { StorageThreadType } from "@mastra/core/memory";

  interface Message {
    id: string;
    threadId?: string;
  }
  interface Page {
    total: number;
    page: number;
    perPage: number | false;
    hasMore: boolean;
  }
  export interface StorageMessageType {
    id: string;
    thread_id: string;
  }
  export interface StorageResourceType {
    id: string;
    workingMemory?: string;
    metadata?: Record<string, unknown>;
    createdAt: Date;
    updatedAt: Date;
  }
  export interface StorageListMessagesInput {
    threadId: string | string[];
    include?: { id: string; threadId?: string }[];
  }
  export interface StorageListMessagesOutput extends Page {
    messages: Message[];
  }
  export interface StorageListThreadsInput {
    filter?: { resourceId?: string };
  }
  export interface StorageListThreadsOutput extends Page {
    threads: StorageThreadType[];
  }
  export class InMemoryDB {
    readonly threads: Map<string, StorageThreadType>;
    readonly messages: Map<string, StorageMessageType>;
    readonly resources: Map<string, StorageResourceType>;
  }
  export abstract class MemoryStorage {
    readonly supportsPartialThreadUpdate?: boolean;
    abstract getThreadById(args: { threadId: string; resourceId?: string }): Promise<StorageThreadType | null>;
    abstract saveThread(args: { thread: StorageThreadType }): Promise<StorageThreadType>;
    abstract updateThread(args: {
      id: string;
      title?: string;
      metadata?: Record<string, unknown>;
    }): Promise<StorageThreadType>;
    abstract deleteThread(args: { threadId: string }): Promise<void>;
    abstract listMessages(args: StorageListMessagesInput): Promise<StorageListMessagesOutput>;
    abstract listMessagesById(args: { messageIds: string[] }): Promise<{ messages: Message[] }>;
    abstract saveMessages(args: { messages: Message[] }): Promise<{ messages: Message[] }>;
    abstract updateMessages(args: { messages: Message[] }): Promise<Message[]>;
    abstract listThreads(args: StorageListThreadsInput): Promise<StorageListThreadsOutput>;
    abstract dangerouslyClearAll(): Promise<void>;
    deleteMessages(messageIds: string[]): Promise<void>;
    getResourceById(args: { resourceId: string }): Promise<StorageResourceType | null>;
    saveResource(args: { resource: StorageResourceType }): Promise<StorageResourceType>;
    updateResource(args: {
      resourceId: string;
      workingMemory?: string;
      metadata?: Record<string, unknown>;
    }): Promise<StorageResourceType>;
  }
  /** Concrete in Mastra. */
  export class InMemoryMemory extends MemoryStorage {
    constructor(options: { db: InMemoryDB });
    getThreadById(args: { threadId: string; resourceId?: string }): Promise<StorageThreadType | null>;
    saveThread(args: { thread: StorageThreadType }): Promise<StorageThreadType>;
    updateThread(args: { id: string; title?: string; metadata?: Record<string, unknown> }): Promise<StorageThreadType>;
    deleteThread(args: { threadId: string }): Promise<void>;
    listMessages(args: StorageListMessagesInput): Promise<StorageListMessagesOutput>;
    listMessagesById(args: { messageIds: string[] }): Promise<{ messages: Message[] }>;
    saveMessages(args: { messages: Message[] }): Promise<{ messages: Message[] }>;
    updateMessages(args: { messages: Message[] }): Promise<Message[]>;
    listThreads(args: StorageListThreadsInput): Promise<StorageListThreadsOutput>;
    dangerouslyClearAll(): Promise<void>;
  }
  export class MastraCompositeStore {
    constructor(config: { id: string; name: string; disableInit: boolean; domains: { memory: MemoryStorage } });
  }
}
