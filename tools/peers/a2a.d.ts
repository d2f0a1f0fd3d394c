// What the adapter of the Agent2Agent protocol uses of its SDK. `npm run outside` checks the adapter against the real types.
declare module "@a2a-js/sdk" {
  export enum TaskState {
    TASK_STATE_UNSPECIFIED = 0,
    TASK_STATE_SUBMITTED = 1,
    TASK_STATE_WORKING = 2,
    TASK_STATE_COMPLETED = 3,
    TASK_STATE_FAILED = 4,
    TASK_STATE_CANCELED = 5,
    TASK_STATE_INPUT_REQUIRED = 6,
    TASK_STATE_REJECTED = 7,
    TASK_STATE_AUTH_REQUIRED = 8,
    UNRECOGNIZED = -1,
  }
  export enum Role {
    ROLE_UNSPECIFIED = 0,
    ROLE_USER = 1,
    ROLE_AGENT = 2,
    UNRECOGNIZED = -1,
  }
  interface Codec<T> {
    fromJSON(object: unknown): T;
    toJSON(message: T): unknown;
  }
  type Metadata = { [key: string]: unknown } | undefined;
  export interface Part {
    content?:
      | { $case: "text"; value: string }
      | { $case: "raw"; value: Buffer }
      | { $case: "url"; value: string }
      | { $case: "data"; value: unknown }
      | undefined;
    metadata: Metadata;
    filename: string;
    mediaType: string;
  }
  export interface Message {
    messageId: string;
    contextId: string;
    taskId: string;
    role: Role;
    parts: Part[];
    metadata: Metadata;
    extensions: string[];
    referenceTaskIds: string[];
  }
  export const Message: Codec<Message>;
  export interface Artifact {
    artifactId: string;
    name: string;
    description: string;
    parts: Part[];
    metadata: Metadata;
    extensions: string[];
  }
  export const Artifact: Codec<Artifact>;
  export interface TaskStatus {
    state: TaskState;
    message: Message | undefined;
    timestamp: string | undefined;
  }
  export interface Task {
    id: string;
    contextId: string;
    status: TaskStatus | undefined;
    artifacts: Artifact[];
    history: Message[];
    metadata: Metadata;
  }
  export const Task: Codec<Task>;
  export interface TaskStatusUpdateEvent {
    taskId: string;
    contextId: string;
    status: TaskStatus | undefined;
    metadata: Metadata;
  }
  export interface TaskArtifactUpdateEvent {
    taskId: string;
    contextId: string;
    artifact: Artifact | undefined;
    append: boolean;
    lastChunk: boolean;
    metadata: Metadata;
  }
  export interface ListTasksRequest {
    tenant: string;
    contextId: string;
    status: TaskState;
    pageSize?: number;
    pageToken: string;
    statusTimestampAfter: string | undefined;
    includeArtifacts?: boolean;
  }
  export interface ListTasksResponse {
    tasks: Task[];
    nextPageToken: string;
    pageSize: number;
    totalSize: number;
  }
  export interface TaskPushNotificationConfig {
    id: string;
    taskId: string;
    url: string;
    token: string;
  }
  export const TaskPushNotificationConfig: Codec<TaskPushNotificationConfig>;
  export interface AgentCard {
    name: string;
  }
}

declare module "@a2a-js/sdk/errors" {
  export class RequestMalformedError extends Error {}
  export class UnsupportedOperationError extends Error {}
}

declare module "@a2a-js/sdk/server" {
  import type {
    AgentCard,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Task,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskStatusUpdateEvent,
  } from "@a2a-js/sdk";

  export class ServerCallContext {
    get tenant(): string | undefined;
    get requestedVersion(): string;
  }
  export type OwnerResolver = (context: ServerCallContext) => string;
  export function resolveUserScope(context: ServerCallContext): string;
  export interface TaskStore {
    save(task: Task, context: ServerCallContext): Promise<void>;
    load(taskId: string, context: ServerCallContext): Promise<Task | undefined>;
    list(params: ListTasksRequest, context: ServerCallContext): Promise<ListTasksResponse>;
  }
  export interface StoredPushNotificationConfig {
    config: TaskPushNotificationConfig;
    wireVersion: string;
  }
  export interface PushNotificationStore {
    save(taskId: string, context: ServerCallContext, config: TaskPushNotificationConfig): Promise<void>;
    load(taskId: string, context: ServerCallContext): Promise<TaskPushNotificationConfig[]>;
    loadWithMetadata?(taskId: string, context: ServerCallContext): Promise<StoredPushNotificationConfig[]>;
    delete(taskId: string, context: ServerCallContext, configId?: string): Promise<void>;
  }
  export type AgentExecutionEvent =
    | { kind: "message"; data: Message }
    | { kind: "task"; data: Task }
    | { kind: "statusUpdate"; data: TaskStatusUpdateEvent }
    | { kind: "artifactUpdate"; data: TaskArtifactUpdateEvent };
  type EventListener = (event: AgentExecutionEvent) => void;
  export interface ExecutionEventBus {
    publish(event: AgentExecutionEvent): void;
    finished(): void;
  }
  export class DefaultExecutionEventBus extends EventTarget implements ExecutionEventBus {
    publish(event: AgentExecutionEvent): void;
    finished(): void;
    on(name: "event", listener: EventListener): this;
    on(name: "finished", listener: () => void): this;
    off(name: "event", listener: EventListener): this;
    off(name: "finished", listener: () => void): this;
  }
  export interface ExecutionEventBusManager {
    createOrGetByTaskId(taskId: string, context?: ServerCallContext): ExecutionEventBus;
    getByTaskId(taskId: string, context?: ServerCallContext): ExecutionEventBus | undefined;
    cleanupByTaskId(taskId: string, context?: ServerCallContext): void;
  }
  export interface RequestContext {
    readonly taskId: string;
    readonly contextId: string;
    readonly context: ServerCallContext;
    readonly task?: Task;
    get userMessage(): Message;
  }
  export interface AgentExecutor {
    execute: (request: RequestContext, bus: ExecutionEventBus) => Promise<void>;
    cancelTask: (taskId: string, bus: ExecutionEventBus) => Promise<void>;
  }
  export class DefaultRequestHandler {
    constructor(
      card: AgentCard,
      tasks: TaskStore,
      executor: AgentExecutor,
      buses?: ExecutionEventBusManager,
      push?: PushNotificationStore,
    );
  }
}
