import type { Hook, Step, Wait, WorkflowRun } from "@workflow/world";

/** A run and what belongs to it, as the fold of its events. The types of `@workflow/world` are unions by status. */
export interface RunEntity {
  readonly runId: string;
  readonly status: WorkflowRun["status"];
  readonly deploymentId: string;
  readonly workflowName: string;
  readonly specVersion: number;
  readonly executionContext?: unknown;
  readonly input?: unknown;
  readonly output?: unknown;
  readonly error?: unknown;
  readonly errorCode?: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly startedAt?: Date;
  readonly completedAt?: Date;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** An event as it is stored. */
export interface LogEvent {
  readonly eventType: string;
  readonly runId: string;
  readonly eventId: string;
  readonly createdAt: Date;
  readonly specVersion: number;
  readonly correlationId?: string;
  readonly eventData?: Readonly<Record<string, unknown>>;
}

/** An event before it has a place in the log. */
export type NewEvent = Pick<LogEvent, "eventType" | "correlationId" | "eventData"> & { readonly specVersion?: number };

/** A hook; a disposed one stays known, so that its id is not used again. */
export interface HookEntity {
  readonly hook: Hook;
  readonly disposed: boolean;
}

/** What the events of one run amount to. */
export interface RunState {
  run: RunEntity | undefined;
  readonly steps: Map<string, Step>;
  readonly hooks: Map<string, HookEntity>;
  readonly waits: Map<string, Wait>;
  /** Correlations of hooks that found their token taken, and of attributes that workflows have set. */
  readonly settled: Set<string>;
  /** The number of the next event. */
  next: number;
  /** The key of the last entry that was read. */
  lastKey: string | undefined;
  /** The time in the id of the last event. */
  lastMs: number;
  /** Of payloads, about. */
  bytes: number;
}

export const emptyState = (): RunState => ({
  run: undefined,
  steps: new Map(),
  hooks: new Map(),
  waits: new Map(),
  settled: new Set(),
  next: 0,
  lastKey: undefined,
  lastMs: 0,
  bytes: 0,
});

const ended: readonly string[] = ["completed", "failed", "cancelled"];

export const hasEnded = (entity: { readonly status: string } | undefined): boolean =>
  entity !== undefined && ended.includes(entity.status);

/** The hook, if it is live: it is not disposed, and its run has not ended. */
export function liveHook(state: RunState, id: string): Hook | undefined {
  const found = state.hooks.get(id);
  return found === undefined || found.disposed || hasEnded(state.run) ? undefined : found.hook;
}
