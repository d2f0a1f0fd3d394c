import { describe, expect, it } from "vitest";
import { isTapeError } from "../../src/model/errors.ts";
import { object } from "../../src/sdk/object.ts";
import { createRunner } from "../../src/sdk/workflow.ts";

/** As plain JavaScript calls it, without type checks. */
const plain = object as unknown as (...args: unknown[]) => unknown;
const initial = () => 0;
const handlers = { add: () => 1 };
const promiseMethod = "then";

describe("object refuses", () => {
  it.each<[string, RegExp, unknown[]]>([
    ["no name", /needs a name/, ["", { initial, handlers }]],
    ["a name that is too long for its values", /more than 128 characters/, ["x".repeat(129), { initial, handlers }]],
    ["an unknown option", /no option handler; did you mean handlers\?/, ["cart", { initial, handler: handlers }]],
    ["an initial state that is no function", /initial is a function, not 0/, ["cart", { initial: 0, handlers }]],
    ["no handlers", /at least one function/, ["cart", { initial, handlers: {} }]],
    ["a handler that is no function", /add is a function, not 1/, ["cart", { initial, handlers: { add: 1 } }]],
    ["a handler that a client has for itself", /the name state/, ["cart", { initial, handlers: { state: () => 1 } }]],
    [
      "a handler that would make it a promise",
      /the name then/,
      ["cart", { initial, handlers: { [promiseMethod]: () => 1 } }],
    ],
  ])("%s", (_what, pattern, args) => {
    let thrown: unknown;
    try {
      plain(...args);
    } catch (error) {
      thrown = error;
    }
    expect(isTapeError(thrown, "TAPE_BAD_INPUT"), String(thrown)).toBe(true);
    expect(String(thrown)).toMatch(pattern);
  });
});

describe("a runner with objects", () => {
  const counter = object("counter", { initial, handlers });

  it("serves a workflow for each handler, and the queue that runs them one by one per key", () => {
    const runner = createRunner({ workflows: [], objects: [counter] });
    expect([...runner.workflows.keys()]).toEqual(["counter.add"]);
    expect(runner.queues?.get("object counter")?.spec).toEqual({ counts: "started", perKey: { concurrency: 1 } });
  });

  it("refuses what is not an object, and two objects of one name", () => {
    const create = createRunner as unknown as (parts: object) => unknown;
    expect(() => create({ workflows: [], objects: [{ name: "counter" }] })).toThrow(/what object\("name"/);
    expect(() => createRunner({ workflows: [], objects: [counter, counter] })).toThrow(/two workflows have the name/);
  });
});
