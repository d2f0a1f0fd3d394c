import { describe, expect, it } from "vitest";
import { recordFault } from "../../src/model/record-fault.ts";
import { recordSchemas } from "../../src/model/records.ts";

const plain = { id: "a", workflow: "w", input: 1, inputHash: "h" };

describe("a check by hand agrees with the schema", () => {
  it.each<[string, object]>([
    ["a plain start", plain],
    ["a checked start", { ...plain, checked: true }],
    ["a start without an input that was given as undefined", { ...plain, input: undefined }],
    ["no input at all", { id: "a", workflow: "w", inputHash: "h" }],
    ["an empty id", { ...plain, id: "" }],
    ["a workflow that is a number", { ...plain, workflow: 1 }],
    ["no hash", { id: "a", workflow: "w", input: 1 }],
    ["checked that is false", { ...plain, checked: false }],
    ["an unknown field", { ...plain, colour: "red" }],
    ["a queue without a priority", { ...plain, queue: { name: "q", key: "" } }],
    ["a queue", { ...plain, queue: { name: "q", key: "", priority: 5 } }],
  ])("run.created with %s", (_what, data) => {
    expect(recordFault("run.created", data) === undefined).toBe(recordSchemas["run.created"].safeParse(data).success);
  });
});
