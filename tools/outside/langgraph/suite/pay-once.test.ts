import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { killed as programKilled } from "../../agents/killed.ts";

const killed = (point: string, program: string, STREAM = "no") =>
  programKilled(join(import.meta.dirname, "..", "pay-once", `${program}.ts`), point, { STREAM });

const done = { ends: ["SIGKILL", "exit code 0"], answer: "Invoice 7 is paid: all done" };

it("an agent with a checkpointer pays twice, because LangGraph runs the interrupted node again", async () => {
  expect(await killed("after payment", "checkpointer")).toEqual({ ...done, payments: ["7", "7"] });
});

it("the same agent in a run pays once", async () => {
  expect(await killed("after payment", "run")).toEqual({ ...done, payments: ["7"] });
});

describe.concurrent("wherever the process dies, the agent in a run pays once", { timeout: 300_000 }, () => {
  it.each([
    ...["in model call 1", "in model call 2", "in model call 3", "in search", "before payment"].map((point) => [
      point,
      "no",
    ]),
    ...["at word 2 of turn 1", "at word 3 of turn 2", "at word 4 of turn 3", "after payment"].map((point) => [
      point,
      "yes",
    ]),
  ])("%s (stream: %s)", async (point, stream) => {
    expect(await killed(point!, "run", stream)).toEqual({ ...done, payments: ["7"] });
  });
});
