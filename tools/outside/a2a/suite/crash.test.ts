import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Task, TaskState } from "@a2a-js/sdk";
import type { Client } from "@a2a-js/sdk/client";
import { expect, it, onTestFinished } from "vitest";
import { Bank } from "../agents/bank.ts";
import { clientOf, eventsOf, message, until } from "./clients.ts";

interface Agent {
  readonly client: Client;
  readonly process: ChildProcess;
  readonly gone: Promise<unknown>;
}

/** A folder with the store and the bank, and agents on it: processes of their own. */
function world() {
  const folder = mkdtempSync(join(tmpdir(), "tape-a2a-"));
  const started: ChildProcess[] = [];
  onTestFinished(async () => {
    for (const child of started) child.kill("SIGKILL");
    await Promise.all(started.map(exited));
    rmSync(folder, { recursive: true, force: true });
  });
  const env = { ...process.env, STORE: `sqlite:${join(folder, "tape.db")}`, BANK: join(folder, "bank") };
  const agent = async (more: Record<string, string> = {}): Promise<Agent> => {
    const script = join(import.meta.dirname, "..", "agents", "treasury.ts");
    const child = spawn(process.execPath, [script], { env: { ...env, ...more }, stdio: ["ignore", "pipe", "inherit"] });
    started.push(child);
    const url = await new Promise<string>((resolve, reject) => {
      child.stdout.once("data", (line: Buffer) => resolve(String(line).trim()));
      child.once("exit", () => reject(new Error("the agent ended before it listened")));
    });
    return { client: await clientOf(url, "JSONRPC"), process: child, gone: exited(child) };
  };
  return { bank: new Bank(env.BANK), agent };
}

const exited = (child: ChildProcess): Promise<unknown> =>
  child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve()
    : new Promise((resolve) => child.once("exit", resolve));

const contextId = "c-1";
const invoice = () => message("7", { message: { contextId, messageId: "first" } });
const yes = (taskId: string) => message("yes", { message: { taskId, messageId: "answer" } });
const isWaiting = ({ status }: Task): boolean => status?.state === TaskState.TASK_STATE_INPUT_REQUIRED;
const isDone = ({ status }: Task): boolean => status?.state === TaskState.TASK_STATE_COMPLETED;

/** What a client does whose agent may die: it finds its task, and sends its messages again until the task is done. */
async function insist(client: Client, isStarted = false): Promise<Task> {
  const list = { tenant: "", contextId, status: 0, pageToken: "", statusTimestampAfter: undefined };
  let { tasks } = await client.listTasks(list);
  if (isStarted) expect(tasks).toHaveLength(1);
  else if (tasks.length === 0) await eventsOf(client.sendMessageStream(invoice()));
  ({ tasks } = await client.listTasks(list));
  expect(tasks).toHaveLength(1);
  const { id } = tasks[0]!;
  const task = await until(client, id, (one) => isWaiting(one) || isDone(one) || isAnswered(one));
  if (isWaiting(task)) await client.sendMessage(yes(id));
  return until(client, id, isDone);
}

const isAnswered = ({ history }: Task): boolean => history.some(({ messageId }) => messageId === "answer");
const resultOf = ({ artifacts }: Task): unknown =>
  artifacts.map(({ artifactId, parts }) => [artifactId, parts.map(({ content }) => content?.value)]);
const wordsOf = ({ history }: Task): unknown => history.map(({ parts }) => parts[0]?.content?.value);

const points = [
  ...["before the start", "after the start", "in mid-sentence", "before the signal", "after the signal"],
  ...["after the answer", "before the payment", "after the payment", "after the effect"],
];

it.each(points)("an agent is killed %s: another one shows the task, and pays once", async (name) => {
  const { bank, agent } = world();
  const first = await agent({ KILL: name });
  const broken = insist(first.client).then(
    () => "done",
    () => "broken",
  );
  await first.gone;
  expect(await broken).toBe("broken");
  const second = await agent();
  const task = await insist(second.client, name !== "before the start");
  expect(resultOf(task)).toEqual([["result", ["paid 7"]]]);
  expect(wordsOf(task)).toEqual(["7", "Pay 7?", "yes"]);
  expect(bank.payments).toEqual(["7"]);
});

it("a task is followed through another process, from its words to its end", async () => {
  const { bank, agent } = world();
  const [one, two] = [await agent(), await agent()];
  const events = await eventsOf(one.client.sendMessageStream(invoice()));
  const { id } = events[0]!.payload!.value as Task;
  const followed = eventsOf(two.client.resubscribeTask({ id, tenant: "" }));
  const task = await two.client.sendMessage(yes(id)); // the question was shown by the other process
  expect(resultOf(task as Task)).toEqual([["result", ["paid 7"]]]);
  const kinds = (await followed).map(({ payload }) => payload?.$case);
  expect([kinds[0], kinds.at(-1)]).toEqual(["task", "statusUpdate"]);
  expect(isDone(await one.client.getTask({ id, tenant: "" }))).toBe(true);
  expect(bank.payments).toEqual(["7"]);
});

it("a task is cancelled through another process, and nothing is paid", async () => {
  const { bank, agent } = world();
  const [one, two] = [await agent(), await agent()];
  const events = await eventsOf(one.client.sendMessageStream(invoice()));
  const { id } = events[0]!.payload!.value as Task;
  const { status } = await two.client.cancelTask({ id, tenant: "", metadata: undefined });
  expect(status?.state).toBe(TaskState.TASK_STATE_CANCELED);
  expect((await one.client.getTask({ id, tenant: "" })).status?.state).toBe(TaskState.TASK_STATE_CANCELED);
  await expect(one.client.sendMessage(yes(id))).rejects.toThrow(/terminal state/);
  expect(bank.payments).toEqual([]);
});

it("a zombie that wakes up changes neither the task nor its words", async () => {
  const { bank, agent } = world();
  const zombie = await agent({ STOP: "in mid-sentence" });
  void insist(zombie.client).catch(() => {});
  const second = await agent();
  const list = { tenant: "", contextId, status: 0, pageToken: "", statusTimestampAfter: undefined };
  let id: string | undefined;
  while (id === undefined) id = (await second.client.listTasks(list)).tasks[0]?.id;
  await until(second.client, id, isWaiting); // it took the run over after the lease had expired
  zombie.process.kill("SIGCONT");
  const shown = await until(zombie.client, id, isWaiting);
  expect(wordsOf(shown)).toEqual(["7", "Pay 7?"]);
  await second.client.sendMessage(yes(id)).catch(() => {}); // the zombie's client may have been faster
  const tasks = [await until(second.client, id, isDone), await until(zombie.client, id, isDone)];
  expect(tasks.map(resultOf)).toEqual(Array(2).fill([["result", ["paid 7"]]]));
  expect(tasks.map(wordsOf)).toEqual(Array(2).fill(["7", "Pay 7?", "yes"]));
  expect(bank.payments).toEqual(["7"]);
});
