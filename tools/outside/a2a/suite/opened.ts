import { AgentCard, type Message, type Task, TaskState } from "@a2a-js/sdk";
import { DefaultRequestHandler, ServerCallContext } from "@a2a-js/sdk/server";
import { createRunner, Tape, type TapeContext, workflow } from "durable-tape";
import {
  type TapeExecutor,
  type TapeExecutorOptions,
  type TaskInput,
  tapeExecutor,
  taskMessage,
} from "durable-tape/a2a";
import { beforeAll, onTestFinished } from "vitest";
import { message } from "./clients.ts";

beforeAll(() => {
  console.warn = console.error = () => {}; // the SDK writes a line for each refusal
});

export const card = AgentCard.fromJSON({ name: "test", capabilities: { streaming: true, pushNotifications: true } });
export const ada = new ServerCallContext({ user: { isAuthenticated: true, userName: "ada" }, requestedVersion: "1.0" });
export const {
  TASK_STATE_WORKING: working,
  TASK_STATE_INPUT_REQUIRED: waiting,
  TASK_STATE_COMPLETED: done,
} = TaskState;

export interface OpenedAgent {
  readonly app: Tape;
  readonly executor: TapeExecutor;
  readonly handler: DefaultRequestHandler;
  send(text: string, taskId?: string, own?: object): Promise<Task>;
  get(id: string): Promise<Task>;
}

export async function opened(
  body: (tape: TapeContext, task: TaskInput) => Promise<unknown>,
  options: TapeExecutorOptions = {},
): Promise<OpenedAgent> {
  const agent = workflow("agent", body);
  const app = await Tape.open({ store: "memory:", runner: createRunner({ workflows: [agent] }), log: "silent" });
  onTestFinished(() => app.close());
  const executor = tapeExecutor(app, agent, options);
  const handler = new DefaultRequestHandler(card, executor.tasks, executor, executor.buses, executor.pushConfigs);
  const send = async (text: string, taskId = "", own: object = {}): Promise<Task> =>
    (await handler.sendMessage(message(text, { message: { taskId, ...own } }), ada)) as Task;
  return { app, executor, handler, send, get: (id) => handler.getTask({ id, tenant: "" }, ada) };
}

export const ask = async (tape: TapeContext, question: string): Promise<string> => {
  const answer = await tape.gate(taskMessage, { payload: question });
  return answer.status === "received" ? answer.value.text : answer.status;
};
export const twoQuestions = async (tape: TapeContext): Promise<string> =>
  `${await ask(tape, "first?")} ${await ask(tape, "second?")}`;
export const words = (one: Message | undefined): unknown => one?.parts[0]?.content?.value;
export const shown = ({ status, artifacts, history }: Task): unknown => [
  status?.state,
  words(status?.message),
  artifacts.map(({ parts }) => parts[0]?.content?.value),
  history.map(words),
];
