import { Artifact, Role, type Task, TaskState, type TaskStatus } from "@a2a-js/sdk";
import type { AgentExecutionEvent } from "@a2a-js/sdk/server";
import { isTerminal, textPart } from "./messages.ts";
import { resultId } from "./projection.ts";

/** What a client has been shown of a task, and the events that show it the rest. */
export class ShownTask {
  readonly #publish: (event: AgentExecutionEvent) => void;
  #task: Task;
  /** The turn whose words the client has; undefined: the next words replace what it has. */
  #turn: number | undefined;

  constructor(task: Task, publish: (event: AgentExecutionEvent) => void) {
    this.#task = task;
    this.#publish = publish;
  }

  get isWorking(): boolean {
    return this.#task.status?.state === TaskState.TASK_STATE_WORKING;
  }

  /** Publishes what is new. true: the task has ended, or asks its client. */
  change(now: Task): boolean {
    const before = this.#task;
    this.#task = now;
    const known = new Set(before.history.map(({ messageId }) => messageId));
    const last = now.status?.message?.messageId;
    for (const message of now.history) {
      const isNew = message.role === Role.ROLE_AGENT && !known.has(message.messageId) && message.messageId !== last;
      if (isNew) this.#status({ ...now.status!, state: TaskState.TASK_STATE_WORKING, message });
    }
    const had = new Map(before.artifacts.map((one) => [one.artifactId, JSON.stringify(one)]));
    for (const artifact of now.artifacts) {
      if (had.get(artifact.artifactId) !== JSON.stringify(artifact)) this.#artifact(artifact, false, true);
    }
    const isSame = before.status?.state === now.status?.state && before.status?.message?.messageId === last;
    if (!isSame) this.#status(now.status!);
    const state = now.status?.state;
    return isTerminal(state) || (!isSame && state === TaskState.TASK_STATE_INPUT_REQUIRED);
  }

  /** Words of a turn that is being written: the result as far as it is known. */
  words(turn: number, text: string): void {
    if (!this.isWorking) {
      const status = { ...this.#task.status!, state: TaskState.TASK_STATE_WORKING, message: undefined };
      this.#task = { ...this.#task, status };
      this.#status(status);
    }
    const artifact = { ...Artifact.fromJSON({ artifactId: resultId, name: resultId }), parts: [textPart(text)] };
    this.#artifact(artifact, this.#turn === turn, false);
    this.#turn = turn;
  }

  /** The turn starts again after a crash. */
  reset(): void {
    this.#turn = undefined;
  }

  #status(status: TaskStatus): void {
    const { id: taskId, contextId } = this.#task;
    this.#publish({ kind: "statusUpdate", data: { taskId, contextId, status, metadata: undefined } });
  }

  #artifact(artifact: Artifact, append: boolean, lastChunk: boolean): void {
    const { id: taskId, contextId } = this.#task;
    const data = { taskId, contextId, artifact, append, lastChunk, metadata: undefined };
    this.#publish({ kind: "artifactUpdate", data });
  }
}
