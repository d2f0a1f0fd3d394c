import {
  EntityConflictError,
  HookNotFoundError,
  RunExpiredError,
  TooEarlyError,
  WorkflowRunNotFoundError,
  WorkflowWorldError,
} from "@workflow/errors";
import { type AttributeChange, validateAttributeChanges } from "@workflow/world";
import { hasEnded, liveHook, type NewEvent, type RunEntity, type RunState } from "./entities.ts";

/** What a request to create an event is judged by, besides the state of its run. */
export interface Circumstances {
  readonly runId: string;
  readonly now: number;
  /** The run whose hook has the token that this one asks for. */
  readonly conflictingRunId?: string | undefined;
}

/** The events that a request becomes, which are stored together or not at all. None: everything is so already. */
export interface Decision {
  readonly events: readonly NewEvent[];
  /** The request created its step. */
  readonly stepCreated?: true;
}

type Data = Readonly<Record<string, unknown>>;
const unchanged: Decision = { events: [] };

/** Decides on a request by the state alone; throws the errors by which the framework recognises a refusal. */
export function decide(state: RunState, request: NewEvent, by: Circumstances): Decision {
  const { specVersion } = request;
  const { events, ...rest } = decideOn(state, request, by);
  return { ...rest, events: specVersion === undefined ? events : events.map((event) => ({ ...event, specVersion })) };
}

function decideOn(state: RunState, request: NewEvent, by: Circumstances): Decision {
  const { eventType } = request;
  const data = request.eventData ?? {};
  if (eventType === "run_created") return createRun(state, request, data, by);
  if (eventType === "run_started") return startRun(state, request, data, by);
  const { run } = state;
  if (run === undefined) throw new WorkflowRunNotFoundError(by.runId);
  if (eventType.startsWith("step_")) return decideStep(state, run, request, by);
  if (hasEnded(run)) return decideEnded(run, request);
  if (eventType.startsWith("hook_")) return decideHook(state, request, by);
  if (eventType.startsWith("wait_")) return decideWait(state, request);
  if (eventType === "attr_set") checkAttributes(state, run, request, data);
  return { events: [request] };
}

function createRun(state: RunState, request: NewEvent, data: Data, { runId }: Circumstances): Decision {
  if (state.run !== undefined) throw new EntityConflictError(`Workflow run "${runId}" already exists`);
  checkFirstAttributes(data);
  return { events: [request] };
}

/** The message of a start carries what creates the run: the process that started it may have died before it did. */
function startRun(state: RunState, request: NewEvent, data: Data, { runId }: Circumstances): Decision {
  const started: NewEvent = { eventType: request.eventType };
  const { run } = state;
  if (run === undefined) {
    const { deploymentId, workflowName, input } = data;
    if (deploymentId === undefined || workflowName === undefined || input === undefined) {
      throw new WorkflowRunNotFoundError(runId);
    }
    checkFirstAttributes(data);
    return { events: [{ eventType: "run_created", eventData: data }, started] };
  }
  if (hasEnded(run)) throw new RunExpiredError(`Workflow run "${runId}" has ended: it is ${run.status}`);
  return run.status === "running" ? unchanged : { events: [started] };
}

function checkFirstAttributes({ attributes = {}, allowReservedAttributes }: Data): void {
  const changes = Object.entries(attributes as Record<string, string>).map(([key, value]) => ({ key, value }));
  validateAttributeChanges(changes, { allowReservedAttributes: allowReservedAttributes === true });
}

function checkAttributes(state: RunState, run: RunEntity, { correlationId }: NewEvent, data: Data): void {
  const { changes, writer, allowReservedAttributes } = data as {
    changes: AttributeChange[];
    writer: { type: string };
  } & Data;
  const existingKeys = Object.keys(run.attributes);
  validateAttributeChanges(changes, { existingKeys, allowReservedAttributes: allowReservedAttributes === true });
  if (correlationId !== undefined && writer.type === "workflow" && state.settled.has(correlationId)) {
    throw new EntityConflictError(`Attribute event "${correlationId}" already exists`);
  }
}

/** What may still be asked of a run that has ended, steps aside: nothing, but to cancel a cancelled one. */
function decideEnded(run: RunEntity, { eventType, correlationId = "" }: NewEvent): Decision {
  if (eventType === "run_cancelled" && run.status === "cancelled") return unchanged;
  if (eventType === "hook_received" || eventType === "hook_disposed") throw new HookNotFoundError(correlationId);
  throw new EntityConflictError(
    `Workflow run "${run.runId}" has ended: it is ${run.status}, and takes no ${eventType}`,
  );
}

function decideStep(state: RunState, run: RunEntity, request: NewEvent, { now }: Circumstances): Decision {
  const { eventType, correlationId = "" } = request;
  const { input, ...rest } = request.eventData ?? {};
  const step = state.steps.get(correlationId);
  const isLazy = eventType === "step_started" && typeof rest.stepName === "string" && input !== undefined;
  if (eventType === "step_created" || isLazy) {
    if (hasEnded(run)) throw new EntityConflictError(`Workflow run "${run.runId}" has ended: it takes no new step`);
    // Of several who start a step at once, one creates it; the others learn here that they must not execute it.
    if (step !== undefined) throw new EntityConflictError(`Step "${correlationId}" already created`);
    if (!isLazy) return { events: [request] };
    const created = { eventType: "step_created", correlationId, eventData: { stepName: rest.stepName, input } };
    return { events: [created, { ...request, eventData: rest }], stepCreated: true };
  }
  if (step === undefined) throw new WorkflowWorldError(`Step "${correlationId}" not found`, { status: 404 });
  if (hasEnded(step)) throw new EntityConflictError(`Step "${correlationId}" has ended: it is ${step.status}`);
  if (hasEnded(run) && step.status !== "running") {
    throw new RunExpiredError(`Workflow run "${run.runId}" has ended, and step "${correlationId}" does not run`);
  }
  const waitMs = eventType === "step_started" && step.retryAfter !== undefined ? step.retryAfter.getTime() - now : 0;
  if (waitMs > 0) {
    throw new TooEarlyError(`Step "${correlationId}" may not start yet`, { retryAfter: Math.ceil(waitMs / 1_000) });
  }
  return { events: [request] };
}

function decideHook(state: RunState, request: NewEvent, { conflictingRunId }: Circumstances): Decision {
  const { eventType, correlationId = "" } = request;
  if (eventType !== "hook_created") {
    if (liveHook(state, correlationId) === undefined) throw new HookNotFoundError(correlationId);
    return { events: [request] };
  }
  if (state.hooks.has(correlationId) || state.settled.has(correlationId)) {
    throw new EntityConflictError(`Hook "${correlationId}" already created`);
  }
  if (conflictingRunId === undefined) return { events: [request] };
  const eventData = { token: request.eventData?.token, conflictingRunId };
  return { events: [{ eventType: "hook_conflict", correlationId, eventData }] };
}

function decideWait(state: RunState, request: NewEvent): Decision {
  const { eventType, correlationId = "" } = request;
  const wait = state.waits.get(correlationId);
  if (eventType === "wait_created") {
    if (wait !== undefined) throw new EntityConflictError(`Wait "${correlationId}" already exists`);
  } else {
    if (wait === undefined) throw new WorkflowWorldError(`Wait "${correlationId}" not found`, { status: 404 });
    if (wait.status === "completed") throw new EntityConflictError(`Wait "${correlationId}" already completed`);
  }
  return { events: [request] };
}
