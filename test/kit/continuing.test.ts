import { strict as assert } from "node:assert";
import { it } from "vitest";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { crashAtEveryBoundary } from "../../testkit/kit/crash.ts";
import { WorldLedger } from "../../testkit/kit/world.ts";

const world = new WorldLedger();
const message = gate<string>("message");
const send = effect("send", (a: { n: number }, fx) => world.applyOnce("send", fx, a, () => a), {
  semantics: "idempotent",
});
const session = workflow("session", async (tape, state: { n: number; got: readonly string[] }) => {
  const answer = await tape.gate(message);
  const got = [...state.got, answer.status === "received" ? answer.value : ""];
  await tape.effect(send.with({ n: state.n }));
  await tape.step("note", () => got.length);
  if (state.n === 3) return got;
  return tape.continueAsNew({ n: state.n + 1, got });
});

it("a run that continues as new survives a crash at every boundary", { timeout: 60_000 }, async () => {
  const signals = ["a", "b", "c"].map((value) => ({ gate: message, value }));
  const runner = createRunner({ workflows: [session], effects: [send] });
  const input = { n: 1, got: [] };
  const { boundaries, rounds, reached } = await crashAtEveryBoundary({
    ...{ workflow: session, input, runner, signals, ledger: world, modes: ["crash"] },
  });
  assert.ok(boundaries.length > 30, `${boundaries.length} boundaries`);
  assert.deepEqual([rounds, reached], [boundaries.length, boundaries.length]);
});
