import { describe, expect, it } from "vitest";
import { gate } from "../../src/sdk/gate.ts";
import { type AnyWorkflow, workflow } from "../../src/sdk/workflow.ts";
import { checkProjection } from "../../testkit/projection.ts";
import { stage, tenant } from "./stage.ts";

const go = gate<string>("go");

const follower = workflow("follower", async (tape, input: string) => {
  const answer = await tape.gate(go);
  return `${input} ${answer.status}`;
});

describe("a detached child", () => {
  it("outlives the run that starts it, which neither waits nor cancels", async () => {
    const s = await stage();
    const lead = workflow("lead", async (tape, input: string) => {
      const { id } = await tape.spawn(follower, input, { detached: true });
      return id;
    });
    const p = s.process([lead, follower] as unknown as AnyWorkflow[]);
    const run = await p.start(lead as unknown as AnyWorkflow, "a");
    const { status, outcome } = await p.over(run);
    expect([status, outcome]).toEqual(["COMPLETED", `${run}.0`]);
    const child = await s.run(`${run}.0`);
    expect([child.parent, child.root, child.endedAt]).toEqual([null, child.journal, null]);
    await s.store.intake.signal(tenant, child.id, { name: "go", value: "yes" });
    expect((await p.over(child.id)).outcome).toBe("a received");
    expect((await s.records(child.id))[0]?.data).toMatchObject({ startedBy: run });
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("lives on when the run that started it is cancelled or fails", async () => {
    const s = await stage();
    const lead = workflow("lead", async (tape, how: string) => {
      await tape.spawn(follower, how, { detached: true, id: `follower of ${how}` });
      if (how === "fails") throw new Error("no");
      await tape.gate(gate("never"));
    });
    const p = s.process([lead, follower] as unknown as AnyWorkflow[]);
    for (const how of ["fails", "cancelled"]) {
      const run = await p.start(lead as unknown as AnyWorkflow, how);
      if (how === "cancelled") {
        await p.until(async () => (await s.store.read.gates(tenant, { run, open: true })).length > 0);
        await s.store.intake.cancel(tenant, run, { reason: "enough" });
      }
      expect((await p.over(run)).status).toBe(how === "fails" ? "FAILED" : "CANCELLED");
      expect((await s.run(`follower of ${how}`)).endedAt).toBeNull();
    }
  });

  it("joins a run with the same id, workflow and input, and conflicts with another", async () => {
    const s = await stage();
    const lead = workflow("lead", async (tape, input: string) => {
      const started = await tape
        .spawn(follower, input, { detached: true, id: "shared" })
        .then(({ id }) => id)
        .catch((error: { code: string }) => error.code);
      await tape.gate(gate("hold"), { timeout: "1s" }); // a replay returns the same
      return started;
    });
    const p = s.process([lead, follower] as unknown as AnyWorkflow[]);
    const outcomes: unknown[] = [];
    for (const input of ["a", "a", "b"]) {
      const run = await p.start(lead as unknown as AnyWorkflow, input);
      outcomes.push((await p.over(run)).outcome);
    }
    expect(outcomes).toEqual(["shared", "shared", "TAPE_RUN_CONFLICT"]);
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("has a budget of its own", async () => {
    const s = await stage();
    const spender = workflow("spender", (tape, amount: number) =>
      tape.budget.spend({ usd: amount }, async () => ({ cost: { usd: amount }, value: amount })),
    );
    const lead = workflow("lead", async (tape) => {
      await tape.spawn(spender, 3, { detached: true, id: "rich", budget: { usd: 5 } });
      await tape.spawn(spender, 3, { detached: true, id: "poor", budget: { usd: 2 } });
    });
    const p = s.process([lead, spender] as unknown as AnyWorkflow[]);
    const run = await p.start(lead as unknown as AnyWorkflow, null, { budget: { usd: 1_000_000 } });
    expect((await p.over(run)).status).toBe("COMPLETED");
    expect((await p.over("rich")).status).toBe("COMPLETED");
    expect((await p.over("poor")).status).toBe("FAILED");
  });

  it("rejects an option that it does not know", async () => {
    const s = await stage();
    const lead = workflow("lead", async (tape) => {
      await tape.spawn(follower, "a", { detached: true, name: "x" } as never);
    });
    const p = s.process([lead, follower] as unknown as AnyWorkflow[]);
    const { outcome } = await p.over(await p.start(lead as unknown as AnyWorkflow));
    expect(outcome).toMatchObject({ code: "TAPE_BAD_INPUT" });
  });
});
