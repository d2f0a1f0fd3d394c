import { describe, expect, it } from "vitest";
import type { TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { stage } from "./stage.ts";

const mail = effect("mail", (to: string) => `sent to ${to}`, { semantics: "idempotent" });
const approval = gate<string>("approval");
const child = workflow("child", () => "grown up");

const inner: Readonly<Record<string, (tape: TapeContext) => unknown>> = {
  'step "inner"': (tape) => tape.step("inner", () => 1),
  'decision "inner"': (tape) => tape.decide("inner", () => 1),
  'sample "inner"': (tape) => tape.sample("inner", () => 1),
  'effect "mail"': () => mail("ada"),
  'effect "mail" by hand': (tape) => tape.attempt(mail.with("ada")),
  'gate "approval"': (tape) => tape.gate(approval),
  'sleep "sleep"': (tape) => tape.sleep(10),
  'child "child"': (tape) => tape.spawn(child, undefined),
  'value "k"': (tape) => tape.values.put("k", 1, 0),
  "budget reservation": (tape) => tape.budget.spend({ eur: 1 }, async () => ({ cost: {}, value: 1 })),
  'patch "p"': (tape) => tape.patched("p"),
  "tape.now()": (tape) => tape.now(),
  "tape.uuid()": (tape) => tape.uuid(),
  "tape.random()": (tape) => tape.random(),
};

describe("an operation inside a body", () => {
  it.each(Object.entries(inner))("%s is rejected at once, before anything is written", async (name, request) => {
    const s = await stage();
    let caught: unknown;
    const flow = workflow("flow", async (tape) => {
      const outer = await tape.step("outer", async () => {
        try {
          await request(tape);
        } catch (error) {
          caught = error;
        }
        return "outer";
      });
      return [outer, await tape.step("after", () => "after")];
    });
    const p = s.process(createRunner({ workflows: [flow, child], effects: [mail] }));
    const id = await p.start(flow);
    expect((await p.over(id)).status).toBe("COMPLETED");
    const named = name.replace(" by hand", "");
    expect(caught).toMatchObject({ code: "TAPE_NESTED", message: expect.stringContaining(named) });
    expect(caught).toMatchObject({ message: expect.stringContaining('inside step "outer"') });
    expect(await s.kinds(id)).toEqual(["run.created", "step.done", "step.done", "run.ended"]);
    const [line] = s.logged.filter(({ event }) => event === "run.nested");
    expect(line).toMatchObject({ level: "error", fields: { run: id } });
    expect(line?.fields.error).toContain("TAPE_NESTED");
    expect(line?.fields.next).toContain("workflow itself");
  });

  it.each([
    ["step", (tape: TapeContext, work: () => unknown) => tape.step("outer", work)],
    ["decision", (tape: TapeContext, work: () => unknown) => tape.decide("outer", work)],
    ["sample", (tape: TapeContext, work: () => unknown) => tape.sample("outer", work)],
  ])("in a %s fails with both names, live and on replay", async (what, outer) => {
    const s = await stage();
    const seen: unknown[] = [];
    const flow = workflow("flow", async (tape) => {
      const failed = await outer(tape, async () => {
        await new Promise((resolve) => setImmediate(resolve)); // also after another await
        return mail("ada");
      }).catch((error: unknown) => error as Error);
      seen.push((failed as Error).message);
      await tape.gate(approval);
      return "done";
    });
    const runner = createRunner({ workflows: [flow], effects: [mail] });
    const first = s.process(runner);
    const id = await first.start(flow);
    await first.until(async () => (await s.run(id)).status === "WAITING");
    await s.store.intake.signal("t", id, { name: "approval", value: "yes" });
    expect((await first.over(id)).status).toBe("COMPLETED");
    expect(seen).toHaveLength(2);
    expect(seen[0]).toBe(seen[1]);
    expect(seen[0]).toContain(`effect "mail" was requested inside ${what} "outer"`);
  });

  it("in an effect does not include fx, or the run's log, progress and abort signal", async () => {
    const s = await stage();
    const seen: unknown[] = [];
    let tape: TapeContext | undefined;
    const wire = effect(
      "wire",
      async (_: null, fx) => {
        seen.push(fx.key, fx.attempt, fx.businessKey, fx.abortSignal.aborted);
        tape!.log("wiring");
        tape!.progress("wiring");
        seen.push(tape!.runId, tape!.abortSignal.aborted);
        await tape!.step("inner", () => 1).catch((error: unknown) => seen.push((error as { code: string }).code));
        return "wired";
      },
      { semantics: "idempotent", businessKey: () => "k" },
    );
    const flow = workflow("flow", (context) => {
      tape = context;
      return wire(null);
    });
    const p = s.process(createRunner({ workflows: [flow], effects: [wire] }));
    const id = await p.start(flow);
    expect((await p.over(id)).status).toBe("COMPLETED");
    expect(seen).toEqual([`${id}:0`, 1, "k", false, id, false, "TAPE_NESTED"]);
  });

  it("does not include those between reserving and charging, or those of another run", async () => {
    const s = await stage();
    const other = workflow("other", (tape) => tape.step("its own", () => "other"));
    let started: Promise<string> | undefined;
    const flow = workflow("flow", async (tape) => {
      await tape.budget.spend({ eur: 1 }, async () => ({ cost: {}, value: await tape.step("bought", () => 1) }));
      return tape.step("starts another", async () => {
        started = p.start(other, null, { id: "another" });
        await started;
      });
    });
    const p = s.process([flow, other]);
    const id = await p.start(flow, null, { budget: { eur: 5_000_000 } });
    expect((await p.over(id)).status).toBe("COMPLETED");
    expect((await p.over("another")).status).toBe("COMPLETED");
    expect(s.logged.filter(({ event }) => event === "run.nested")).toEqual([]);
  });

  it("is detected in the synchronous part of a body and in what it leaves behind", async () => {
    const s = await stage();
    const seen: string[] = [];
    const note = (error: unknown) => seen.push((error as { code: string }).code);
    const modes = ["value", "nested", "value", "behind", "value", "behind"];
    const flow = workflow("flow", async (tape, mode: string) => {
      let behind: Promise<unknown> = Promise.resolve();
      const got = await tape.step("outer", () => {
        if (mode === "nested") void tape.step("inner", () => 1).catch(note);
        if (mode === "behind")
          behind = new Promise((resolve) => setImmediate(resolve)).then(() => tape.step("inner", () => 1)).catch(note);
        return mode;
      });
      if (seen.length > 0) await behind; // so that the first one in a new process is detected
      return got;
    });
    const first = s.process(createRunner({ workflows: [flow] }));
    for (const mode of modes.slice(0, 3)) {
      const id = await first.start(flow, mode);
      expect((await first.over(id)).status).toBe("COMPLETED");
      expect(await s.kinds(id)).toEqual(["run.created", "step.done", "run.ended"]);
    }
    expect(seen).toEqual(["TAPE_NESTED"]);
    const second = s.process(createRunner({ workflows: [flow] }));
    for (const mode of modes.slice(3)) {
      const id = await second.start(flow, mode);
      expect((await second.over(id)).status).toBe("COMPLETED");
      expect(await s.kinds(id)).toEqual(["run.created", "step.done", "run.ended"]);
    }
    expect(seen).toEqual(["TAPE_NESTED", "TAPE_NESTED", "TAPE_NESTED"]);
  });

  it("does not include those of a run that an immediate body starts", async () => {
    const s = await stage();
    const other = workflow("other", (tape) => tape.step("its own", () => "other"));
    const flow = workflow("flow", async (tape, id: string) => {
      const [started] = await tape.step("starts another", () => {
        starting.push(p.start(other, null, { id }));
        return [id];
      });
      return tape.step("after", () => started);
    });
    const starting: Promise<string>[] = [];
    const p = s.process([flow, other]);
    for (const id of ["one", "two", "three"]) {
      const run = await p.start(flow, id);
      expect((await p.over(run)).status).toBe("COMPLETED");
      await Promise.all(starting);
      expect((await p.over(id)).status).toBe("COMPLETED");
    }
    expect(s.logged.filter(({ event }) => event === "run.nested")).toEqual([]);
  });
});
