import { describe, expect, it } from "vitest";
import type { TapeContext } from "../../src/sdk/context.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { VirtualTape } from "../../testkit/kit/virtual-tape.ts";

/** Reads a value and writes it at the version that was read. */
async function put(tape: TapeContext): Promise<void> {
  const found = await tape.values.get("a");
  await tape.values.put("a", tape.runId, found?.version ?? 0);
}

async function cleansUp(tape: TapeContext): Promise<void> {
  try {
    await tape.step("fails", () => {
      throw new Error("no");
    });
  } finally {
    await tape.step("tidy", () => {});
  }
}

describe("losers of a race that continue after the function has ended", () => {
  it.each([
    ["the time", (tape: TapeContext) => tape.now()],
    ["a marker", (tape: TapeContext) => tape.patched("later")],
  ])("%s is not recorded, because the next drive would not request it", async (_, request) => {
    const sampled = async (tape: TapeContext): Promise<void> => {
      await tape.sample("dice", () => 4);
      request(tape);
    };
    const races = workflow(
      "races",
      (tape) => tape.race([put(tape).then(() => sampled(tape)), cleansUp(tape), sampled(tape).then(() => put(tape))]),
      { retry: { attempts: 3, base: "2s" } },
    );
    await using t = await VirtualTape.open({ runner: createRunner({ workflows: [races] }) });
    await t.start(races, undefined, { id: "r" });
    const [run] = await t.settle();
    expect(run?.status).toBe("FAILED");
    const journal = await t.time.during(t.store.read.journal("default", { run: "r" }));
    expect(journal.filter(({ kind }) => kind === "run.retried")).toHaveLength(2);
  });
});
