import { Task } from "@a2a-js/sdk";
import { ServerCallContext } from "@a2a-js/sdk/server";
import { TapeTaskStore } from "durable-tape/a2a";
import { expect, it } from "vitest";
import { ada, done, opened, twoQuestions, words, working } from "./opened.ts";

const task = (more: object = {}): Task =>
  Task.fromJSON({
    id: "t-1",
    contextId: "c",
    status: { state: "TASK_STATE_WORKING", timestamp: "2026-01-01T00:00:00.000Z" },
    ...more,
  });
const user = (text: string) => ({ messageId: text, role: "ROLE_USER", parts: [{ text }] });

it("a late save cannot set back the status of a run", async () => {
  const { executor, send, get } = await opened(async () => "paid");
  const { id } = await send("go");
  const before = await get(id);
  const late = { ...before, status: { ...before.status!, state: working }, artifacts: [] };
  await executor.tasks.save(structuredClone(late), ada);
  expect(await get(id)).toEqual(before);
  expect(before.status?.state).toBe(done);
});

it("nothing is lost when two processes change a task at the same time", async () => {
  const { app } = await opened(async () => "");
  const [one, two] = [new TapeTaskStore(app), new TapeTaskStore(app)];
  await one.save(task({ history: [user("a")] }), ada);
  const [left, right] = [(await one.load("t-1", ada))!, (await two.load("t-1", ada))!];
  left.history.push(...task({ history: [user("b")] }).history);
  right.status = { ...right.status!, state: done };
  right.artifacts.push(...task({ artifacts: [{ artifactId: "x", parts: [{ text: "1" }] }] }).artifacts);
  await two.save(right, ada);
  await one.save(left, ada);
  const stored = (await two.load("t-1", ada))!;
  expect([stored.status?.state, stored.history.map(words), stored.artifacts.length]).toEqual([done, ["a", "b"], 1]);
  const behind = (await one.load("t-1", ada))!;
  await two.save({ ...stored, metadata: { n: 1 } }, ada);
  behind.status = { ...behind.status!, state: working };
  await one.save(behind, ada);
  expect((await two.load("t-1", ada))?.status?.state).toBe(done);
});

it("tenants of the protocol, owners and prefixes are apart", async () => {
  const { app } = await opened(async () => "");
  const store = new TapeTaskStore(app);
  await store.save(task(), ada);
  const others = [
    new ServerCallContext({ user: ada.user!, tenant: "other" }),
    new ServerCallContext({ user: { isAuthenticated: true, userName: "bob" } }),
    new ServerCallContext({ user: { isAuthenticated: true, userName: "ada/t-1" } }),
  ];
  const list = { tenant: "", contextId: "", status: 0, pageToken: "", statusTimestampAfter: undefined };
  for (const other of others) {
    expect(await store.load("t-1", other)).toBeUndefined();
    expect((await store.list(list, other)).totalSize).toBe(0);
  }
  expect(await new TapeTaskStore(app, { prefix: "b2b" }).load("t-1", ada)).toBeUndefined();
  expect((await store.list(list, ada)).totalSize).toBe(1);
});

it("an ended task is removed, an open one is not", async () => {
  const { executor, send } = await opened(twoQuestions);
  const { id } = await send("go");
  await expect(executor.tasks.remove(id, ada)).rejects.toThrow(/has not ended/);
  await send("a", id);
  await send("b", id);
  expect([await executor.tasks.remove(id, ada), await executor.tasks.load(id, ada)]).toEqual([true, undefined]);
  expect(await executor.tasks.remove(id, ada)).toBe(false);
});

it("a page continues where the last one ended, also after its last task has changed", async () => {
  const { app } = await opened(async () => "");
  const store = new TapeTaskStore(app);
  const at = (k: number) => ({ state: "TASK_STATE_WORKING", timestamp: `2026-01-0${k}T00:00:00.000Z` });
  for (const k of [1, 2, 3, 4]) await store.save(task({ id: `t-${k}`, status: at(k) }), ada);
  const list = { tenant: "", contextId: "", status: 0, pageSize: 2, pageToken: "", statusTimestampAfter: undefined };
  const first = await store.list(list, ada);
  await store.save(task({ id: "t-3", status: at(9) }), ada);
  const second = await store.list({ ...list, pageToken: first.nextPageToken }, ada);
  expect([first, second].map(({ tasks }) => tasks.map(({ id }) => id))).toEqual([
    ["t-4", "t-3"],
    ["t-2", "t-1"],
  ]);
});

it("a task has at most 100 push configurations", async () => {
  const { executor } = await opened(async () => "");
  const config = (id: string) => ({ id, tenant: "", taskId: "t", url: "", token: "", authentication: undefined });
  for (let k = 0; k < 100; k++) await executor.pushConfigs.save("t", ada, config(`c-${k}`));
  await expect(executor.pushConfigs.save("t", ada, config("c-100"))).rejects.toThrow(/at most 100/);
  await executor.pushConfigs.save("t", ada, { ...config("c-7"), token: "new" });
  expect(await executor.pushConfigs.load("t", ada)).toHaveLength(100);
});
