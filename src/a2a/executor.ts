import { type AgentCard, type Message, Role, type Task, TaskState } from "@a2a-js/sdk";
import {
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  type RequestContext,
  type ServerCallContext,
} from "@a2a-js/sdk/server";
import { type LogOption, logOf } from "../base/log.ts";
import type { RunFollower } from "../host/follow-run.ts";
import type { OpenGate } from "../host/gates.ts";
import type { SignalOptions, StartOptions } from "../host/options.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import type { Workflow } from "../sdk/context.ts";
import type { GateDefinition } from "../sdk/gate.ts";
import { assertKnownKeys, functionOr } from "../sdk/validate.ts";
import type { ValuesOf } from "../store/value-keys.ts";
import {
  agentMessage,
  identityOf,
  type TaskInput,
  type TaskMessage,
  taskMessage,
  taskMessageOf,
  textPart,
} from "./messages.ts";
import { TapePushNotificationStore } from "./push-store.ts";
import { TaskScope, type TaskScopeOptions } from "./scope.ts";
import { TaskFeed } from "./task-feed.ts";
import { TapeTaskStore, type TaskView } from "./task-store.ts";

type TaskEvents = NonNullable<ConstructorParameters<typeof DefaultRequestHandler>[3]>;

/** The part of an app that serves tasks. */
export interface TaskApp extends ValuesOf, RunFollower {
  /** Starts the run of a task. */
  start<I, O>(workflow: Workflow<I, O>, input: I, options?: StartOptions): Promise<unknown>;
  /** Sends the next message to it. */
  signal<T>(run: string, gate: GateDefinition<T>, value: T, options?: SignalOptions): Promise<void>;
  /** Cancels it. */
  cancel(run: string, options: { readonly reason: string }): Promise<void>;
  /** Finds what it waits for. */
  readonly gates: { list(filter: { run: string }): Promise<readonly OpenGate[]> };
}

/** How runs of tasks are started and answered. */
export interface TapeExecutorOptions extends TaskScopeOptions {
  /** Budget, labels and queue of the runs. */
  readonly start?: Omit<StartOptions, "id" | "by" | "signals" | "transaction">;
  /** Gates with `forAgents`, besides `taskMessage`, that clients answer: their schemas check the answers. */
  readonly gates?: readonly GateDefinition<unknown>[];
  /** The value for one of these gates. Default: the first data part of the message, otherwise its text. */
  readonly answer?: (message: TaskMessage, gate: OpenGate) => unknown;
  /** As in `Tape.open`. */
  readonly log?: LogOption;
}

const optionKeys = ["prefix", "owner", "start", "gates", "answer", "log"];
/** The signal was not sent; the client receives the reason, and may try again. */
const refusals = ["TAPE_BAD_GATE_VALUE", "TAPE_NOT_APPROVER", "TAPE_SELF_APPROVAL", "TAPE_TOO_LARGE"] as const;

/** An executor whose tasks are runs, and what a request handler needs beside it. */
export class TapeExecutor implements AgentExecutor {
  readonly tasks: TapeTaskStore;
  readonly pushConfigs: TapePushNotificationStore;
  /** The events of tasks, wherever their runs are driven. The handler needs it as its fourth argument. */
  readonly buses: TaskEvents;
  readonly #app: TaskApp;
  readonly #workflow: Workflow<TaskInput, unknown>;
  readonly #scope: TaskScope;
  readonly #options: TapeExecutorOptions;

  constructor(app: TaskApp, workflow: Workflow<TaskInput, unknown>, options: TapeExecutorOptions) {
    assertKnownKeys("tapeExecutor", options, optionKeys);
    functionOr("tapeExecutor", "answer", options.answer);
    const { prefix = "a2a", owner } = options;
    const scope = { prefix, ...(owner && { owner }) };
    this.#app = app;
    this.#workflow = workflow;
    this.#options = options;
    this.#scope = new TaskScope("tapeExecutor", scope);
    this.tasks = new TapeTaskStore(app, scope);
    this.pushConfigs = new TapePushNotificationStore(app, scope);
    const log = logOf(options.log);
    const feed = (taskId: string, context: ServerCallContext | undefined, lazy: boolean): TaskFeed =>
      new TaskFeed({ app, log, view: () => this.tasks.view(taskId, context!) }, { lazy });
    this.buses = {
      createOrGetByTaskId: (taskId, context) => feed(taskId, context, false),
      getByTaskId: (taskId, context) => feed(taskId, context, true),
      cleanupByTaskId: () => {},
    };
  }

