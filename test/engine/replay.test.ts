import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { essence, seeds, stage, tenant, ttlMs, watched } from "./stage.ts";

const go = gate<string>("go");
const any = (w: unknown): AnyWorkflow => w as AnyWorkflow;

/** Drives a workflow to its gate in one process, crashes it, and continues in another. */
async function twice(flow: AnyWorkflow): Promise<{ first: unknown; kinds: string[] }> {
  const s = await stage();
  const one = s.process([flow]);
  const id = await one.start(flow);
  await one.until(async () => (await s.run(id)).status === "WAITING");
  one.crash();
  await s.store.intake.signal(tenant, id, { name: "go", value: "on" });
  const two = s.process([flow]);
  const { outcome, status } = await two.over(id);
  expect(status).toBe("COMPLETED");
  return { first: outcome, kinds: await s.kinds(id) };
}

describe("replay", () => {
  it("returns what was recorded and calls no body again", async () => {
    const calls: string[] = [];
    const seen: unknown[] = [];
    const call = <T>(name: string, value: T): T => {
      calls.push(name);
      return value;
    };
    const flow = any(
      workflow("all", async (tape) => {
        const a = await tape.step("a", () => call("a", { at: new Date(5), big: 7n }));
        const both = await Promise.all([
          tape.step("b", () => call("b", 1)),
          Promise.all([tape.decide("c", () => call("c", 2)), tape.sample("now", () => call("d", 3))]),
        ]);
        const failure = await tape
          .step("e", () => {
            call("e", 0);
            throw Object.assign(new RangeError("no"), { code: "E_NO" });
          })
          .catch((error: unknown) => error);
        const nothing = await tape
          .step("f", () => Promise.reject(call("f", undefined)))
          .catch((error: unknown) => String(error));
        const fixed = [tape.now(), tape.uuid(), tape.uuid(), tape.random()];
        const first = await tape.race([tape.step("g", () => call("g", "g")), tape.step("h", () => call("h", "h"))]);
        seen.push([a, both, failure, nothing, fixed, first]);
        await tape.gate(go);
        return fixed;
      }),
    );
    await twice(flow);
    expect(calls.toSorted().join("")).toBe("abcdefgh");
    expect(seen).toHaveLength(2);
    expect(seen[1]).toEqual(seen[0]);
    const [[a, , failure, nothing]] = seen as [
      [{ at: unknown; big: unknown }, unknown, Error & { code: string }, string],
    ];
    expect([a.at instanceof Date, a.big]).toEqual([true, 7n]);
    expect([failure.name, failure.message, failure.code]).toEqual(["RangeError", "no", "E_NO"]);
    expect(nothing).toBe("Error: undefined was thrown");
  });

  it("a result that cannot be stored is the step's error, live and on replay", async () => {
    const seen: unknown[] = [];
    const flow = any(
      workflow("odd", async (tape) => {
        seen.push(await tape.step("f", () => () => 1).catch((error: { code?: string }) => error.code));
        seen.push(await tape.step("g", () => Promise.reject({ f: () => 1 })).catch((error: unknown) => String(error)));
        await tape.gate(go);
      }),
    );
    await twice(flow);
    expect(seen.slice(2)).toEqual(seen.slice(0, 2));
    expect(seen[0]).toBe("TAPE_NOT_ENCODABLE");
  });

  it("any records the winner, fails with an AggregateError, and rejects an empty race", async () => {
    const seen: unknown[] = [];
    const no = (name: string) => () => Promise.reject(new Error(name));
    const flow = any(
      workflow("any", async (tape) => {
        seen.push(await tape.any([tape.step("a", no("a")), tape.step("b", () => "b"), tape.step("c", () => "c")]));
        const none = await tape
          .any([tape.step("d", no("d")), tape.step("e", no("e"))])
          .catch((error: unknown) => error);
        seen.push([(none as AggregateError).name, (none as AggregateError).errors.map((e: Error) => e.message)]);
        seen.push(await tape.race([]).catch((error: { code: string }) => error.code));
        await tape.gate(go);
      }),
    );
    await twice(flow);
    expect(seen.slice(3)).toEqual(seen.slice(0, 3));
    expect(seen.slice(0, 3)).toEqual(["b", ["AggregateError", ["d", "e"]], "TAPE_BAD_INPUT"]);
  });

  it("starts operations without a record after the last record", async () => {
    const order: string[] = [];
    let crash = (): void => {};
    const flow = any(
      workflow("late", async (tape) => {
        const slow = tape.step("slow", async () => {
          order.push("slow");
          if (order.length === 1) await new Promise(() => {});
          return 1;
        });
        await tape.step("quick", () => void order.push("quick"));
        await tape.step("next", () => {
          order.push("next");
          crash();
        });
        return slow;
      }),
    );
    const s = await stage();
    const one = s.process([flow]);
    crash = () => one.crash();
    const id = await one.start(flow);
    await s.clock.elapse(ttlMs + 1);
    crash = () => {};
    expect((await s.process([flow]).over(id)).outcome).toBe(1);
    expect(order).toEqual(["slow", "quick", "next", "slow", "next"]);
  });

  it("accepts losers of a race whose records come last", async () => {
    let release = (): void => {};
    let crash = (): void => {};
    const flow = any(
      workflow("loser", async (tape) => {
        const loser = tape.step("loser", () => new Promise<number>((resolve) => (release = () => resolve(2))));
        const won = await tape.race([tape.step("winner", () => 1), loser]);
        const last = tape.step("last", async () => {
          release();
          await new Promise((resolve) => setTimeout(resolve, 5));
          crash();
          return 3;
        });
        await tape.race([last]);
        return won;
      }),
    );
    const s = await stage();
    const one = s.process([flow]);
    crash = () => one.crash();
    const id = await one.start(flow);
    await new Promise((resolve) => setTimeout(resolve, 30));
    await s.clock.elapse(ttlMs + 1);
    crash = () => {};
    const view = await s.process([flow]).over(id);
    expect([view.status, view.outcome]).toEqual(["COMPLETED", 1]);
  });

  it("gives branches of different depth behind one promise the same positions", async () => {
    const flow = any(
      workflow("deep", async (tape) => {
        const shared = tape.step("shared", () => 0);
        const quick = async () => {
          await shared;
          await tape.step("quick 1", () => 1);
          await tape.step("quick 2", () => 2);
        };
        const deep = async (depth: number): Promise<void> => {
          if (depth > 0) return deep(depth - 1).then((value) => value);
          await shared;
          for (let k = 0; k < 30; k++) await null;
          await tape.step("deep", () => 3);
        };
        await Promise.all([quick(), deep(10)]);
        await tape.gate(go);
      }),
    );
    await twice(flow);
  });

  it("[INV-15] delivers the results of one commit one at a time, with microtasks drained, as replay does", async () => {
    const flow = any(
      workflow("batch", async (tape) => {
        const first = tape.step("first", () => 0); // its append is in flight while the others are queued
        const slow = async () => {
          await tape.step("a", () => 1);
          for (let k = 0; k < 30; k++) await null;
          await tape.step("after a", () => 2);
        };
        const quick = async () => {
          await tape.step("b", () => 3);
          await tape.step("after b", () => 4);
        };
        await Promise.all([first, slow(), quick()]);
        await tape.gate(go);
      }),
    );
    await twice(flow);
  });

  it("[INV-15] replays two parallel branches alike in 1 000 seeds, wherever the driver crashes", async () => {
    let cut = 0;
    for (let seed = 1; seed <= seeds(1_000); seed++) {
      const random = seededRandom(seed);
      const delays = Array.from({ length: 6 }, () => random.int(30));
      const flow = any(branches(delays, (ms, clock) => clock(ms)));
      const s = await stage();
      const plain = await s.process([at(flow, s.clock.sleep.bind(s.clock))]).start(flow, 1, { id: "plain" });
      await s.clock.elapse(200);
      const want = (await s.run(plain)).outcome;
      expect(want).not.toBeNull();

      const limit = 1 + random.int(8);
      const flowTwo = at(flow, s.clock.sleep.bind(s.clock));
      const doomed: { crash(): void }[] = [];
      const one = s.process([flowTwo], {
        store: watched(s.store, (_kinds, n) => {
          if (n >= limit && doomed.length > 0) doomed.pop()!.crash();
        }),
      });
      doomed.push(one);
      const id = await one.start(flowTwo, 1, { id: "cut" });
      await s.clock.elapse(200);
      const before = essence(await s.records(id));
      if ((await s.run(id)).endedAt === null) {
        cut++;
        await s.clock.elapse(ttlMs);
        await s.process([flowTwo]).over(id);
      }
      const records = await s.records(id);
      expect(essence(records).slice(0, before.length), `seed ${seed}`).toEqual(before);
      expect((await s.run(id)).status, `seed ${seed}: ${inspect(s.logged.slice(-2))}`).toBe("COMPLETED");
      expect((await s.run(id)).outcome).toEqual(want);
      expect(namesByPosition(records).size).toBe(4);
    }
    expect(cut).toBeGreaterThan(seeds(500));
  }, 60_000);
});

