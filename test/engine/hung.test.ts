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
    ["an await of the workflow's own", awaits, "other than an operation"],
  ])("%s is named after a minute, once, with the run and since when", async (_, flow, named) => {
    const s = await stage();
    const p = s.process([flow]);
    const id = await p.start(flow);
    await settled(10);
    const said = () => s.logged.filter(({ event }) => event === "run.hung");
    await s.clock.elapse(50_000);
    expect(said()).toEqual([]);
    await s.clock.elapse(200_000);
    expect(said()).toHaveLength(1);
    expect(said()[0]?.fields.code).toBe("TAPE_HUNG");
    expect(said()[0]).toMatchObject({ level: "warn", fields: { run: id } });
    expect(String(said()[0]!.fields.operation)).toContain(named);
    expect(said()[0]!.fields.forMs).toBeGreaterThanOrEqual(60_000);
  });

  it("the first of each name is named within two heartbeats of ten seconds, and no other until a minute is over", async () => {
    const s = await stage();
    const other = any(workflow("other", (tape) => tape.step("another", never)));
    const p = s.process([hangs, other]);
    const first = await p.start(hangs);
    for (const flow of [hangs, hangs, other]) await p.start(flow);
    await settled(10);
    const said = () => s.logged.filter(({ event }) => event === "run.slow");
    await s.clock.elapse(9_000);
    expect(said()).toEqual([]);
    await s.clock.elapse(22_000);
    expect(said()).toMatchObject([{ level: "warn", fields: { run: first, code: "TAPE_HUNG" } }]);
    expect(String(said()[0]!.fields.operation)).toContain('step "stays"');
    await s.clock.elapse(300_000);
    expect(said()).toHaveLength(1); // the other one was named as hung before its turn came
    expect(s.logged.filter(({ event }) => event === "run.hung")).toHaveLength(4);
  });

  it("a cancelled run whose code awaits something of its own ends all the same", async () => {
    const s = await stage();
    const p = s.process([awaits]);
    const id = await p.start(awaits);
    await settled(10);
    await s.store.intake.cancel(tenant, id, { reason: "it hangs" });
    await settled(10);
    await s.clock.elapse(31_000);
    // Over the wire the worker may hear of it only with its next renewal: from then on it has thirty seconds.
    for (let k = 0; k < 4 && (await s.run(id)).status !== "CANCELLED"; k++) {
      await settled(50);
      await s.clock.elapse(15_000);
    }
    await settled(50);
    expect((await s.run(id)).status).toBe("CANCELLED");
    expect(p.worker.driving).toBe(0);
  });

  it("holds a closing process up for its bound alone, and is named; an effect under way is awaited", async () => {
    const s = await stage();
    let answer = (_: string): void => {};
    const mail = effect("mail", () => new Promise<string>((resolve) => (answer = resolve)), {
      semantics: "idempotent",
    });
    const acts = any(workflow("acts", () => mail(undefined as never)));
    const p = s.process(createRunner({ workflows: [hangs, acts], effects: [mail] }));
    const id = await p.start(hangs);
    const other = await p.start(acts);
    await settled(20);
    const drained = p.worker.drain(30_000, 10_000);
    await s.clock.elapse(10_001);
    await settled(20);
    const said = s.logged.filter(({ event }) => event === "run.not_drained");
    expect(said).toMatchObject([{ level: "warn", fields: { run: id, open: ['step "stays"'] } }]);
    expect((await s.run(id)).status).toBe("RUNNABLE");
    answer("sent");
    await drained;
    expect((await s.run(other)).status).toBe("COMPLETED");
  });
});

it("a run that writes its journal makes progress, for whoever looks at its lease", async () => {
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
