import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { openStore, type Store } from "durable-tape";
import { TapeSaver } from "durable-tape/langgraph";
import { afterEach, beforeEach, expect, it } from "vitest";

// What LangGraph's validation suite does not ask.

let store: Store;
let saver: TapeSaver;
beforeEach(async () => {
  store = await openStore("memory:");
  saver = new TapeSaver({ store, tenant: "acme" });
});
afterEach(() => store.close());

const place = { configurable: { thread_id: "t", checkpoint_ns: "", checkpoint_id: "1" } };
const writesOf = async () => (await saver.getTuple(place))?.pendingWrites;
const checkpoint = { v: 4, id: "1", ts: "", channel_values: {}, channel_versions: {}, versions_seen: {} };
const about = { source: "loop" as const, step: 0, parents: {} };

it("keeps the first writes of a task, and the last of its errors and interrupts", async () => {
  await saver.put({ configurable: { thread_id: "t" } }, checkpoint, about, {});
  await saver.putWrites(
    place,
    [
      ["a", 1],
      ["__error__", "first"],
    ],
    "task",
  );
  await saver.putWrites(
    place,
    [
      ["a", 2],
      ["b", 3],
      ["__error__", "second"],
    ],
    "task",
  );
  expect(await writesOf()).toEqual([
    ["task", "__error__", "second"],
    ["task", "a", 1],
    ["task", "b", 3],
  ]);
});

it("stores all writes of a call at once: a crash between two of them is impossible", async () => {
  await saver.put({ configurable: { thread_id: "t" } }, checkpoint, about, {});
  const before = (await store.read.values("acme", "langgraph/w/")).length;
  await saver.putWrites(
    place,
    [
      ["a", 1],
      ["b", 2],
      ["c", 3],
    ],
    "task",
  );
  expect(await store.read.values("acme", "langgraph/w/")).toHaveLength(before + 1);
});

const counter = () =>
  new StateGraph(Annotation.Root({ n: Annotation<number>, note: Annotation<string> }))
    .addNode("add", ({ n }) => ({ n: n + 1 }))
    .addEdge(START, "add")
    .compile({ checkpointer: saver });

it("keeps the branches of a thread apart", async () => {
  const graph = counter();
  const config = { configurable: { thread_id: "t" } };
  await graph.invoke({ n: 1, note: "a" }, config);
  const { config: start } = await graph.getState(config);
  const one = await graph.updateState(start, { n: 10 });
  const two = await graph.updateState(start, { n: 20 });
  expect((await graph.getState(one)).values).toEqual({ n: 10, note: "a" });
  expect((await graph.getState(two)).values).toEqual({ n: 20, note: "a" });
  expect((await graph.getState(start)).values).toEqual({ n: 2, note: "a" });
});

it("stores a channel once per version, however many checkpoints have it", async () => {
  const graph = counter();
  const note = "x".repeat(10_000);
  await graph.invoke({ n: 1, note }, { configurable: { thread_id: "t" } });
  for (let k = 0; k < 20; k++) await graph.invoke({ n: k } as never, { configurable: { thread_id: "t" } });
  const all = await store.read.values("acme", "langgraph/v/");
  expect(all.filter(({ value }) => JSON.stringify(value).includes(note))).toHaveLength(2); // as input, and as channel
});

it("deletes a thread whole, and nothing of one whose name starts alike", async () => {
  const graph = counter();
  for (const thread_id of ["t", "t/1", "t2"]) await graph.invoke({ n: 1, note: "" }, { configurable: { thread_id } });
  const others = (await store.read.values("acme", "langgraph/")).filter(({ key }) => !/^langgraph\/.\/t\//.test(key));
  await saver.deleteThread("t");
  expect(await store.read.values("acme", "langgraph/")).toEqual(others);
  expect(others.length).toBeGreaterThan(4);
  expect((await graph.getState({ configurable: { thread_id: "t/1" } })).values).toEqual({ n: 2, note: "" });
});

it("finds a thread with a name that no key could hold", async () => {
  const graph = counter();
  for (const thread_id of ["long ".repeat(500), "a\u0000b\n%2f~", "ü/ü"]) {
    await graph.invoke({ n: 1, note: thread_id }, { configurable: { thread_id } });
    expect((await graph.getState({ configurable: { thread_id } })).values).toEqual({ n: 2, note: thread_id });
  }
});

it("does not find the threads of another tenant or another prefix", async () => {
  await counter().invoke({ n: 1, note: "" }, { configurable: { thread_id: "t" } });
  const config = { configurable: { thread_id: "t" } };
  expect(await new TapeSaver({ store, tenant: "other" }).getTuple(config)).toBeUndefined();
  expect(await new TapeSaver({ store, tenant: "acme" }, { prefix: "second" }).getTuple(config)).toBeUndefined();
});
