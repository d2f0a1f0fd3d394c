import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { killed } from "../../agents/killed.ts";

const program = join(import.meta.dirname, "..", "kill", "agent.ts");

describe.concurrent("wherever the process dies, the agent pays once", { timeout: 300_000 }, () => {
  it.each([
    ...["in model call 1", "in model call 2", "in model call 3", "in search", "before payment", "after payment"].map(
      (point) => [point, "no"] as const,
    ),
    ...["at word 2 of turn 1", "at word 3 of turn 2", "at word 4 of turn 3", "at the gate", "after payment"].map(
      (point) => [point, "yes"] as const,
    ),
  ])("%s (stream: %s)", async (point, STREAM) => {
    expect(await killed(program, point, { STREAM })).toEqual({
      ...{ ends: ["SIGKILL", "exit code 0"], answer: "Invoice 7 is paid.", payments: ["7"] },
    });
  });
});
