import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { fork } from "../../src/operator/fork.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { gate } from "../../src/sdk/gate.ts";
import { type AnyWorkflow, workflow } from "../../src/sdk/workflow.ts";
import { checkProjection } from "../../testkit/projection.ts";
import { type Process, type Stage, stage, tenant } from "./stage.ts";

const flow = (name: string, run: (tape: TapeContext, input: never) => unknown): AnyWorkflow =>
  workflow(name, run as never) as unknown as AnyWorkflow;
const waiting = (s: Stage, p: Process, id: string) => p.until(async () => (await s.run(id)).status === "WAITING");
const listed = async (s: Stage, labels: Record<string, string>): Promise<string[]> =>
  (await s.store.read.runs(tenant, { labels })).map(({ id }) => id);

const depsOf = (s: Stage, p: Process) => ({
  ...{ store: s.store, keeper: p.keeper, tenant, clock: s.clock },
  random: seededRandom("fork"),
});

const order = flow("order", async (tape) => {
  tape.label({ customer: "acme", stage: "open", draft: "yes" });
  await tape.step("price", () => 1);
  tape.label({ stage: "paid", draft: undefined });
  await tape.gate(gate("ship"));
  tape.label({ stage: "sent" });
  return "sent";
});

describe("labels that a run sets", () => {
  it("are listed while it waits, with no process alive, and replay sets none again", async () => {
    const s = await stage();
    const p = s.process([order]);
    const id = await p.start(order);
    await waiting(s, p, id);
    p.crash();
    expect(await listed(s, { customer: "acme", stage: "paid" })).toEqual([id]);
    expect(await listed(s, { stage: "open" })).toEqual([]);
    expect((await s.run(id)).labels).toEqual({ customer: "acme", stage: "paid" });
    await s.store.intake.signal(tenant, id, { name: "ship", value: 1 });
    const q = s.process([order]);
    expect((await q.over(id)).status).toBe("COMPLETED");
    expect((await s.kinds(id)).filter((kind) => kind === "labels.set")).toHaveLength(3);
    expect(await listed(s, { stage: "sent" })).toEqual([id]);
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("are refused at the call, also on replay, and the run continues", async () => {
    const s = await stage({ limits: { labels: 2 } });
    const refused = flow("refused", async (tape) => {
      const codes: string[] = [];
      const attempt = (labels: unknown): void => {
        try {
          tape.label(labels as Record<string, string>);
        } catch (error) {
          codes.push((error as { code: string }).code);
        }
      };
      attempt({ a: "1", b: "2" });
      attempt({ c: "3" });
      attempt({ a: undefined, c: "3" });
      for (const bad of [{ c: 1 }, { c: "x".repeat(129) }, null, { "": undefined }]) attempt(bad);
      attempt({});
      await tape.gate(gate("go"));
      return codes;
    });
    const p = s.process([refused]);
    const id = await p.start(refused);
    await waiting(s, p, id);
    p.crash();
    await s.store.intake.signal(tenant, id, { name: "go", value: 1 });
    const q = s.process([refused]);
    const over = await q.over(id);
    expect(over.outcome).toEqual([
      "TAPE_TOO_LARGE",
      "TAPE_BAD_INPUT",
      "TAPE_TOO_LARGE",
      "TAPE_BAD_INPUT",
      "TAPE_BAD_INPUT",
    ]);
    expect(over.labels).toEqual({ b: "2", c: "3" });
  });

  it("a fork has the labels of its source at the fork point", async () => {
    const s = await stage();
    const p = s.process([order]);
    const id = await p.start(order);
    await waiting(s, p, id);
    await s.store.intake.signal(tenant, id, { name: "ship", value: 1 });
    await p.over(id);
    const copy = await fork(depsOf(s, p), id, { at: 3, by: "ann", reason: "test" });
    expect((await s.run(copy)).labels).toEqual({ customer: "acme", stage: "paid" });
    await s.store.intake.signal(tenant, copy, { name: "ship", value: 1 });
    expect((await p.over(copy)).labels).toEqual({ customer: "acme", stage: "sent" });
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });
});