  /** Starts a task's run, or sends it the next message. */
  execute = async (request: RequestContext, bus: ExecutionEventBus): Promise<void> => {
    if (!(bus instanceof TaskFeed)) {
      const why = "tapeExecutor needs its own events: new DefaultRequestHandler(card, e.tasks, e, e.buses)";
      throw new TapeError("TAPE_BAD_INPUT", why, { field: "eventBusManager" });
    }
    const { taskId, context } = request;
    const refusal = request.task === undefined ? await this.#start(request) : await this.#answer(request, request.task);
    const view = await this.tasks.view(taskId, context);
    if (view === undefined) throw new TapeError("TAPE_RUN_NOT_FOUND", `task ${taskId} is not a run`, { task: taskId });
    const first = request.task === undefined ? submitted(view) : view;
    bus.publish({ kind: "task", data: first.task });
    if (refusal === undefined) return bus.follow(first);
    const message = agentMessage(view.task, `${request.userMessage.messageId}/refused`, [textPart(refusal)]);
    const status = { ...view.task.status!, message };
    bus.publish({ kind: "statusUpdate", data: { taskId, contextId: request.contextId, status, metadata: undefined } });
  };

  /** Cancels the run of a task. */
  cancelTask = async (taskId: string): Promise<void> => {
    await this.#app.cancel(this.#scope.runOf(taskId), { reason: "the client of the task" });
  };

  async #start({ taskId, contextId, context, userMessage }: RequestContext): Promise<undefined> {
    const input: TaskInput = { taskId, contextId, ...taskMessageOf(userMessage) };
    const { start } = this.#options;
    const labels = { ...start?.labels, [this.#scope.prefix]: this.#scope.of(context) };
    const by = this.#scope.ownerOf(context);
    await this.#app.start(this.#workflow, input, { ...start, id: this.#scope.runOf(taskId), labels, by });
  }

  /** Answers the gate that the task shows, and no other one. Returns why not, for the client. */
  async #answer({ taskId, context, userMessage }: RequestContext, task: Task): Promise<string | undefined> {
    // A message that comes again after it was taken: its answer has been sent.
    if (task.status?.state !== TaskState.TASK_STATE_INPUT_REQUIRED) return undefined;
    const run = this.#scope.runOf(taskId);
    const pos = Number(task.status.message?.messageId.slice(taskId.length + 1));
    const open = (await this.#app.gates.list({ run })).find((gate) => gate.pos === pos);
    if (open === undefined) return undefined;
    const gate = [taskMessage, ...(this.#options.gates ?? [])].find(({ name }) => name === open.name);
    if (gate === undefined) return `gate ${open.name} is not among the gates of this agent`;
    const given = taskMessageOf(userMessage);
    const value = gate === taskMessage ? given : await (this.#options.answer ?? valueIn)(given, open);
    const by = this.#scope.ownerOf(context);
    const key = identityOf(userMessage); // sent again, it answers no second gate
    try {
      await this.#app.signal(run, gate, value, { key, binds: open.binds, mustMatch: true, by });
    } catch (error) {
      if (refusals.some((code) => isTapeError(error, code))) return (error as TapeError).message;
      if (!isTapeError(error, "TAPE_GATE_STALE") && !isTapeError(error, "TAPE_RUN_ENDED")) throw error;
    }
    return undefined;
  }
}

/** The task as it was when its run was created: everything since then is still to be shown. */
function submitted({ task, run }: TaskView): TaskView {
  const isUsers = ({ role }: Message): boolean => role === Role.ROLE_USER;
  const status = { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: task.status?.timestamp };
  const first: Task = { ...task, status, artifacts: [], history: task.history.filter(isUsers) };
  return { task: first, ...(run && { run: { id: run.id, seq: 1, at: run.at, gates: [] } }) };
}

function valueIn({ text, message }: TaskMessage): unknown {
  return message.parts?.find(({ data }) => data !== undefined)?.data ?? text;
}

/**
 * An executor for the SDK's request handler: a task is a run of this workflow. The run's id follows from the task's, an
 * open gate is `input-required`, a cancellation cancels the run, and its end is the end of the task.
 *
 * @example
 * const executor = tapeExecutor(app, chat);
 * const handler = new DefaultRequestHandler(card, executor.tasks, executor, executor.buses, executor.pushConfigs);
 */
export function tapeExecutor<O>(
  app: TaskApp,
  workflow: Workflow<TaskInput, O>,
  options: TapeExecutorOptions = {},
): TapeExecutor {
  return new TapeExecutor(app, workflow as Workflow<TaskInput, unknown>, options);
}

/** The SDK's request handler with {@link tapeExecutor} and its stores. */
export function tapeRequestHandler<O>(
  app: TaskApp,
  workflow: Workflow<TaskInput, O>,
  card: AgentCard,
  options: TapeExecutorOptions = {},
): DefaultRequestHandler {
  const executor = tapeExecutor(app, workflow, options);
  return new DefaultRequestHandler(card, executor.tasks, executor, executor.buses, executor.pushConfigs);
}
