import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { fork, planFork } from "../../src/operator/fork.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { gate } from "../../src/sdk/gate.ts";
import { type AnyWorkflow, workflow } from "../../src/sdk/workflow.ts";
import { settled } from "../../testkit/clock.ts";
import { type Stage, stage, tenant } from "./stage.ts";

const any = (flow: unknown): AnyWorkflow => flow as AnyWorkflow;
const turns = ["first", "second", "third"];

/** A branch that awaits I/O before each decision; all branches use the same names. */
async function shop(tape: TapeContext, name: string, io: () => Promise<void>): Promise<string[]> {
  const picked: string[] = [];
  for (const turn of turns) {
    await io();
    picked.push(await tape.decide("pick", () => `${name} ${turn}`));
    await io();
    await tape.step("note", () => `${name} noted`);
  }
  return picked;
}

const expected = { a: turns.map((turn) => `a ${turn}`), b: turns.map((turn) => `b ${turn}`) };

describe("two branches with I/O between operations", () => {
  it("in lanes: in 200 interleavings with crashes no result is swapped and no run is STUCK", async () => {
    let replays = 0;
    for (let seed = 0; seed < 200; seed++) {
      const s = await stage();
      const random = seededRandom(`lanes ${seed}`);
      let executions = 0;
      const flow = any(
        workflow("flow", async (tape) => {
          executions++;
          const io = (): Promise<void> => settled(random.int(4));
          const [a, b] = await Promise.all(["a", "b"].map((name) => tape.lane(name, () => shop(tape, name, io))));
          return { a, b };
        }),
      );
      let p = s.process([flow]);
      const id = await p.start(flow);
      for (let k = 0; k < 3; k++) {
        await settled(5 + random.int(25));
        p.crash();
        await s.clock.elapse(30_001);
        p = s.process([flow]);
        void p.worker.poll(10);
      }
      const view = await p.over(id);
      expect([seed, view.status, view.outcome]).toEqual([seed, "COMPLETED", expected]);
      replays += executions - 1;
    }
    expect(replays).toBeGreaterThan(200);
  });

  it("outside lanes: a changed order makes the run STUCK, and the message suggests lanes", async () => {
    const s = await stage();
    let slow = "b";
    const io = (name: string): Promise<void> => settled(name === slow ? 6 : 1);
    const go = gate<string>("go");
    const flow = any(
      workflow("flow", async (tape) => {
        await Promise.all(["a", "b"].map((name) => io(name).then(() => tape.decide(`pick ${name}`, () => name))));
        return (await tape.gate(go)).status;
      }),
    );
    const p = s.process([flow]);
    const id = await p.start(flow);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    slow = "a";
    await s.store.intake.signal(tenant, id, { name: "go", value: "yes" });
    expect((await p.over(id)).status).toBe("STUCK");
    const stuck = (await s.records(id)).find(({ kind }) => kind === "run.stuck")!;
    expect((stuck.data as { reason: string }).reason).toMatch(/in another order.*tape\.lane/);
  });
});

