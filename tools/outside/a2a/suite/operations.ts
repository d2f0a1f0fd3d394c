import { type Artifact, type StreamResponse, Task, TaskState, taskStateToJSON } from "@a2a-js/sdk";
import type { Client } from "@a2a-js/sdk/client";
import { eventsOf, message, sent, until, webhook } from "./clients.ts";

/** One operation of the protocol, or a few that belong together; the result is compared between servers. */
export type Operation = (clients: { readonly ada: Client; readonly bob: Client }) => Promise<unknown>;

const isEnded = ({ status }: Task): boolean => [3, 4, 5, 7].includes(status!.state);
const get = (client: Client, id: string, historyLength?: number) =>
  client.getTask({ id, tenant: "", ...(historyLength !== undefined && { historyLength }) });

/** Sends each, at a time of its own: lists are sorted by milliseconds. */
async function sentApart(client: Client, contextId: string, names: readonly string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const name of names) {
    ids.push((await sent(client, message(name, { message: { contextId } }))).id);
    for (const from = Date.now(); Date.now() < from + 2; ) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return ids;
}

/** What the SDK's client throws: the class and the codes of the protocol. */
async function failure(work: Promise<unknown> | (() => Promise<unknown>)): Promise<unknown> {
  try {
    return { result: await (typeof work === "function" ? work() : work) };
  } catch (error) {
    const { reason, code, statusCode } = error as { reason?: string; code?: number; statusCode?: number };
    return { reason, code, statusCode };
  }
}

/** The task that a client has put together from a stream, and how the stream went. */
function assembled(events: readonly StreamResponse[]) {
  const artifacts = new Map<string, Artifact>();
  const states: string[] = [];
  for (const { payload } of events) {
    if (payload?.$case === "statusUpdate") states.push(taskStateToJSON(payload.value.status!.state));
    if (payload?.$case !== "artifactUpdate") continue;
    const { artifact, append } = payload.value;
    const before = append ? artifacts.get(artifact!.artifactId) : undefined;
    artifacts.set(artifact!.artifactId, { ...artifact!, parts: [...(before?.parts ?? []), ...artifact!.parts] });
  }
  const parts = [...artifacts.values()].map(({ artifactId, parts }) => ({
    artifactId,
    text: parts.map(({ content }) => (content?.$case === "text" ? content.value : content)).join(""),
  }));
  // How often a task says that it works is up to the agent.
  const shown = states.filter((state) => state !== "TASK_STATE_WORKING");
  return { first: events[0]?.payload?.$case, states: shown, parts };
}

