import { describe, expect, it } from "vitest";
import type { JournalRecord } from "../../src/model/records.ts";
import type { StepOptions, TapeContext } from "../../src/sdk/context.ts";
import { gate } from "../../src/sdk/gate.ts";
import { DefiniteFailure, NotSent } from "../../src/sdk/outcomes.ts";
import { type AnyWorkflow, type WorkflowOptions, workflow } from "../../src/sdk/workflow.ts";
import { settled } from "../../testkit/clock.ts";
import { type Stage, stage, tenant } from "./stage.ts";

const go = gate<string>("go");
const never = (): Promise<never> => new Promise(() => {});

function flow(
  run: (tape: TapeContext, input: never) => unknown,
  options: WorkflowOptions<unknown> = {},
  name = "flow",
): AnyWorkflow {
  return workflow(name, run as never, options) as unknown as AnyWorkflow;
}

const failedOf = (records: readonly JournalRecord[]) =>
  records.flatMap((record) => (record.kind === "step.failed" ? [record.data] : []));

async function outcomeOf(s: Stage, workflow: AnyWorkflow) {
  const p = s.process([workflow]);
  const id = await p.start(workflow);
  const run = await p.over(id);
  return { id, run, failed: failedOf(await s.records(id)) };
}

describe("a step with a retry", () => {
  it("records each failed attempt but the last, and passes its number to the body", async () => {
    const s = await stage();
    const seen: number[] = [];
    const { run, failed, id } = await outcomeOf(
      s,
      flow((tape) =>
        tape.step(
          "rate",
          ({ attempt }) => {
            seen.push(attempt);
            if (attempt < 3) throw new Error(`429 ${attempt}`);
            return "1.08";
          },
          { retry: { attempts: 5, base: "200ms" } },
        ),
      ),
    );
    expect([run.status, run.outcome, seen]).toEqual(["COMPLETED", "1.08", [1, 2, 3]]);
    expect(failed.map(({ pos, name, attempt, timer }) => [pos, name, attempt, timer])).toEqual([
      [0, "rate", 1, undefined],
      [0, "rate", 2, undefined],
    ]);
    expect(failed.map(({ error }) => (error as Error).message)).toEqual(["429 1", "429 2"]);
    expect(failed[0]!.delayMs).toBeGreaterThanOrEqual(100);
    expect(failed[1]!.delayMs).toBeLessThanOrEqual(400);
    expect(await s.kinds(id)).not.toContain("term.started"); // short pauses stay under the lease
  });

  it("ends with the last error when no attempt is left", async () => {
    const s = await stage();
    let bodies = 0;
    const { run, failed } = await outcomeOf(
      s,
      flow((tape) =>
        tape.step("rate", () => Promise.reject(new Error(`no ${++bodies}`)), { retry: { attempts: 3, base: "1ms" } }),
      ),
    );
    expect([run.status, (run.outcome as Error).message, bodies]).toEqual(["FAILED", "no 3", 3]);
    expect(failed.map(({ attempt }) => attempt)).toEqual([1, 2]);
  });

  it.each<[string, unknown, StepOptions["retry"]]>([
    ["a definite failure", new DefiniteFailure("bad request"), { attempts: 5 }],
    ["an error that `when` rejects", new Error("bad request"), { attempts: 5, when: () => false }],
    [
      "an error on which `when` throws",
      new Error("bad request"),
      {
        attempts: 5,
        when: () => {
          throw new Error("not this one");
        },
      },
    ],
  ])("is not repeated after %s", async (_, error, retry) => {
    const s = await stage();
    let bodies = 0;
    const refuse = () => {
      bodies++;
      throw error;
    };
    const { run, failed } = await outcomeOf(
      s,
      flow((tape) => tape.step("rate", refuse, { retry: retry! })),
    );
    expect([run.status, (run.outcome as Error).message, bodies, failed]).toEqual(["FAILED", "bad request", 1, []]);
  });

  it("parks for a long pause, waits as long as the upstream asks, and costs no slot meanwhile", async () => {
    const s = await stage();
    let bodies = 0;
    const limited = flow((tape) =>
      tape.decide(
        "judge",
        ({ attempt, record }) => {
          record({ model: "m", rationale: `attempt ${attempt}` });
          if (++bodies === 1) throw new NotSent("429", { retryAfterMs: 20_000 });
          return "yes";
        },
        { retry: { attempts: 2, base: "10ms" } },
      ),
    );
    const p = s.process([limited]);
    const startedAt = s.clock.mono();
    const id = await p.start(limited);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    expect(p.worker.driving).toBe(0);
    expect(await s.store.read.timers(tenant, { run: id })).toMatchObject([{ purpose: "retry 1", status: "SET" }]);
    const run = await p.over(id);
    expect([run.outcome, bodies]).toEqual(["yes", 2]);
    expect(s.clock.mono() - startedAt).toBeGreaterThanOrEqual(20_000);
    const made = (await s.records(id)).find(({ kind }) => kind === "decision.made");
    expect(made?.data).toMatchObject({ model: "m", rationale: "attempt 2" });
    expect(failedOf(await s.records(id))).toMatchObject([{ attempt: 1, delayMs: 20_000, timer: true }]);
  });

  it("keeps its count over crashes, whatever interrupts it, and replays no body", async () => {
    const s = await stage();
    const seen: string[] = [];
    let process = 0;
    const fragile = flow(async (tape) => {
      const value = await tape.step(
        "rate",
        ({ attempt }) => {
          seen.push(`${process}: ${attempt}`);
          if (attempt % 2 === 0 && process < 3) return never();
          if (attempt < 4) throw new Error("not yet");
          return attempt;
        },
        { retry: { attempts: 4, base: "10ms" } },
      );
      await tape.gate(go);
      return value;
    });
    let id = "";
    for (process = 1; process < 3; process++) {
      const p = s.process([fragile]);
      if (process === 1) id = await p.start(fragile);
      await p.until(() => seen.at(-1) === `${process}: 2`);
      p.crash();
      await s.clock.elapse(60_000);
    }
    const p = s.process([fragile]);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    expect(seen).toEqual(["1: 1", "1: 2", "2: 2", "3: 2", "3: 3", "3: 4"]);
    p.crash();
    await s.store.intake.signal(tenant, id, { name: "go", value: "on" });
    expect((await s.process([fragile]).over(id)).outcome).toBe(4);
    expect(seen).toHaveLength(6);
    expect(failedOf(await s.records(id)).map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
  });

  it("a crash after the timer has fired repeats nothing but the interrupted attempt", async () => {
    const s = await stage();
    const seen: number[] = [];
    let hangs = true;
    const slow = flow((tape) =>
      tape.step(
        "rate",
        ({ attempt }) => {
          seen.push(attempt);
          if (attempt === 1) throw new Error("not yet");
          return hangs ? never() : attempt;
        },
        { retry: { attempts: 3, base: "10s" } },
      ),
    );
    const p = s.process([slow]);
    const id = await p.start(slow);
    await p.until(() => seen.length === 2);
    p.crash();
    hangs = false;
    await s.clock.elapse(60_000);
    const run = await s.process([slow]).over(id);
    expect([run.outcome, seen]).toEqual([2, [1, 2, 2]]);
  });

  it("a retry of the run starts its attempts again, and never sets a timer twice", async () => {
    const s = await stage();
    const seen: number[] = [];
    const { run, failed } = await outcomeOf(
      s,
      flow(
        (tape) =>
          tape.step(
            "rate",
            ({ attempt }) => {
              seen.push(attempt);
              if (attempt < 4) throw new Error("not yet");
              return "done";
            },
            { retry: { attempts: 2, base: "10s" } },
          ),
        { retry: { attempts: 2, base: "10ms" } },
      ),
    );
    expect([run.status, run.outcome, seen]).toEqual(["COMPLETED", "done", [1, 2, 3, 4]]);
    expect(failed.map(({ attempt }) => attempt)).toEqual([1, 3]);
  });

  it("a cancelled run ends during a pause, and no further attempt starts", async () => {
    for (const base of ["1s", "1h"] as const) {
      const s = await stage();
      let bodies = 0;
      const failing = flow((tape) =>
        tape.step("rate", () => Promise.reject(new Error(`no ${++bodies}`)), { retry: { attempts: 9, base } }),
      );
      const p = s.process([failing]);
      const id = await p.start(failing);
      await p.until(async () => failedOf(await s.records(id)).length === 1);
      await s.store.intake.cancel(tenant, id, { reason: "enough" });
      expect((await p.over(id)).status).toBe("CANCELLED");
      expect(bodies).toBe(1);
    }
  });

  it("runs beside other branches, whose waits do not park it", async () => {
    const s = await stage();
    let bodies = 0;
    const both = flow(async (tape) => {
      const [, value] = await Promise.all([
        tape.gate(go),
        tape.step(
          "rate",
          () => {
            if (++bodies < 3) throw new Error("not yet");
            return bodies;
          },
          { retry: { attempts: 3, base: "2s", cap: "2s" } },
        ),
      ]);
      return value;
    });
    const p = s.process([both]);
    const id = await p.start(both);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    expect(bodies).toBe(3);
    await s.store.intake.signal(tenant, id, { name: "go", value: "on" });
    expect((await p.over(id)).outcome).toBe(3);
  });

  it.each<[string, unknown]>([
    ["attempts 0", { retry: { attempts: 0 } }],
    ["attempts beyond a journal", { retry: { attempts: 1_001 } }],
    ["a mistyped option", { retries: 3 }],
    ["a mistyped policy", { retry: { attempt: 3 } }],
    ["a `when` that is no function", { retry: { when: true } }],
    ["a timeout of nothing", { timeout: 0 }],
    ["a timeout without a unit", { timeout: "ten" }],
  ])("refuses %s before anything is written", async (_, options) => {
    const s = await stage();
    const { run, id } = await outcomeOf(
      s,
      flow((tape) => tape.step("rate", () => 1, options as StepOptions)),
    );
    expect(run.outcome).toMatchObject({ code: "TAPE_BAD_INPUT" });
    expect(await s.kinds(id)).toEqual(["run.created", "run.ended"]);
  });
});

describe("a step with a time-out", () => {
  it("fails when the signal fires, whatever the body does, and drops its late result", async () => {
    const s = await stage();
    const late: ((value: string) => void)[] = [];
    const reasons: unknown[] = [];
    const timed = flow(async (tape) => {
      const value = await tape.step(
        "rate",
        ({ abortSignal, attempt }) => {
          if (attempt === 3) return "in time";
          abortSignal.addEventListener("abort", () => reasons.push(abortSignal.reason));
          return new Promise<string>((resolve) => late.push(resolve));
        },
        { timeout: "10s", retry: { attempts: 3, base: "10ms" } },
      );
      await tape.gate(go);
      return value;
    });
    const p = s.process([timed]);
    const id = await p.start(timed);
    await p.until(() => late.length === 2);
    late[0]!("too late");
    await p.until(async () => (await s.run(id)).status === "WAITING");
    late[1]!("later still");
    await settled(10);
    await s.store.intake.signal(tenant, id, { name: "go", value: "on" });
    expect((await p.over(id)).outcome).toBe("in time");
    expect(reasons).toMatchObject([{ code: "TAPE_TIMEOUT" }, { code: "TAPE_TIMEOUT" }]);
    const records = await s.records(id);
    expect(failedOf(records).map(({ error }) => (error as { code?: string }).code)).toEqual([
      "TAPE_TIMEOUT",
      "TAPE_TIMEOUT",
    ]);
    expect(records.filter(({ kind }) => kind === "step.done")).toHaveLength(1);
  });

  it("throws TAPE_TIMEOUT into the workflow if it has no retry", async () => {
    const s = await stage();
    const { run } = await outcomeOf(
      s,
      flow((tape) => tape.step("rate", never, { timeout: "5s" })),
    );
    expect([run.status, run.outcome]).toMatchObject(["FAILED", { code: "TAPE_TIMEOUT" }]);
    expect((run.outcome as Error).message).toContain("attempt 1 of rate took longer than 5000 ms");
  });
});

describe("the last progress note", () => {
  it("reaches the body that repeats an interrupted one, and no other", async () => {
    const s = await stage();
    const seen: [string, string | undefined][] = [];
    let hangs = true;
    const rows = flow(async (tape) => {
      await tape.step("first", () => tape.progress("first"));
      await tape.step("import", ({ last }) => {
        seen.push(["import", last]);
        tape.progress("row 500");
        return hangs ? never() : 1;
      });
      return tape.step("next", ({ last }) => void seen.push(["next", last]));
    });
    const p = s.process([rows]);
    const id = await p.start(rows);
    await p.until(() => seen.length === 1);
    await s.clock.elapse(15_000);
    await settled(20);
    p.crash();
    hangs = false;
    await s.clock.elapse(60_000);
    await s.process([rows]).over(id);
    expect(seen).toEqual([
      ["import", undefined],
      ["import", "row 500"],
      ["next", undefined],
    ]);
  });

  it("reaches the next attempt of the same process", async () => {
    const s = await stage();
    const seen: (string | undefined)[] = [];
    await outcomeOf(
      s,
      flow((tape) =>
        tape.step(
          "import",
          ({ last, attempt }) => {
            seen.push(last);
            tape.progress(`row ${attempt}`);
            if (attempt < 3) throw new Error("not yet");
          },
          { retry: { attempts: 3, base: "1ms" } },
        ),
      ),
    );
    expect(seen).toEqual([undefined, "row 1", "row 2"]);
  });
});