describe("lanes", () => {
  const records = async (s: Stage, id: string) =>
    (await s.records(id)).filter(({ kind }) => kind === "step.done" || kind === "lane.opened");

  it("have their own positions, are named once in the journal, and may be nested", async () => {
    const s = await stage();
    const flow = any(
      workflow("flow", async (tape) => {
        await tape.step("root", () => 0);
        await tape.lane("a", async (lane) => {
          await lane.step("one", () => 1);
          await lane.lane("b/c", () => tape.step("inner", () => 2));
          await tape.step("two", () => 3);
        });
        await tape.lane("a", () => tape.step("three", () => 4)); // continues where it was
        return tape.step("last", () => 5);
      }),
    );
    const p = s.process([flow]);
    const id = await p.start(flow);
    expect((await p.over(id)).outcome).toBe(5);
    expect((await records(s, id)).map(({ data }) => data)).toEqual([
      { pos: 0, name: "root", value: 0 },
      { lane: 1, name: "/a" },
      { pos: 1_000_000, name: "one", value: 1 },
      { lane: 2, name: "/a/b%2Fc" },
      { pos: 2_000_000, name: "inner", value: 2 },
      { pos: 1_000_001, name: "two", value: 3 },
      { pos: 1_000_002, name: "three", value: 4 },
      { pos: 1, name: "last", value: 5 },
    ]);
  });

  it("code that no longer enters the only lane of a run has diverged", async () => {
    const s = await stage();
    let enters = true;
    const flow = any(
      workflow("flow", async (tape) => {
        if (!enters) return "done";
        return tape.lane("only", () => tape.gate(gate("go"))); // no result yet, so replay delivers nothing
      }),
    );
    const p = s.process([flow]);
    const id = await p.start(flow);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    enters = false;
    await s.store.intake.signal(tenant, id, { name: "go", value: 1 });
    expect((await p.over(id)).status).toBe("STUCK");
  });

  it("a name is for one branch at a time, and a lane inside a body is rejected", async () => {
    const s = await stage();
    const codes: unknown[] = [];
    const note = (error: unknown): void => void codes.push((error as { code: string }).code);
    const flow = any(
      workflow("flow", async (tape) => {
        const first = tape.lane("a", () => tape.step("one", () => settled(3)));
        await tape.lane("a", () => 1).catch(note);
        await tape.lane("", () => 1).catch(note);
        await tape.lane("x".repeat(600), () => 1).catch(note);
        await tape.step("body", () => tape.lane("b", () => 1).catch(note));
        return first;
      }),
    );
    const p = s.process([flow]);
    expect((await p.over(await p.start(flow))).status).toBe("COMPLETED");
    expect(codes).toEqual(["TAPE_BAD_INPUT", "TAPE_BAD_INPUT", "TAPE_BAD_INPUT", "TAPE_NESTED"]);
  });

  it("a run without lanes has no lane records", async () => {
    const s = await stage();
    const flow = any(workflow("flow", async (tape) => Promise.all([tape.step("a", () => 1), tape.step("b", () => 2)])));
    const p = s.process([flow]);
    const id = await p.start(flow);
    await p.over(id);
    expect((await s.records(id)).slice(1, 3).map(({ data }) => data)).toEqual([
      { pos: 0, name: "a", value: 1 },
      { pos: 1, name: "b", value: 2 },
    ]);
  });

  it("functions that race get their own lanes; winner and random values are the same on replay", async () => {
    const s = await stage();
    const go = gate<string>("go");
    const seen: unknown[] = [];
    const flow = any(
      workflow("flow", async (tape) => {
        const branch = (ms: number) => async (): Promise<unknown> => {
          await settled(ms);
          const ids = [tape.uuid(), tape.patched("p")];
          return [await tape.step("x", () => ms), ...ids];
        };
        seen.push(await tape.race([branch(5), branch(1)]), tape.uuid());
        await tape.gate(go);
        return seen;
      }),
    );
    const p = s.process([flow]);
    const id = await p.start(flow);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    await s.store.intake.signal(tenant, id, { name: "go", value: "yes" });
    expect((await p.over(id)).status).toBe("COMPLETED");
    expect(seen).toHaveLength(4);
    expect(seen.slice(2)).toEqual(seen.slice(0, 2));
    expect((seen[0] as unknown[])[0]).toBe(1);
  });

  it("a retried workflow discards what each lane requested after the failure", async () => {
    const s = await stage();
    let tries = 0;
    const flow = any(
      workflow(
        "flow",
        (tape) =>
          tape.lane("a", async () => {
            await tape.step("before", () => 1);
            try {
              return await tape.step("fails", () => {
                if (++tries < 3) throw new Error("not yet");
                return tries;
              });
            } finally {
              await tape.step("tidy", () => 2);
            }
          }),
        { retry: { attempts: 5, base: "1s" } },
      ),
    );
    const p = s.process([flow]);
    const id = await p.start(flow);
    expect(await p.over(id)).toMatchObject({ status: "COMPLETED", outcome: 3 });
    const names = (await s.records(id)).flatMap((record) => (record.kind === "step.done" ? [record.data.name] : []));
    expect(names.filter((name) => name === "before")).toHaveLength(1);
  });

  it("a fork keeps of other lanes what came before anything that runs again", async () => {
    const s = await stage();
    const done: string[] = [];
    let fails = true;
    const flow = any(
      workflow("flow", async (tape) => {
        const step = (name: string, fn = (): void => {}): Promise<string> =>
          tape.step(name, () => {
            done.push(name);
            fn();
            return name;
          });
        await step("root");
        const both = await Promise.all([
          tape.lane("a", async () => [await step("a1"), await settled(9).then(() => step("a2"))]),
          tape.lane("b", async () => [await step("b1"), await settled(2).then(() => step("b2"))]),
        ]);
        await step("last", () => {
          if (fails) throw new Error("no");
        });
        return both.flat();
      }),
    );
    const p = s.process([flow]);
    const id = await p.start(flow);
    expect((await p.over(id)).status).toBe("FAILED");
    const deps = { store: p.store, keeper: p.keeper, tenant, clock: s.clock, random: seededRandom("fork") };
    const plan = await planFork(deps, id);
    expect(plan.kept.map(({ name }) => name).toSorted()).toEqual(["a1", "a2", "b1", "b2", "root"]);
    expect(plan.rerun.map(({ name }) => name)).toEqual(["last"]);
    const early = await planFork(deps, id, 1_000_001); // a2 and everything after it run again
    expect(early.kept.map(({ name }) => name).toSorted()).toEqual(["a1", "b1", "b2", "root"]);
    expect((await planFork(deps, id, 0)).kept).toEqual([]);
    fails = false;
    done.length = 0;
    const next = await fork(deps, id, { by: "ada", reason: "fixed" });
    expect(await p.over(next)).toMatchObject({ status: "COMPLETED", outcome: ["a1", "a2", "b1", "b2"] });
    expect(done).toEqual(["last"]);
    done.length = 0;
    const other = await fork(deps, id, { by: "ada", reason: "again", at: 1_000_001 });
    expect((await p.over(other)).status).toBe("COMPLETED");
    expect(done).toEqual(["a2", "last"]);
  });
});
