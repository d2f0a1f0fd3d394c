import { type AttributeChange, applyAttributeChanges, type Step } from "@workflow/world";
import { TapeError } from "../model/errors.ts";
import type { LogEvent, RunEntity, RunState } from "./entities.ts";

type Data = Readonly<Record<string, unknown>>;

/** Adds one event to the state. The only place that says what an event changes; entities are replaced, not changed. */
export function addEvent(state: RunState, event: LogEvent): void {
  const data = event.eventData ?? {};
  for (const value of Object.values(data)) if (value instanceof Uint8Array) state.bytes += value.byteLength;
  if (event.eventType === "run_created") state.run = newRun(event, data);
  else if (event.eventType.startsWith("step_")) addStepEvent(state, event, data);
  else if (event.eventType.startsWith("hook_")) addHookEvent(state, event, data);
  else if (event.eventType.startsWith("wait_")) addWaitEvent(state, event, data);
  else addRunEvent(state, event, data);
  state.next++;
}

function newRun({ runId, createdAt, specVersion }: LogEvent, data: Data): RunEntity {
  return {
    ...{ runId, status: "pending", specVersion, createdAt, updatedAt: createdAt },
    deploymentId: data.deploymentId as string,
    workflowName: data.workflowName as string,
    executionContext: data.executionContext,
    input: data.input,
    attributes: (data.attributes as Record<string, string> | undefined) ?? {},
  };
}

function addRunEvent(state: RunState, event: LogEvent, data: Data): void {
  const { run } = state;
  if (run === undefined) throw damaged(event);
  const { createdAt: at, eventType, correlationId } = event;
  const now = { ...run, updatedAt: at };
  switch (eventType) {
    case "run_started":
      state.run = { ...now, status: "running", startedAt: run.startedAt ?? at };
      return;
    case "run_completed":
      state.run = { ...now, status: "completed", output: data.output, completedAt: at };
      return;
    case "run_failed": {
      const code = typeof data.errorCode === "string" ? { errorCode: data.errorCode } : {};
      state.run = { ...now, status: "failed", error: data.error, ...code, completedAt: at };
      return;
    }
    case "run_cancelled":
      state.run = { ...now, status: "cancelled", completedAt: at };
      return;
    case "attr_set":
      if (correlationId !== undefined) state.settled.add(correlationId);
      state.run = { ...now, attributes: applyAttributeChanges(run.attributes, data.changes as AttributeChange[]) };
      return;
    default:
      throw damaged(event);
  }
}

function addStepEvent(state: RunState, event: LogEvent, data: Data): void {
  const { runId, correlationId: stepId = "", createdAt: at, specVersion } = event;
  if (event.eventType === "step_created") {
    const step: Step = {
      ...{ runId, stepId, stepName: data.stepName as string, status: "pending", input: data.input },
      ...{ attempt: 0, createdAt: at, updatedAt: at, specVersion },
    };
    state.steps.set(stepId, step);
    return;
  }
  const step = state.steps.get(stepId);
  if (step === undefined) throw damaged(event);
  state.steps.set(stepId, { ...step, ...stepChange(step, event, data), updatedAt: at });
}

function stepChange(step: Step, event: LogEvent, data: Data): Partial<Step> {
  const at = event.createdAt;
  switch (event.eventType) {
    case "step_started":
      return {
        ...{ status: "running", startedAt: step.startedAt ?? at, attempt: step.attempt + 1 },
        retryAfter: undefined,
      };
    case "step_completed":
      return { status: "completed", output: data.result, completedAt: at };
    case "step_failed":
      return { status: "failed", error: data.error, completedAt: at };
    case "step_retrying":
      return { status: "pending", error: data.error, retryAfter: data.retryAfter as Date | undefined };
    default:
      throw damaged(event);
  }
}

function addHookEvent(state: RunState, event: LogEvent, data: Data): void {
  const { runId, correlationId: hookId = "", createdAt, specVersion } = event;
  const { isWebhook = false, isSystem = false, metadata } = data;
  switch (event.eventType) {
    case "hook_created": {
      const flags = { isWebhook: isWebhook === true, isSystem: isSystem === true };
      // A World has no owners or projects; the schema of hooks wants a text in each.
      const nobodys = { ownerId: "tape", projectId: "tape", environment: "tape" };
      const hook = {
        runId,
        hookId,
        token: data.token as string,
        metadata,
        ...nobodys,
        createdAt,
        specVersion,
        ...flags,
      };
      state.hooks.set(hookId, { hook, disposed: false });
      return;
    }
    case "hook_disposed":
      state.hooks.set(hookId, { hook: state.hooks.get(hookId)!.hook, disposed: true });
      return;
    case "hook_conflict":
      state.settled.add(hookId);
      return;
    case "hook_received":
      return;
    default:
      throw damaged(event);
  }
}

function addWaitEvent(state: RunState, event: LogEvent, data: Data): void {
  const { runId, correlationId: id = "", createdAt: at, specVersion } = event;
  if (event.eventType === "wait_created") {
    const times = { resumeAt: data.resumeAt as Date, createdAt: at, updatedAt: at };
    state.waits.set(id, { waitId: `${runId}-${id}`, runId, status: "waiting", ...times, specVersion });
    return;
  }
  const wait = state.waits.get(id);
  if (wait === undefined) throw damaged(event);
  state.waits.set(id, { ...wait, status: "completed", completedAt: at, updatedAt: at });
}

function damaged({ eventType, eventId, runId }: LogEvent): TapeError {
  const message = `event ${eventId} of ${runId} is ${eventType}, which fits nothing before it`;
  return new TapeError("TAPE_JOURNAL_DAMAGED", message, { run: runId, event: eventId });
}
