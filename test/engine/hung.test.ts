import { describe, expect, it } from "vitest";
import { effect } from "../../src/sdk/effect.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { settled } from "../../testkit/clock.ts";
import { stage, tenant, ttlMs } from "./stage.ts";

const never = (): Promise<never> => new Promise(() => {});
const any = (flow: unknown): AnyWorkflow => flow as AnyWorkflow;
const hangs = any(workflow("hangs", (tape) => tape.step("stays", never)));
const awaits = any(
  workflow("awaits", async (tape) => {
    await tape.step("first", () => 1);
    await never();
  }),
);

describe("a body that does not end", () => {
  it.each([
    ["a step", hangs, 'step "stays"'],
    ["an await of something else", awaits, "other than an operation"],
  ])("%s is logged after a minute, once, with the run and the duration", async (_, flow, named) => {
    const s = await stage();
    const p = s.process([flow]);
    const id = await p.start(flow);
    await settled(10);
    const lines = () => s.logged.filter(({ event }) => event === "run.hung");
    await s.clock.elapse(50_000);
    expect(lines()).toEqual([]);
    await s.clock.elapse(200_000);
    expect(lines()).toHaveLength(1);
    expect(lines()[0]?.fields.code).toBe("TAPE_HUNG");
    expect(lines()[0]).toMatchObject({ level: "warn", fields: { run: id } });
    expect(String(lines()[0]!.fields.operation)).toContain(named);
    expect(lines()[0]!.fields.forMs).toBeGreaterThanOrEqual(60_000);
  });

  it("the first of each name is logged within two heartbeats of ten seconds, others after a minute", async () => {
    const s = await stage();
    const other = any(workflow("other", (tape) => tape.step("another", never)));
    const p = s.process([hangs, other]);
    const first = await p.start(hangs);
    for (const flow of [hangs, hangs, other]) await p.start(flow);
    await settled(10);
    const lines = () => s.logged.filter(({ event }) => event === "run.slow");
    await s.clock.elapse(9_000);
    expect(lines()).toEqual([]);
    await s.clock.elapse(22_000);
    expect(lines()).toMatchObject([{ level: "warn", fields: { run: first, code: "TAPE_HUNG" } }]);
    expect(String(lines()[0]!.fields.operation)).toContain('step "stays"');
    await s.clock.elapse(300_000);
    expect(lines()).toHaveLength(1); // the other name was logged as hung before its early line was due
    expect(s.logged.filter(({ event }) => event === "run.hung")).toHaveLength(4);
  });

  it("a cancelled run ends although its code awaits something else", async () => {
    const s = await stage();
    const p = s.process([awaits]);
    const id = await p.start(awaits);
    await settled(10);
    await s.store.intake.cancel(tenant, id, { reason: "it hangs" });
    await settled(10);
    await s.clock.elapse(31_000);
    // Over the wire the worker may learn of it only with its next renewal; from then on it has thirty seconds.
    for (let k = 0; k < 4 && (await s.run(id)).status !== "CANCELLED"; k++) {
      await settled(50);
      await s.clock.elapse(15_000);
    }
    await settled(50);
    expect((await s.run(id)).status).toBe("CANCELLED");
    expect(p.worker.driving).toBe(0);
  });

  it("delays a draining process for its bound only, and is logged; an effect is awaited", async () => {
    const s = await stage();
    let respond = (_: string): void => {};
    const mail = effect("mail", () => new Promise<string>((resolve) => (respond = resolve)), {
      semantics: "idempotent",
    });
    const mails = any(workflow("mails", () => mail(undefined as never)));
    const p = s.process(createRunner({ workflows: [hangs, mails], effects: [mail] }));
    const id = await p.start(hangs);
    const other = await p.start(mails);
    await settled(20);
    const drained = p.worker.drain(30_000, 10_000);
    await s.clock.elapse(10_001);
    await settled(20);
    const lines = s.logged.filter(({ event }) => event === "run.not_drained");
    expect(lines).toMatchObject([{ level: "warn", fields: { run: id, open: ['step "stays"'] } }]);
    expect((await s.run(id)).status).toBe("RUNNABLE");
    respond("sent");
    await drained;
    expect((await s.run(other)).status).toBe("COMPLETED");
  });
});

it("a run that writes its journal shows progress on its lease", async () => {
  const s = await stage();
  const busy = any(
    workflow("busy", async (tape) => {
      for (let k = 0; k < 100; k++) await tape.step("work", () => s.clock.sleep(5_000));
    }),
  );
  const p = s.process([busy, hangs]);
  const [working, hanging] = [await p.start(busy), await p.start(hangs)];
  for (let k = 0; k < 50; k++) {
    await s.clock.elapse(3_000);
    await settled(5);
  }
  const agoMs = async (run: string) => (await s.store.read.lease(tenant, { run }))!.progressAgoMs;
  expect(await agoMs(working)).toBeLessThan(ttlMs);
  expect(await agoMs(hanging)).toBeGreaterThan(3 * ttlMs);
});
