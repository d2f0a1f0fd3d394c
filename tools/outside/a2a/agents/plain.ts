import { Artifact, Message, Role, type Task, TaskState } from "@a2a-js/sdk";
import type { AgentExecutor, ExecutionEventBus, RequestContext } from "@a2a-js/sdk/server";
import type { WireMessage } from "durable-tape/a2a";
import { scenarioOf } from "./scenarios.ts";

/** The same agent as the SDK's examples write one: it lives in one process, and publishes what it does. */
export class PlainExecutor implements AgentExecutor {
  readonly #cancelled = new Map<string, () => void>();
  readonly #contexts = new Map<string, string>();

  execute = async (request: RequestContext, bus: ExecutionEventBus): Promise<void> => {
    const { taskId, contextId, userMessage, task } = request;
    this.#contexts.set(taskId, contextId);
    const status = (state: TaskState, words?: string): void =>
      bus.publish({
        kind: "statusUpdate",
        data: { taskId, contextId, status: statusOf(request, state, words), metadata: undefined },
      });
    const first: Task = task ?? {
      ...{ id: taskId, contextId, artifacts: [], history: [userMessage], metadata: undefined },
      status: statusOf(request, TaskState.TASK_STATE_SUBMITTED),
    };
    const working = statusOf(request, TaskState.TASK_STATE_WORKING);
    bus.publish({ kind: "task", data: task === undefined ? first : { ...first, status: working } });
    if (task === undefined) status(TaskState.TASK_STATE_WORKING);
    const { words, waitMs, ask, reject, fail, output } = scenarioOf(Message.toJSON(userMessage) as WireMessage);
    const artifact = (json: object, append: boolean, lastChunk: boolean): void => {
      const data = { taskId, contextId, artifact: Artifact.fromJSON(json), append, lastChunk, metadata: undefined };
      bus.publish({ kind: "artifactUpdate", data });
    };
    for (const [k, text] of (words ?? []).entries()) {
      artifact({ artifactId: "result", name: "result", parts: [{ text, mediaType: "text/plain" }] }, k > 0, false);
    }
    if (waitMs !== undefined && (await this.#waited(taskId, waitMs)) === "cancelled") return;
    if (reject !== undefined) return status(TaskState.TASK_STATE_REJECTED, reject);
    if (fail !== undefined) return status(TaskState.TASK_STATE_FAILED, fail);
    if (ask !== undefined) return status(TaskState.TASK_STATE_INPUT_REQUIRED, ask);
    for (const one of output?.artifacts ?? []) artifact(one, false, true);
    status(TaskState.TASK_STATE_COMPLETED, output?.message);
  };

  cancelTask = async (taskId: string, bus: ExecutionEventBus): Promise<void> => {
    this.#cancelled.get(taskId)?.();
    const contextId = this.#contexts.get(taskId) ?? "";
    const status = statusOf({ taskId, contextId }, TaskState.TASK_STATE_CANCELED);
    bus.publish({ kind: "statusUpdate", data: { taskId, contextId, status, metadata: undefined } });
  };

  #waited(taskId: string, ms: number): Promise<"cancelled" | "over"> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve("over"), ms);
      this.#cancelled.set(taskId, () => {
        clearTimeout(timer);
        resolve("cancelled");
      });
    });
  }
}

function statusOf({ taskId, contextId }: { taskId: string; contextId: string }, state: TaskState, words?: string) {
  const parts = [{ text: words, mediaType: "text/plain" }];
  const message = {
    ...Message.fromJSON({ messageId: crypto.randomUUID(), taskId, contextId, parts }),
    role: Role.ROLE_AGENT,
  };
  return { state, message: words === undefined ? undefined : message, timestamp: new Date().toISOString() };
}
