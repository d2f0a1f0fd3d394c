import { type BaseStore, InMemoryStore } from "@langchain/langgraph-checkpoint";
import { openStore, type Store } from "durable-tape";
import { TapeStore } from "durable-tape/langgraph";
import { afterEach, beforeEach, expect, it } from "vitest";

let values: Store;
let ours: TapeStore;
beforeEach(async () => {
  values = await openStore("memory:");
  ours = new TapeStore({ store: values, tenant: "acme" });
});
afterEach(() => values.close());

const untimed = (found: unknown): unknown =>
  JSON.parse(JSON.stringify(found, (key, value) => (key === "createdAt" || key === "updatedAt" ? "a time" : value)));

/** LangGraph's own store in memory is the reference: the same calls, the same answers. */
const calls: readonly ((store: BaseStore) => Promise<unknown>)[] = [
  (store) => store.get(["users", "ada"], "food"),
  ...["ada", "bob", "a:b", "x/y", "100%"].flatMap((user, k) => [
    (store: BaseStore) => store.put(["users", user], "food", { likes: "plums", rank: k }),
    (store: BaseStore) => store.put(["users", user, "work"], "title", { is: "captain", rank: k * 10 }),
  ]),
  (store) => store.get(["users", "ada"], "food"),
  (store) => store.get(["users", "x/y"], "food"),
  (store) => store.get(["users"], "ada"),
  (store) => store.put(["users", "ada"], "food", { likes: "figs", rank: 7 }),
  (store) => store.get(["users", "ada"], "food"),
  (store) => store.put(["projects"], "k/ey~%", { name: "tape" }),
  (store) => store.get(["projects"], "k/ey~%"),
  (store) => store.search(["projects"]),
  (store) => store.search(["users", "ada"], { filter: { rank: 7 } }),
  (store) => store.search(["users", "ada"], { filter: { rank: { $gt: 7 } } }),
  (store) => store.search(["users", "ada"], { filter: { rank: { $in: [7] }, likes: { $ne: "plums" } } }),
  (store) => store.search(["users", "bob"], { limit: 1 }),
  (store) => store.search(["users", "bob"], { limit: 1, offset: 5 }),
  (store) => store.delete(["users", "bob"], "food"),
  (store) => store.get(["users", "bob"], "food"),
  (store) => store.delete(["users", "bob"], "never"),
  (store) => store.put(["users", "bob"], "food", { likes: "figs", again: true }),
  (store) => store.get(["users", "bob"], "food"),
  (store) => store.listNamespaces({ prefix: ["projects"] }),
  (store) => store.listNamespaces({ prefix: ["users", "*", "work"], maxDepth: 1 }),
  (store) => store.listNamespaces({ suffix: ["work"], prefix: ["users", "ada"] }),
  (store) => store.put([], "key", { a: 1 }).catch((error: Error) => error.name),
  (store) => store.put(["a.b"], "key", { a: 1 }).catch((error: Error) => error.name),
];

it("answers as LangGraph's own store does", async () => {
  const theirs = new InMemoryStore();
  let answers = 0;
  for (const call of calls) {
    const [found, expected] = [await call(ours), await call(theirs)];
    expect(untimed(found ?? null), call.toString()).toEqual(untimed(expected ?? null));
    if (expected) answers += 1;
  }
  expect(answers).toBeGreaterThan(12);
});

it("keeps the time of creation when an item changes", async () => {
  await ours.put(["a"], "k", { n: 1 });
  const first = await ours.get(["a"], "k");
  while (Date.now() <= first!.createdAt.getTime());
  await ours.put(["a"], "k", { n: 2 });
  await ours.put(["a"], "k", { n: 3 });
  const last = await ours.get(["a"], "k");
  expect(last?.createdAt).toEqual(first?.createdAt);
  expect(last!.updatedAt.getTime()).toBeGreaterThan(first!.createdAt.getTime());
  expect(last?.value).toEqual({ n: 3 });
});

it("finds more items than one page has, in every order of namespaces", async () => {
  for (let k = 0; k < 1_200; k++) await ours.put(["many", `n${k % 3}`], `k${k}`, { k });
  expect(await ours.search(["many"], { limit: 1_000, offset: 900 })).toHaveLength(300);
  expect(await ours.listNamespaces({ prefix: ["many"] })).toEqual([
    ["many", "n0"],
    ["many", "n1"],
    ["many", "n2"],
  ]);
});

it("keeps tenants and prefixes apart", async () => {
  await ours.put(["a"], "k", { n: 1 });
  expect(await new TapeStore({ store: values, tenant: "other" }).search(["a"])).toEqual([]);
  expect(await new TapeStore({ store: values, tenant: "acme" }, { prefix: "second" }).search(["a"])).toEqual([]);
});

it.each([
  ["a query, because it has no vector index", () => ours.search(["a"], { query: "plums" }), "has no vector index"],
  ["an unknown comparison", () => ours.search(["a"], { filter: { n: { $near: 1 } } }), "no comparison $near"],
  ["a page without bound", () => ours.search(["a"], { limit: 100_000 }), "limit is at most 1000"],
])("refuses %s", async (_, call, message) => {
  await ours.put(["a"], "k", { n: 1 });
  await expect(call()).rejects.toThrow(message);
});
