import { describe, expect, it } from "vitest";
import type { TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { settled } from "../../testkit/clock.ts";
import { stage } from "./stage.ts";

const never = (): Promise<never> => new Promise(() => {});

describe("an operation that is not awaited", () => {
  it("is lost if it is a step that still runs when the run ends, and that is logged", async () => {
    const s = await stage();
    const flow = workflow("flow", async (tape) => {
      void tape.step("forgotten", never);
      return tape.step("awaited", () => "ok");
    });
    const p = s.process([flow]);
    const id = await p.start(flow);
    expect((await p.over(id)).status).toBe("COMPLETED");
    const [line] = s.logged.filter(({ event }) => event === "run.not_awaited");
    expect(line).toMatchObject({ level: "warn", fields: { run: id, open: ['step "forgotten"'] } });
    expect(line?.fields.error).toContain("TAPE_RUN_ENDED");
    expect(line?.fields.next).toContain("Await it");
  });

  it("is finished if it is an effect: its outcome is written before the run's", async () => {
    const s = await stage();
    let done = false;
    const mail = effect("mail", () => settled(5).then(() => (done = true)), { semantics: "idempotent" });
    const flow = workflow("flow", async (tape) => {
      void mail(undefined as never);
      return tape.step("awaited", () => "ok");
    });
    const p = s.process(createRunner({ workflows: [flow], effects: [mail] }));
    const id = await p.start(flow);
    expect((await p.over(id)).status).toBe("COMPLETED");
    expect(done).toBe(true);
    expect(s.logged.filter(({ event }) => event === "run.not_awaited")).toEqual([]);
  });

  it.each([
    [
      "the loser of a race",
      async (tape: TapeContext) => tape.race([tape.step("slow", never), tape.step("fast", () => 1)]),
    ],
    [
      "a step beside a failure",
      (tape: TapeContext) =>
        Promise.all([
          tape.step("slow", never),
          tape.step("fails", () => {
            throw new Error("no");
          }),
        ]),
    ],
  ])("without a warning: %s", async (_, run) => {
    const s = await stage();
    const flow = workflow("flow", run as (tape: TapeContext) => Promise<unknown>);
    const p = s.process([flow]);
    const id = await p.start(flow);
    expect((await p.over(id)).endedAt).not.toBeNull();
    const expected = ["step.failed", "run.failed"]; // about the failure itself
    const warned = s.logged.filter(({ level, event }) => level === "warn" && !expected.includes(event));
    expect(warned).toEqual([]);
  });
});

describe("a call after the workflow has ended", () => {
  const late: Readonly<Record<string, (tape: TapeContext) => Promise<unknown>>> = {
    'step "late"': (tape) => tape.step("late", () => 1),
    'sleep "sleep"': (tape) => tape.sleep(5),
    'value "k"': (tape) => tape.values.put("k", 1, 0),
    'sample "value k"': (tape) => tape.values.get("k"),
  };
  it.each(Object.entries(late))("%s is rejected with a code, and nothing is written", async (name, request) => {
    const s = await stage();
    let context: TapeContext | undefined;
    let caught: Promise<unknown> | undefined;
    const flow = workflow("flow", async (tape) => {
      context = tape;
      setImmediate(() => {
        caught = request(tape).catch((error: unknown) => error);
      });
      return "over";
    });
    const p = s.process([flow]);
    const id = await p.start(flow);
    expect((await p.over(id)).status).toBe("COMPLETED");
    await settled(3);
    const records = await s.kinds(id);
    const rejection = { code: "TAPE_RUN_ENDED", message: expect.stringContaining(name) };
    expect(await caught).toMatchObject(rejection);
    expect(await request(context!).catch((error: unknown) => error)).toMatchObject(rejection);
    expect(await s.kinds(id)).toEqual(records);
    const lines = s.logged.filter(({ event }) => event === "run.operation_too_late");
    expect(lines[0]).toMatchObject({ level: "warn", fields: { run: id, operation: name } });
    expect(lines[0]?.fields.error).toContain("TAPE_RUN_ENDED");
    expect(lines[0]?.fields.next).toContain("before the workflow returns");
  });

  it("stays pending in a process that has lost the run", async () => {
    const s = await stage();
    const contexts: TapeContext[] = [];
    const flow = workflow("flow", (tape) => {
      contexts.push(tape);
      return tape.step("body", contexts.length === 1 ? never : () => "ok");
    });
    const p = s.process([flow]);
    const id = await p.start(flow);
    await settled(5);
    s.clock.stall(40_000);
    await settled(5);
    await p.worker.poll(10);
    expect((await p.over(id)).status).toBe("COMPLETED");
    let hasSettled = false;
    contexts[0]!
      .step("zombie", () => 1)
      .then(
        () => (hasSettled = true),
        () => (hasSettled = true),
      );
    await settled(20);
    expect(hasSettled).toBe(false);
  });
});