export const operations: Readonly<Record<string, Operation>> = {
  ...Object.fromEntries(
    [
      "complete-task",
      "artifact-text",
      "artifact-data",
      "artifact-file",
      "artifact-file-url",
      "reject-task",
      "fail",
    ].map((name): [string, Operation] => [
      `send: ${name}`,
      async ({ ada }) => Task.toJSON(await sent(ada, message(name))),
    ]),
  ),
  "send: a reply without a task": async ({ ada }) =>
    ada.sendMessage(message("hello", { message: { messageId: "tck-message-response" } })),
  "send and return at once": async ({ ada }) => {
    const task = await sent(ada, message("slow", { configuration: { returnImmediately: true } }));
    return [isEnded(task), Task.toJSON(await until(ada, task.id, isEnded))];
  },
  "send with a short history": async ({ ada }) => {
    const { id, history } = await sent(ada, message("input-required", { configuration: { historyLength: 1 } }));
    return [history, Task.toJSON(await get(ada, id))];
  },
  "stream: whole artifacts": async ({ ada }) => assembled(await eventsOf(ada.sendMessageStream(message("stream-001")))),
  "stream: words": async ({ ada }) =>
    assembled(await eventsOf(ada.sendMessageStream(message("stream-artifact-chunked")))),
  "stream: a question, then its answer": async ({ ada }) => {
    const question = await eventsOf(ada.sendMessageStream(message("input-required")));
    const { id } = question[0]!.payload!.value as Task;
    const answered = await eventsOf(ada.sendMessageStream(message("stream-003", { message: { taskId: id } })));
    return [assembled(question), assembled(answered), Task.toJSON(await get(ada, id))];
  },
  "several turns, and the length of the history": async ({ ada }) => {
    const { id } = await sent(ada, message("input-required"));
    await sent(ada, message("input-required once more", { message: { taskId: id } }));
    const last = await sent(ada, message("artifact-text", { message: { taskId: id } }));
    const lengths = [undefined, 0, 1, 2, 100];
    return [Task.toJSON(last), await Promise.all(lengths.map(async (n) => Task.toJSON(await get(ada, id, n))))];
  },
  "several messages under one id": async ({ ada }) => {
    const { id: taskId } = await sent(ada, message("input-required", { message: { messageId: "same" } }));
    for (const text of ["input-required 1", "input-required 2"])
      await sent(ada, message(text, { message: { taskId, messageId: "same" } }));
    return Task.toJSON(await sent(ada, message("artifact-text", { message: { taskId, messageId: "same" } })));
  },
  "list: filters": async ({ ada }) => {
    const contextId = crypto.randomUUID();
    const start = new Date(Date.now() - 1_000).toISOString();
    await sentApart(ada, contextId, ["artifact-text", "input-required", "fail", "artifact-data"]);
    const list = async (more: object) => {
      const request = { tenant: "", contextId, status: TaskState.TASK_STATE_UNSPECIFIED, pageToken: "", ...more };
      const { tasks, totalSize, pageSize, nextPageToken } = await ada.listTasks(request as never);
      return { tasks: tasks.map((task) => Task.toJSON(task)), totalSize, pageSize, more: nextPageToken !== "" };
    };
    return [
      await list({}),
      await list({ includeArtifacts: true }),
      await list({ historyLength: 0 }),
      await list({ status: TaskState.TASK_STATE_INPUT_REQUIRED }),
      await list({ status: TaskState.TASK_STATE_CANCELED }),
      await list({ statusTimestampAfter: start }),
      await list({ statusTimestampAfter: "2999-01-01T00:00:00.000Z" }),
      await list({ contextId: "another" }),
    ];
  },
  "list: pages": async ({ ada }) => {
    const contextId = crypto.randomUUID();
    const ids = await sentApart(ada, contextId, Array(5).fill("artifact-text"));
    const pages: number[][] = [];
    for (let pageToken = ""; ; ) {
      const page = await ada.listTasks({
        tenant: "",
        contextId,
        status: 0,
        pageSize: 2,
        pageToken,
        statusTimestampAfter: undefined,
      });
      pages.push([...page.tasks.map(({ id }) => ids.indexOf(id)), page.totalSize]);
      pageToken = page.nextPageToken;
      if (pageToken === "") return pages;
    }
  },
  "list: what is refused": async ({ ada }) => {
    const list = (more: object) =>
      failure(ada.listTasks({ tenant: "", contextId: "", status: 0, pageToken: "", ...more } as never));
    return [await list({ pageSize: 0 }), await list({ pageSize: 101 }), await list({ pageToken: "bm8=" })];
  },
  "cancel: a task that waits": async ({ ada }) => {
    const { id } = await sent(ada, message("input-required"));
    const cancelled = await ada.cancelTask({ id, tenant: "", metadata: undefined });
    const again = await ada.cancelTask({ id, tenant: "", metadata: undefined });
    const late = failure(ada.sendMessage(message("complete-task", { message: { taskId: id } })));
    return [cancelled.status?.state, again.status?.state, (await get(ada, id)).status?.state, await late];
  },
  "cancel: a task that works": async ({ ada }) => {
    const { id } = await sent(ada, message("endless", { configuration: { returnImmediately: true } }));
    const { status } = await ada.cancelTask({ id, tenant: "", metadata: undefined });
    return [status?.state, (await get(ada, id)).status?.state];
  },
  "cancel: what is refused": async ({ ada, bob }) => {
    const done = await sent(ada, message("artifact-text"));
    const open = await sent(ada, message("input-required"));
    const cancel = (client: Client, id: string) => failure(client.cancelTask({ id, tenant: "", metadata: undefined }));
    return [
      await cancel(ada, done.id),
      await cancel(ada, "unknown"),
      await cancel(bob, open.id),
      (await get(ada, open.id)).status?.state,
    ];
  },
  "subscribe: until the end": async ({ ada }) => {
    const { id } = await sent(ada, message("slow", { configuration: { returnImmediately: true } }));
    return assembled(await eventsOf(ada.resubscribeTask({ id, tenant: "" })));
  },
  "subscribe: two readers": async ({ ada }) => {
    const { id } = await sent(ada, message("slow", { configuration: { returnImmediately: true } }));
    const both = [1, 2].map(async () => assembled(await eventsOf(ada.resubscribeTask({ id, tenant: "" }))));
    return Promise.all(both);
  },
  "subscribe: what is refused": async ({ ada, bob }) => {
    const done = await sent(ada, message("artifact-text"));
    const slow = await sent(ada, message("slow", { configuration: { returnImmediately: true } }));
    const subscribe = (client: Client, id: string) =>
      failure(() => eventsOf(client.resubscribeTask({ id, tenant: "" })));
    return [await subscribe(ada, done.id), await subscribe(ada, "unknown"), await subscribe(bob, slow.id)];
  },
  "messages: what is refused": async ({ ada, bob }) => {
    const done = await sent(ada, message("artifact-text"));
    const open = await sent(ada, message("input-required"));
    const send = (client: Client, own: object) =>
      failure(client.sendMessage(message("artifact-text", { message: own })));
    return [
      await send(ada, { taskId: done.id }),
      await send(ada, { taskId: "unknown" }),
      await send(bob, { taskId: open.id }),
      await send(ada, { taskId: open.id, contextId: "another" }),
      await send(ada, { messageId: "" }),
      await send(ada, { parts: [{ raw: "AAAA", mediaType: "image/png" }] }),
    ];
  },
  "get: what is refused": async ({ ada, bob }) => {
    const done = await sent(ada, message("artifact-text"));
    return [await failure(get(ada, "unknown")), await failure(get(ada, "")), await failure(get(bob, done.id))];
  },
  "owners see their own tasks": async ({ ada, bob }) => {
    const contextId = crypto.randomUUID();
    await sent(ada, message("artifact-text", { message: { contextId } }));
    const seen = (client: Client) =>
      client.listTasks({ tenant: "", contextId, status: 0, pageToken: "", statusTimestampAfter: undefined });
    return [(await seen(ada)).totalSize, (await seen(bob)).totalSize];
  },
  "push: configurations": async ({ ada, bob }) => {
    const { id: taskId } = await sent(ada, message("input-required"));
    const config = (id: string) => ({
      tenant: "",
      id,
      taskId,
      url: `http://127.0.0.1:1/${id}`,
      token: "t",
      authentication: { scheme: "Bearer", credentials: "c" },
    });
    const list = async () =>
      (await ada.listTaskPushNotificationConfig({ tenant: "", taskId, pageSize: 0, pageToken: "" })).configs;
    const created = [
      await ada.createTaskPushNotificationConfig(config("a")),
      await ada.createTaskPushNotificationConfig(config("b")),
    ];
    const unnamed = await ada.createTaskPushNotificationConfig(config(""));
    const replaced = await ada.createTaskPushNotificationConfig({ ...config("a"), token: "u" });
    const one = (id: string, client = ada) => failure(client.getTaskPushNotificationConfig({ tenant: "", taskId, id }));
    const before = [await list(), await one("a"), await one("b"), await one("c"), await one("a", bob)];
    await ada.deleteTaskPushNotificationConfig({ tenant: "", taskId, id: "a" });
    await ada.deleteTaskPushNotificationConfig({ tenant: "", taskId, id: "a" });
    const unknown = await failure(ada.createTaskPushNotificationConfig({ ...config("a"), taskId: "unknown" }));
    return [created, unnamed.id !== "", replaced, before, (await list()).length, await one("a"), unknown];
  },
  "push: notifications": async ({ ada }) => {
    const hook = await webhook();
    const config = { url: hook.url, token: "secret-1" };
    const { id } = await sent(ada, message("artifact-text", { configuration: { taskPushNotificationConfig: config } }));
    const last = () =>
      hook.bodies.at(-1) as
        | { token: string; body: { statusUpdate?: { taskId: string; status: { state: string } } } }
        | undefined;
    while (last()?.body.statusUpdate?.status.state !== "TASK_STATE_COMPLETED")
      await new Promise((resolve) => setTimeout(resolve, 10));
    hook.server.close();
    return [last()!.token, last()!.body.statusUpdate!.taskId === id];
  },
};
