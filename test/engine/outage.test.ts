import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { redrive } from "../../src/operator/redrive.ts";
import type { StepRetryPolicy, TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { DefiniteFailure, NotSent } from "../../src/sdk/outcomes.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { type Process, type Stage, stage, tenant } from "./stage.ts";

const audit = { by: "ann", reason: "the model is back" };
const minute = 60_000;

function flow(run: (tape: TapeContext) => unknown): AnyWorkflow {
  return workflow("flow", run as never) as unknown as AnyWorkflow;
}

const failedOf = async (s: Stage, id: string) =>
  (await s.records(id)).flatMap((record) => (record.kind === "step.failed" ? [record] : []));

/** Lets virtual time pass in steps of a minute, with the reactors of a process. */
async function pass(s: Stage, p: Process, ms: number, unless: () => Promise<boolean> = async () => false) {
  for (let passed = 0; passed < ms && !(await unless()); passed += minute) {
    await s.clock.elapse(minute);
    for (let k = 0; k < 3; k++) {
      await p.reactors();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

const isStuck = (s: Stage, id: string) => async () => (await s.run(id)).status === "STUCK";

describe("a decision that outlasts an outage", () => {
  it("parks when its attempts are used up, at doubling intervals, and completes when the model is back", async () => {
    const s = await stage();
    let calls = 0;
    const judge = flow((tape) =>
      tape.decide("judge", () => (++calls < 9 ? Promise.reject(new Error("503")) : "yes"), {
        retry: { attempts: 3, base: "10ms", giveUpAfter: "24h" },
      }),
    );
    const p = s.process([judge]);
    const id = await p.start(judge);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    expect([calls, p.worker.driving]).toEqual([3, 0]);
    const parked = (await s.records(id)).findLast(({ kind }) => kind === "term.ended");
    expect(JSON.stringify(parked?.data)).toMatch(/another attempt of decision .+judge.+, which has failed since 20/);
    await pass(s, p, 120 * minute, async () => (await s.run(id)).endedAt !== null);
    expect([(await s.run(id)).outcome, calls]).toEqual(["yes", 9]);
    const failed = await failedOf(s, id);
    expect(failed.map(({ data }) => data.attempt)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    for (const [k, { data }] of failed.slice(2).entries()) {
      const nominalMs = Math.min(15 * minute, minute * 2 ** k);
      expect(data.delayMs).toBeGreaterThanOrEqual(nominalMs / 2);
      expect(data.delayMs).toBeLessThanOrEqual(nominalMs);
    }
    expect(s.logged.filter(({ event }) => event === "step.unreachable")).toHaveLength(6);
  });

  it("makes the run STUCK after the time, compensates nothing, and a redrive tries again", async () => {
    const s = await stage();
    let calls = 0;
    let isBack = false;
    const compensated: unknown[] = [];
    const book = effect("book", async () => "seat 7", {
      semantics: "idempotent",
      compensate: async (_args: unknown, seat: string) => void compensated.push(seat),
    });
    const trip = flow(async (tape) => {
      await book({});
      return tape.decide(
        "judge",
        () => {
          calls++;
          return isBack ? "yes" : Promise.reject(new Error("connect ECONNREFUSED"));
        },
        { retry: { attempts: 2, base: "10ms", giveUpAfter: "10m" } },
      );
    });
    const p = s.process(createRunner({ workflows: [trip], effects: [book] }));
    const id = await p.start(trip);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    const startedAt = s.clock.mono();
    await pass(s, p, 60 * minute, isStuck(s, id));
    expect(s.clock.mono() - startedAt).toBeGreaterThan(9 * minute);
    expect(s.clock.mono() - startedAt).toBeLessThan(14 * minute);
    const records = await s.records(id);
    const stuck = records.findLast(({ kind }) => kind === "run.stuck");
    expect(stuck?.data).toMatchObject({ detail: { code: "TAPE_UNREACHABLE", step: "judge" } });
    const { reason } = stuck!.data as { reason: string };
    expect(reason).toMatch(
      /^TAPE_UNREACHABLE: model unreachable since 20\d\d-.+Z: decision "judge" has failed \d+ times, .+ECONNREFUSED/,
    );
    expect(records.some(({ kind }) => kind.startsWith("run.decided") || kind === "obligation.due")).toBe(false);
    const before = calls;
    await pass(s, p, 60 * minute);
    expect([calls, compensated]).toEqual([before, []]);

    await redrive(deps(s, p), id, audit);
    await p.until(async () => calls === before + 2 && (await s.run(id)).status === "WAITING");
    const resumed = (await failedOf(s, id)).slice(before).map(({ data }) => [data.timer, data.outage]);
    expect(resumed[0]).toEqual([undefined, { since: expect.any(Number), ms: 0 }]); // its attempts start again
    expect(resumed[1]).toMatchObject([true, {}]);
    isBack = true;
    await pass(s, p, 10 * minute, async () => (await s.run(id)).endedAt !== null);
    expect([(await s.run(id)).status, compensated]).toEqual(["COMPLETED", []]);
  });

  it("survives a crash at each point: no pause is waited for twice, and none is shortened", async () => {
    const s = await stage();
    const calls: number[] = [];
    const judge = flow((tape) =>
      tape.decide(
        "judge",
        () => {
          calls.push(s.clock.mono());
          throw new Error("503");
        },
        { retry: { attempts: 1, giveUpAfter: "5m" } },
      ),
    );
    let p = s.process([judge]);
    const id = await p.start(judge);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    for (let k = 0; k < 40 && !(await isStuck(s, id)()); k++) {
      p.crash();
      p = s.process([judge]);
      await pass(s, p, minute);
    }
    const failed = await failedOf(s, id);
    expect(failed).toHaveLength(calls.length);
    for (const [k, at] of calls.entries()) {
      if (k > 0) expect(at - calls[k - 1]!).toBeGreaterThanOrEqual(failed[k - 1]!.data.delayMs);
      if (k > 0) expect(at - calls[k - 1]!).toBeLessThanOrEqual(failed[k - 1]!.data.delayMs + 3 * minute);
    }
    const slept = failed.reduce((sum, { data }) => sum + data.delayMs, 0);
    expect(slept).toBe(5 * minute);
    expect(failed.at(-1)!.data.outage).toMatchObject({ ms: 5 * minute, gaveUp: true });
  });

  it("becomes STUCK all the same if the process crashes between the last failure and the record of it", async () => {
    const s = await stage();
    let calls = 0;
    const judge = flow((tape) =>
      tape.decide("judge", () => Promise.reject(new Error(`503 ${++calls}`)), {
        retry: { attempts: 1, giveUpAfter: 1 },
      }),
    );
    let crash = (): void => {};
    const store = {
      ...s.store,
      fenced: {
        ...s.store.fenced,
        append: async (...[fence, entry]: Parameters<typeof s.store.fenced.append>) => {
          if (entry.records.some(({ kind }) => kind === "run.stuck")) {
            crash();
            return new Promise<never>(() => {});
          }
          return s.store.fenced.append(fence, entry);
        },
      },
    };
    const first = s.process([judge], { store });
    crash = () => first.crash();
    const id = await first.start(judge);
    await s.process([judge]).over(id);
    expect([(await s.run(id)).status, calls]).toEqual(["STUCK", 2]);
  });

  it("waits as long as the upstream asks, and no longer than the outage may last", async () => {
    const s = await stage();
    const judge = flow((tape) =>
      tape.decide("judge", () => Promise.reject(new NotSent("429", { retryAfterMs: 90_000 })), {
        retry: { attempts: 5, base: "10ms", giveUpAfter: "2m" },
      }),
    );
    const p = s.process([judge]);
    const id = await p.start(judge);
    await pass(s, p, 30 * minute, isStuck(s, id));
    expect((await failedOf(s, id)).map(({ data }) => [data.delayMs, data.timer])).toEqual([
      [90_000, true],
      [30_000, true],
      [0, undefined],
    ]);
  });

  it("is no excuse for a definite failure or an error that `when` rejects", async () => {
    for (const [error, retry] of [
      [new DefiniteFailure("400"), { giveUpAfter: "24h" }],
      [new Error("400"), { giveUpAfter: "24h", when: () => false }],
    ] as [Error, StepRetryPolicy][]) {
      const s = await stage();
      const judge = flow((tape) => tape.decide("judge", () => Promise.reject(error), { retry }));
      const p = s.process([judge]);
      const run = await p.over(await p.start(judge));
      expect([run.status, (run.outcome as Error).message]).toEqual(["FAILED", "400"]);
    }
  });

  it("lets other branches end what they do before the run is STUCK", async () => {
    const s = await stage();
    const go = gate<string>("go");
    let finish = (): void => {};
    const sent: string[] = [];
    const pay = effect(
      "pay",
      async () => {
        sent.push("sent");
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
        return "paid";
      },
      { allowUnsafe: "a test", timeout: "10m" },
    );
    const both = flow((tape) =>
      Promise.all([
        tape.step("rate", () => Promise.reject(new Error("503")), { retry: { attempts: 1, giveUpAfter: 1 } }),
        tape.lane("pays", async () => [await pay({}), await tape.gate(go)]),
      ]),
    );
    const p = s.process(createRunner({ workflows: [both], effects: [pay] }));
    const id = await p.start(both);
    await p.until(async () => sent.length === 1 && (await failedOf(s, id)).length === 2);
    expect((await s.run(id)).status).toBe("RUNNING");
    finish();
    await p.over(id);
    const records = await s.records(id);
    const paid = records.find((record) => record.kind === "effect.settled");
    expect(paid?.data).toMatchObject({ to: "CONFIRMED" });
    expect(records.find(({ kind }) => kind === "run.stuck")?.data).toMatchObject({
      reason: expect.stringMatching(/^TAPE_UNREACHABLE: upstream unreachable since .+: step "rate"/),
    });
  });

  it("a cancelled run ends in the middle of an outage", async () => {
    const s = await stage();
    let calls = 0;
    const judge = flow((tape) =>
      tape.decide("judge", () => Promise.reject(new Error(`503 ${++calls}`)), {
        retry: { attempts: 1, giveUpAfter: "24h" },
      }),
    );
    const p = s.process([judge]);
    const id = await p.start(judge);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    await s.store.intake.cancel(tenant, id, { reason: "enough" });
    await p.until(async () => (await s.run(id)).endedAt !== null);
    expect([(await s.run(id)).status, calls]).toEqual(["CANCELLED", 1]);
  });

  it.each([0, "31d", "soon", -1])("rejects %j as the longest outage", async (giveUpAfter) => {
    const s = await stage();
    const judge = flow((tape) => tape.decide("judge", () => "yes", { retry: { giveUpAfter: giveUpAfter as never } }));
    const p = s.process([judge]);
    const run = await p.over(await p.start(judge));
    expect(run.outcome).toMatchObject({ code: "TAPE_BAD_INPUT", message: expect.stringMatching(/retry\.giveUpAfter/) });
  });
});

function deps(s: Stage, p: Process) {
  return { store: p.store, tenant, keeper: p.keeper, clock: s.clock, random: seededRandom("operator") };
}