type Sleep = (ms: number) => Promise<void>;
let sleeping: Sleep = async () => {};

function branches(delays: readonly number[], wait: (ms: number, sleep: Sleep) => Promise<void>) {
  return workflow("branches", async (tape) => {
    const branch = async (name: string, first: number, second: number) => {
      const a = await tape.step(`${name} 1`, () => wait(first, sleeping).then(() => `${name}1`));
      const b = await tape.step(`${name} 2`, () => wait(second, sleeping).then(() => `${name}2`));
      return [a, b];
    };
    return Promise.all([branch("x", delays[0]!, delays[1]!), branch("y", delays[2]!, delays[3]!)]);
  });
}

function at(flow: AnyWorkflow, sleep: Sleep): AnyWorkflow {
  sleeping = sleep;
  return flow;
}

function namesByPosition(records: readonly { kind: string; data: unknown }[]): Map<number, string> {
  const steps = records
    .filter(({ kind }) => kind === "step.done")
    .map(({ data }) => data as { pos: number; name: string });
  return new Map(steps.map(({ pos, name }) => [pos, name]));
}

describe("divergence", () => {
  const before = any(
    workflow("flow", async (tape) => {
      await tape.step("a", () => 1);
      await tape.step("b", () => 2);
      await tape.gate(go);
      await tape.step("c", () => 3);
      return "old";
    }),
  );
  const pay = effect("pay", async (a: { n: number }) => a.n, { semantics: "idempotent" });
  const cases: [string, AnyWorkflow, AnyWorkflow, RegExp][] = [
    [
      "a renamed step",
      before,
      any(workflow("flow", async (tape) => void (await tape.step("other", () => 1)))),
      /position 0 the journal has step "a" .*the code requests step "other".*tape\.patched.*redrive/s,
    ],
    [
      "reordered operations",
      before,
      any(
        workflow("flow", async (tape) => {
          await tape.step("b", () => 1);
          await tape.step("a", () => 1);
        }),
      ),
      /journal has step "a".*requests step "b"/,
    ],
    [
      "another kind",
      before,
      any(workflow("flow", async (tape) => tape.now())),
      /journal has step "a".*requests sample "now\(\)"/,
    ],
    [
      "other arguments",
      any(workflow("flow", async (tape) => [await pay({ n: 1 }), await tape.gate(go)])),
      any(workflow("flow", async (tape) => [await pay({ n: 2 }), await tape.gate(go)])),
      /effect "pay" .* with \{"n":1\}, but the code requests the same with \{"n":2\}/,
    ],
    [
      "code that ends early",
      before,
      any(workflow("flow", async (tape) => tape.step("a", () => 1))),
      /the code ended, but the journal continues with step "b"/,
    ],
    [
      "code that ends before an open wait",
      before,
      any(
        workflow("flow", async (tape) => {
          await tape.step("a", () => 1);
          await tape.step("b", () => 1);
        }),
      ),
      /the code ended, but the journal continues with gate "go"/,
    ],
    [
      "code that never requests it",
      before,
      any(
        workflow("flow", async (tape) => {
          await tape.step("a", () => 1);
          await new Promise(() => {});
        }),
      ),
      /3 replays waited 60 s each for the code to request step "b".*move that into a step/,
    ],
  ];

  it.each(cases)(
    "[INV-15] %s makes the run STUCK with a reason; a redrive with matching code resumes it",
    async (_, old, other, message) => {
      const { redrive } = await import("../../src/operator/redrive.ts");
      const s = await stage();
      const parts = (flow: AnyWorkflow) => createRunner({ workflows: [flow], effects: [pay] });
      const one = s.process(parts(old));
      const id = await one.start(old);
      await one.until(async () => (await s.run(id)).status === "WAITING");
      one.crash();
      await s.store.intake.signal(tenant, id, { name: "go", value: "on" });
      const two = s.process(parts(other));
      expect((await two.over(id)).status).toBe("STUCK");
      const stuck = (await s.records(id)).find(({ kind }) => kind === "run.stuck")!;
      expect((stuck.data as { reason: string }).reason).toMatch(message);
      expect(two.keeper.leases).toEqual([]);
      await s.store.intake.signal(tenant, id, { name: "other", value: "while stuck" });
      await two.reactors();
      expect((await s.run(id)).status).toBe("STUCK");
      two.crash();
      const three = s.process(parts(old));
      const deps = { store: s.store, keeper: three.keeper, tenant, clock: s.clock, random: seededRandom(1) };
      await redrive(deps, id, { by: "ada", reason: "old code is back" });
      expect((await three.over(id)).status).toBe("COMPLETED");
      expect(await s.kinds(id)).toEqual(expect.arrayContaining(["operator.action", "run.unstuck"]));
      await expect(redrive(deps, id, { by: "ada", reason: "again" })).rejects.toMatchObject({
        code: "TAPE_ILLEGAL_TRANSITION",
      });
    },
  );

  it("patched is true for new runs and false for old ones, on every replay", async () => {
    const seen: [string, boolean][] = [];
    const after = any(
      workflow("flow", async (tape) => {
        await tape.step("a", () => 1);
        const is = tape.patched("new b");
        seen.push([tape.runId, is]);
        await tape.step(is ? "b2" : "b", () => 2);
        await tape.gate(go);
        return is;
      }),
    );
    const s = await stage();
    const one = s.process([before]);
    const old = await one.start(before);
    await one.until(async () => (await s.run(old)).status === "WAITING");
    one.crash();
    const two = s.process([after]);
    const fresh = await two.start(after);
    await two.until(async () => (await s.run(fresh)).status === "WAITING");
    for (const id of [old, fresh]) await s.store.intake.signal(tenant, id, { name: "go", value: 1 });
    expect((await two.over(old)).outcome).toBe(false);
    expect((await two.over(fresh)).outcome).toBe(true);
    expect(seen).toEqual([
      [fresh, true],
      [old, false],
      [fresh, true],
    ]);
  });

  it("patched is true for a run that crashed right before the change", async () => {
    let crash = (): void => {};
    const flow = (patched: boolean) =>
      any(
        workflow("flow", async (tape) => {
          await tape.step("a", () => 1);
          const is = patched && tape.patched("p");
          await tape.step("b", () => crash());
          return is;
        }),
      );
    const s = await stage();
    const one = s.process([flow(false)]);
    crash = () => one.crash();
    const id = await one.start(flow(false));
    await s.clock.elapse(ttlMs + 1);
    crash = () => {};
    expect((await s.process([flow(true)]).over(id)).outcome).toBe(true);
  });
});
