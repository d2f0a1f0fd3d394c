import { describe, expect, it } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import { gate } from "../../src/sdk/gate.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { settled } from "../../testkit/clock.ts";
import { type Stage, stage, tenant } from "./stage.ts";

const go = gate<string>("go");

/** A workflow that awaits something else before its second operation, for the times in `pauses`. */
function slow(s: Stage, pauses: readonly number[]): { flow: AnyWorkflow; executions(): number } {
  let executions = 0;
  const flow = workflow("slow", async (tape) => {
    const pauseMs = pauses[executions++] ?? 0;
    await tape.step("a", () => 1);
    if (pauseMs > 0) await s.clock.sleep(pauseMs);
    await tape.step("b", () => 2);
    return (await tape.gate(go)).status;
  });
  return { flow: flow as unknown as AnyWorkflow, executions: () => executions };
}

async function waiting(s: Stage, flow: AnyWorkflow, patienceMs?: number) {
  const p = s.process([flow], patienceMs === undefined ? {} : { patienceMs });
  const id = await p.start(flow);
  await p.until(async () => (await s.run(id)).status === "WAITING");
  await s.store.intake.signal(tenant, id, { name: "go", value: "yes" });
  return { p, id };
}

describe("a replay whose code awaits something other than an operation", () => {
  it("for 12 s or 55 s continues normally", async () => {
    for (const pauseMs of [12_000, 55_000]) {
      const s = await stage();
      const { flow } = slow(s, [0, pauseMs]);
      const { p, id } = await waiting(s, flow);
      expect((await p.over(id)).status).toBe("COMPLETED");
      expect(await s.kinds(id)).not.toContain("replay.stalled");
    }
  });

  it("for too long twice is released, retried with growing pauses, and ends", async () => {
    const s = await stage();
    const { flow, executions } = slow(s, [0, 600_000, 600_000]);
    const { p, id } = await waiting(s, flow);
    expect((await p.over(id)).status).toBe("COMPLETED");
    expect(executions()).toBe(4);
    const records = await s.records(id);
    const stalls = records.flatMap((record) => (record.kind === "replay.stalled" ? [record.data] : []));
    expect(stalls.map(({ attempt, seq }) => [attempt, seq])).toEqual([
      [1, 3],
      [2, 3],
    ]);
    expect(stalls[0]).toMatchObject({ awaited: 'step "b" (step.done, record 3)', waitedMs: 60_000 });
    const pauses = records.flatMap((record) => (record.kind === "term.ended" ? [record.data.delayMs ?? 0] : []));
    const [first = 0, second = 0] = pauses.filter((ms) => ms > 0);
    expect(first).toBeGreaterThan(2_000);
    expect(second).toBeGreaterThan(2 * first);
    const lines = s.logged.filter(({ event }) => event === "run.replay_stalled");
    expect(lines.map(({ level, fields }) => [level, fields.attempt])).toEqual([
      ["warn", 1],
      ["warn", 2],
    ]);
  });

  it("for too long three times is STUCK with what was awaited, for how long, and what to do", async () => {
    const s = await stage();
    const { flow, executions } = slow(s, [0, 600_000, 600_000, 600_000]);
    const { p, id } = await waiting(s, flow);
    expect((await p.over(id)).status).toBe("STUCK");
    expect(executions()).toBe(4);
    const stuck = (await s.records(id)).findLast(({ kind }) => kind === "run.stuck");
    expect((stuck!.data as { reason: string }).reason).toMatch(
      /3 replays waited 60 s each for the code to request step "b" .*move that into a step.*replayPatience.*redrive/,
    );
  });

  it("has a limit that can be set", async () => {
    const s = await stage();
    const { flow } = slow(s, [0, 12_000]);
    const { p, id } = await waiting(s, flow, 5_000);
    await p.over(id);
    expect(await s.kinds(id)).toContain("replay.stalled");
    await settled(3);
    const runner = createRunner({ workflows: [] });
    for (const bad of ["soon", -1, 0, Number.NaN] as never[])
      await expect(Tape.open({ store: "memory:", runner, replayPatience: bad })).rejects.toMatchObject({
        code: "TAPE_BAD_INPUT",
        details: { field: "replayPatience" },
      });
  });
});
