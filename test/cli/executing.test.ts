import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { program, temporaryFolder } from "./stage.ts";

describe("inspect of a run in an outage", () => {
  it("says what the run waits for, how long that has lasted, and the last error", async () => {
    const url = `sqlite:${join(await temporaryFolder(), "tape.db")}`;
    const flow = workflow("flow", (tape) =>
      tape.decide("judge", () => Promise.reject(new Error("503 busy")), { retry: { giveUpAfter: "24h" } }),
    );
    const app = await Tape.open({ store: url, runner: createRunner({ workflows: [flow] }) });
    onTestFinished(() => app.close());
    await app.start(flow, undefined as never, { id: "r1" });
    await expect
      .poll(async () => (await program("inspect", "r1", "--store", url)).stdout)
      .toMatch(
        /waits for attempt 2 of judge, due in \d.+; unreachable for \d.+, the last attempt failed with: 503 busy/,
      );
  });
});

describe("inspect of an executing run", () => {
  it("names the last operation, the time since its record, and the log to read", async () => {
    const url = `sqlite:${join(await temporaryFolder(), "tape.db")}`;
    const [inFirst, inSecond, mayEndFirst, mayEndSecond] = Array.from({ length: 4 }, () =>
      Promise.withResolvers<void>(),
    );
    const flow = workflow("flow", async (tape) => {
      await tape.step("fetch", async () => {
        inFirst!.resolve();
        await mayEndFirst!.promise;
      });
      await tape.step("write", async () => {
        inSecond!.resolve();
        await mayEndSecond!.promise;
      });
    });
    const app = await Tape.open({ store: url, runner: createRunner({ workflows: [flow] }) });
    onTestFinished(() => app.close());
    const handle = await app.start(flow, undefined as never, { id: "r1" });
    const inspected = async (): Promise<string> => (await program("inspect", "r1", "--store", url)).stdout;

    await inFirst!.promise;
    await expect.poll(inspected).toMatch(/executing its first operation .* no record for \d/);
    mayEndFirst!.resolve();
    await inSecond!.promise;
    await expect.poll(inspected).toMatch(/executing the operation after step "fetch" \(step\.done, record \d+\)/);
    expect(await inspected()).toMatch(/the log of \S+ names it \(run\.slow, after a minute run\.hung\)/);
    const { stdout } = await program("inspect", "r1", "--store", url, "-o", "json");
    expect((JSON.parse(stdout) as { waitingFor: string[] }).waitingFor).toEqual([
      expect.stringContaining('step "fetch"'),
    ]);
    mayEndSecond!.resolve();
    await handle.result();
    expect(await inspected()).not.toContain("executing");
  });
});
