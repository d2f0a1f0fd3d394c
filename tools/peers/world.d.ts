// What the world uses of Vercel Workflow. `npm run outside` checks it against the real types.
declare module "@workflow/errors" {
  export class WorkflowWorldError extends Error {
    constructor(message: string, options?: { status?: number });
  }
  export class EntityConflictError extends WorkflowWorldError {
    constructor(message: string);
  }
  export class RunExpiredError extends WorkflowWorldError {
    constructor(message: string);
  }
  export class TooEarlyError extends WorkflowWorldError {
    constructor(message: string, options?: { retryAfter?: number });
  }
  export class WorkflowRunNotFoundError extends Error {
    constructor(runId: string);
  }
  export class HookNotFoundError extends Error {
    constructor(token: string);
  }
  export class RunNotSupportedError extends Error {
    constructor(runSpecVersion: number, worldSpecVersion: number);
  }
}

declare module "@workflow/world" {
  interface Parsing<T> {
    safeParse(value: unknown): { success: true; data: T } | { success: false; error: Error };
  }
  type ResolveData = "none" | "all";
  interface Paginated<T> {
    data: T[];
    cursor: string | null;
    hasMore: boolean;
  }
  export interface PaginationOptions {
    limit?: number;
    cursor?: string;
    sortOrder?: "asc" | "desc";
  }

  export interface WorkflowRun {
    runId: string;
    status: "pending" | "running" | "completed" | "failed" | "cancelled";
  }
  export interface Step {
    runId: string;
    stepId: string;
    stepName: string;
    status: WorkflowRun["status"];
    input?: unknown;
    output?: unknown;
    error?: unknown;
    attempt: number;
    startedAt?: Date | undefined;
    completedAt?: Date | undefined;
    createdAt: Date;
    updatedAt: Date;
    retryAfter?: Date | undefined;
    specVersion?: number | undefined;
  }
  export interface Hook {
    runId: string;
    hookId: string;
    token: string;
    ownerId: string;
    projectId: string;
    environment: string;
    metadata?: unknown;
    createdAt: Date;
    specVersion?: number | undefined;
    isWebhook?: boolean | undefined;
    isSystem?: boolean | undefined;
  }
  export interface Wait {
    waitId: string;
    runId: string;
    status: "waiting" | "completed";
    resumeAt?: Date | undefined;
    completedAt?: Date | undefined;
    createdAt: Date;
    updatedAt: Date;
    specVersion?: number | undefined;
  }
  export interface Event {
    eventType: string;
    eventId: string;
    runId: string;
    createdAt: Date;
    correlationId?: string;
    eventData?: object;
  }
  export interface EventResult {
    event?: Event;
    run?: WorkflowRun;
    step?: Step;
    hook?: Hook;
    wait?: Wait;
    events?: Event[];
    cursor?: string | null;
    hasMore?: boolean;
    stepCreated?: boolean;
  }
  export interface CreateEventParams {
    resolveData?: ResolveData;
    sinceCursor?: string;
    skipPreload?: boolean;
  }
  export interface AttributeChange {
    key: string;
    value: string | null;
  }
  export interface ListWorkflowRunsParams {
    workflowName?: string;
    status?: WorkflowRun["status"];
    pagination?: PaginationOptions;
    resolveData?: ResolveData;
  }
  export interface ListHooksParams {
    runId?: string;
    pagination?: PaginationOptions;
    resolveData?: ResolveData;
  }
  interface ListedOfRun {
    runId: string;
    pagination?: PaginationOptions;
    resolveData?: ResolveData;
  }
  type Resolve = { resolveData?: ResolveData };
  export interface Storage {
    runs: {
      get(id: string, params?: Resolve): Promise<WorkflowRun>;
      list(params?: ListWorkflowRunsParams): Promise<Paginated<WorkflowRun>>;
    };
    steps: {
      get(runId: string, stepId: string, params?: Resolve): Promise<Step>;
      list(params: ListedOfRun): Promise<Paginated<Step>>;
    };
    events: {
      create(runId: string | null, data: object, params?: CreateEventParams): Promise<EventResult>;
      get(runId: string, eventId: string, params?: Resolve): Promise<Event>;
      list(params: ListedOfRun): Promise<Paginated<Event>>;
      listByCorrelationId(params: {
        correlationId: string;
        pagination?: PaginationOptions;
        resolveData?: ResolveData;
      }): Promise<Paginated<Event>>;
    };
    hooks: {
      get(hookId: string, params?: Resolve): Promise<Hook>;
      getByToken(token: string, params?: Resolve): Promise<Hook>;
      list(params: ListHooksParams): Promise<Paginated<Hook>>;
    };
  }
  export interface Streamer {
    streams: {
      write(runId: string, name: string, chunk: string | Uint8Array): Promise<void>;
      writeMulti?(runId: string, name: string, chunks: (string | Uint8Array)[]): Promise<void>;
      close(runId: string, name: string): Promise<void>;
      get(runId: string, name: string, startIndex?: number): Promise<ReadableStream<Uint8Array>>;
      list(runId: string): Promise<string[]>;
      getChunks(
        runId: string,
        name: string,
        options?: { limit?: number; cursor?: string },
      ): Promise<Paginated<{ index: number; data: Uint8Array }> & { done: boolean }>;
      getInfo(runId: string, name: string): Promise<{ tailIndex: number; done: boolean }>;
    };
  }

  export type MessageId = string & { readonly messageId: true };
  export type ValidQueueName = string;
  export interface QueueOptions {
    idempotencyKey?: string;
    headers?: Record<string, string>;
    delaySeconds?: number;
  }
  export interface Queue {
    getDeploymentId(): Promise<string>;
    queue(name: ValidQueueName, message: object, options?: QueueOptions): Promise<{ messageId: MessageId | null }>;
    createQueueHandler(
      prefix: string,
      handler: (
        message: unknown,
        meta: { attempt: number; queueName: ValidQueueName; messageId: MessageId },
      ) => Promise<undefined | { timeoutSeconds: number }>,
    ): (request: Request) => Promise<Response>;
  }
  export interface World extends Queue, Streamer, Storage {
    specVersion: number;
    start?(): Promise<void>;
    close?(): Promise<void>;
  }

  export const CreateEventSchema: Parsing<unknown>;
  export const QueuePayloadSchema: Parsing<unknown>;
  export const ValidQueueName: Parsing<string>;
  export function parseQueueName(name: ValidQueueName): { kind: "workflow" | "step" };
  export function stripEventDataRefs(event: Event, resolveData: ResolveData): Event;
  export function validateUlidTimestamp(id: string, prefix: string): string | null;
  export function validateAttributeChanges(
    changes: AttributeChange[],
    context?: { existingKeys?: Iterable<string>; allowReservedAttributes?: boolean },
  ): void;
  export function applyAttributeChanges(
    existing: Record<string, string> | undefined,
    changes: AttributeChange[],
  ): Record<string, string>;
}
