import { describe, expect, it } from "vitest";
import type { TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { settled } from "../../testkit/clock.ts";
import { stage } from "./stage.ts";

const never = (): Promise<never> => new Promise(() => {});

describe("what a workflow does not await", () => {
  it("a step that is still running when the run ends is lost, and that is said at once", async () => {
    const s = await stage();
    const flow = workflow("flow", async (tape) => {
      void tape.step("forgotten", never);
      return tape.step("awaited", () => "ok");
    });
    const p = s.process([flow]);
    const id = await p.start(flow);
    expect((await p.over(id)).status).toBe("COMPLETED");
    const [said] = s.logged.filter(({ event }) => event === "run.not_awaited");
    expect(said).toMatchObject({ level: "warn", fields: { run: id, open: ['step "forgotten"'] } });
    expect(said?.fields.error).toContain("TAPE_RUN_ENDED");
    expect(said?.fields.next).toContain("Await it");
  });

  it("an effect is finished all the same: its outcome is written before the run's", async () => {
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
      "who loses a race",
      async (tape: TapeContext) => tape.race([tape.step("slow", never), tape.step("fast", () => 1)]),
    ],
    [
      "what runs beside a failure",
      (tape: TapeContext) =>
        Promise.all([
          tape.step("slow", never),
          tape.step("fails", () => {
            throw new Error("no");
          }),
        ]),
    ],
  ])("%s is no mistake, and no warning is given", async (_, run) => {
    const s = await stage();
    const flow = workflow("flow", run as (tape: TapeContext) => Promise<unknown>);
    const p = s.process([flow]);
    const id = await p.start(flow);
    expect((await p.over(id)).endedAt).not.toBeNull();
    const expected = ["step.failed", "run.failed"]; // of the failure itself
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
  it.each(Object.entries(late))("%s is refused with a code, and nothing of it is written", async (name, ask) => {
    const s = await stage();
    let context: TapeContext | undefined;
    let heard: Promise<unknown> | undefined;
    const flow = workflow("flow", async (tape) => {
      context = tape;
      setImmediate(() => {
        heard = ask(tape).catch((error: unknown) => error);
      });
      return "over";
    });
    const p = s.process([flow]);
    const id = await p.start(flow);
    expect((await p.over(id)).status).toBe("COMPLETED");
    await settled(3);
    const records = await s.kinds(id);
    const refused = { code: "TAPE_RUN_ENDED", message: expect.stringContaining(name) };
    expect(await heard).toMatchObject(refused);
    expect(await ask(context!).catch((error: unknown) => error)).toMatchObject(refused);
    expect(await s.kinds(id)).toEqual(records);
    const said = s.logged.filter(({ event }) => event === "run.asked_too_late");
    expect(said[0]).toMatchObject({ level: "warn", fields: { run: id, operation: name } });
    expect(said[0]?.fields.error).toContain("TAPE_RUN_ENDED");
    expect(said[0]?.fields.next).toContain("before the workflow returns");
  });

  it("is not refused by a process that has lost the run: its successor asks for it in time", async () => {
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
    let answered = false;
    contexts[0]!
      .step("zombie", () => 1)
      .then(
        () => (answered = true),
        () => (answered = true),
      );
    await settled(20);
    expect(answered).toBe(false);
  });
});
