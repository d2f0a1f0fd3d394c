import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import type { JournalRecord } from "../../src/model/records.ts";
import { type Resolution, resolve } from "../../src/operator/resolve.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { AckLost, type Observation, outcome } from "../../src/sdk/outcomes.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { checkProjection } from "../../testkit/projection.ts";
import { stage, tenant } from "../engine/stage.ts";

/** The world: calls and compensations in order, and what `observe` returns. */
interface World {
  readonly calls: string[];
  observations: number;
  seen: () => Observation<string>;
  onCompensate: () => void;
}

const go = gate<boolean>("go");

function effectsIn(world: World) {
  const wire = effect(
    "wire",
    async (n: number, fx): Promise<string> => {
      world.calls.push(`send ${n}`);
      if (n < 0 && fx.attempt === 1) throw new AckLost();
      return `sent ${n}`;
    },
    {
      businessKey: (n: number) => `invoice ${n}`,
      observe: () => {
        world.observations++;
        return world.seen();
      },
      settleDelay: "0s",
      compensate: (n: number, result: string) => {
        world.onCompensate();
        world.calls.push(`compensate ${n} ${result}`);
      },
    },
  );
  const blind = effect(
    "blind",
    async (n: number): Promise<string> => {
      if (n < 0) throw new AckLost();
      return `done ${n}`;
    },
    { allowUnsafe: "a test" },
  );
  return { wire, blind };
}

async function set(run: (tape: TapeContext, effects: ReturnType<typeof effectsIn>) => unknown) {
  const world: World = {
    calls: [],
    observations: 0,
    seen: () => outcome.inconclusive("busy"),
    onCompensate: () => {},
  };
  const effects = effectsIn(world);
  const s = await stage();
  const flow = workflow("flow", ((tape: TapeContext) => run(tape, effects)) as never) as unknown as AnyWorkflow;
  const runner = createRunner({ workflows: [flow], effects: [effects.wire, effects.blind] as never });
  const p = s.process(runner);
  const id = await p.start(flow);
  const random = seededRandom("operator");
  const knows = { store: p.store, keeper: p.keeper, tenant, clock: s.clock, random, log: () => {}, runner };
  const ask = (resolution: Resolution, pos = 0, sub = 0, deps = knows): Promise<void> =>
    resolve(deps, { run: id, pos, sub, resolution, by: "ada", reason: "asked the bank" });
  /** A server without the definitions. */
  const stranger = { ...knows, runner: createRunner({ workflows: [] }) };
  const rowOf = async (pos = 0, sub = 0) =>
    (await s.store.read.effects(tenant, { run: id })).find((row) => row.pos === pos && row.sub === sub);
  const statusOf = async (pos = 0, sub = 0) => (await rowOf(pos, sub))?.status;
  const acted = async (target: { run: string } | { journal: number }) =>
    (await s.store.read.journal(tenant, target)).filter(({ kind }) => kind === "operator.action");
  const ended = async (): Promise<string> => {
    await p.until(async () => (await s.run(id)).endedAt !== null);
    return (await s.run(id)).status;
  };
  return { s, p, id, ask, stranger, rowOf, statusOf, acted, ended, world };
}

const inDoubt = (tape: TapeContext, { wire }: ReturnType<typeof effectsIn>) => tape.effect(wire.with(-1));
const opening = async (
  tape: TapeContext,
  { wire }: ReturnType<typeof effectsIn>,
): Promise<{ first: string; second: string }> => {
  const first = await tape.effect(wire.with(1));
  const second = await tape.effect(wire.with(2));
  await tape.gate(go);
  return { first, second };
};
const dataOf = (record: JournalRecord | undefined): unknown => record?.data;

describe("an operator requests an observation", () => {
  it("observes a stuck effect again at once; a conclusive result resumes the run", async () => {
    const { s, p, id, ask, rowOf, statusOf, acted, ended, world } = await set(inDoubt);
    expect((await p.over(id)).status).toBe("STUCK");
    const before = world.observations;
    expect(await rowOf()).toMatchObject({ status: "STUCK", reason: "inconclusive" });
    await ask({ as: "observe" });
    expect(await statusOf()).toBe("STUCK"); // the request settles nothing
    await p.reactors();
    expect([world.observations, await statusOf()]).toEqual([before + 1, "STUCK"]);
    world.seen = () => outcome.confirmed("seen");
    await ask({ as: "observe" });
    expect(await ended()).toBe("COMPLETED");
    expect((await s.run(id)).outcome).toBe("seen");
    expect(world.calls).toEqual(["send -1"]);
    const actions = await acted({ journal: (await rowOf())!.item! });
    expect(actions.map(dataOf)).toEqual(
      [1, 2].map(() => ({ by: "ada", action: "resolve", reason: "asked the bank", detail: { as: "observe" } })),
    );
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("leaves the effect STUCK after ten more observations", async () => {
    const { s, p, id, ask, rowOf, world } = await set(inDoubt);
    await p.over(id);
    const before = world.observations;
    await ask({ as: "observe" });
    for (let k = 0; k < 40; k++) {
      await p.reactors();
      await s.clock.elapse(60_000);
    }
    expect(world.observations - before).toBe(10);
    expect(await rowOf()).toMatchObject({ status: "STUCK", reason: "inconclusive" });
    expect((await s.store.read.lease(tenant, { journal: (await rowOf())!.item! }))?.nextReactor).toBeNull();
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("observes an UNKNOWN effect now instead of after its backoff", async () => {
    const { p, ask, rowOf, statusOf, ended, world } = await set(inDoubt);
    await p.until(async () => world.observations === 4);
    expect(await statusOf()).toBe("UNKNOWN");
    await p.reactors();
    expect(world.observations).toBe(4); // not due yet
    world.seen = () => outcome.confirmed("seen");
    await ask({ as: "observe" });
    await p.reactors();
    expect([world.observations, (await rowOf())?.reason]).toEqual([5, "observed"]);
    expect(await ended()).toBe("COMPLETED");
  });

  it("rejects settled and unobservable effects; without the definition the journal says so", async () => {
    const settled = await set(opening);
    await settled.p.until(async () => (await settled.statusOf(1)) === "CONFIRMED");
    await expect(settled.ask({ as: "observe" })).rejects.toMatchObject({ code: "TAPE_ILLEGAL_TRANSITION" });
    const { p, id, ask, stranger, rowOf } = await set((tape, { blind }) => tape.effect(blind.with(-1)));
    await p.over(id);
    await expect(ask({ as: "observe" })).rejects.toMatchObject({ code: "TAPE_NO_OBSERVER" });
    await ask({ as: "observe" }, 0, 0, stranger);
    await p.reactors();
    const { item, status } = (await rowOf())!;
    expect(status).toBe("STUCK");
    const journal = await p.store.read.journal(tenant, { journal: item! });
    expect(dataOf(journal.findLast(({ kind }) => kind === "effect.observed"))).toMatchObject({
      observation: "inconclusive",
      detail: { reason: "the effect has no observe" },
    });
    expect((await p.store.read.lease(tenant, { journal: item! }))?.nextReactor).toBeNull();
  });
});

describe("a rejected resolution", () => {
  it.each<[string, Resolution, "knows" | "strange"]>([
    ["an observation without observe", { as: "observe" }, "knows"],
    ["a second resolution after confirmed", { as: "failed" }, "strange"],
    ["compensating without compensate", { as: "compensate" }, "knows"],
  ])("%s: fences no holder and leaves no term behind", async (_, refused, who) => {
    const { p, id, ask, stranger, rowOf } = await set((tape, { blind }) => tape.effect(blind.with(-1)));
    await p.over(id);
    if (who === "strange") await ask({ as: "confirmed", value: "yes" }, 0, 0, stranger);
    const target = { journal: (await rowOf())!.item! };
    const seen = async () => [
      await p.store.read.journal(tenant, target),
      (await p.store.read.lease(tenant, target))?.token,
    ];
    const before = await seen();
    const request = who === "strange" ? ask(refused, 0, 0, stranger) : ask(refused);
    await expect(request).rejects.toMatchObject({
      code: expect.stringMatching(/NO_OBSERVER|NO_COMPENSATE|ILLEGAL_TRANSITION/),
    });
    expect(await seen()).toEqual(before);
  });
});

describe("an operator has an effect compensated", () => {
  it("compensates one confirmed effect of a live run, once; the run waits for it before it completes", async () => {
    const { s, p, id, ask, statusOf, acted, ended, world } = await set(opening);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    await ask({ as: "compensate" });
    expect([await statusOf(0, 1), await statusOf(1, 1)]).toEqual(["PENDING", "ARMED"]);
    expect((await acted({ run: id })).map(dataOf)).toEqual([
      { by: "ada", action: "resolve", reason: "asked the bank", detail: { as: "compensate", pos: 0 } },
    ]);
    expect((await s.store.read.terms(tenant, { run: id })).at(-1)).toMatchObject({ startReason: "manual", by: "ada" });
    await expect(ask({ as: "compensate" })).rejects.toMatchObject({ code: "TAPE_ILLEGAL_TRANSITION" });
    // The run may end only once the effect is compensated.
    await s.store.intake.signal(tenant, id, { name: "go", value: true });
    await p.until(async () => {
      await p.worker.poll(10);
      return (await s.run(id)).cause === "completed";
    });
    expect(await ended()).toBe("COMPLETED");
    expect(world.calls).toEqual(["send 1", "send 2", "compensate 1 sent 1"]);
    expect([await statusOf(0, 1), await statusOf(1, 1)]).toEqual(["COMPENSATED", "DISCHARGED"]);
    await expect(ask({ as: "compensate" }, 1)).rejects.toMatchObject({ code: "TAPE_RUN_ENDED" });
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("keeps the run STUCK after a failed compensation until an operator settles it", async () => {
    const { s, p, id, ask, statusOf, ended, world } = await set(opening);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    world.onCompensate = () => {
      throw new AckLost();
    };
    await ask({ as: "compensate" });
    await s.store.intake.signal(tenant, id, { name: "go", value: true });
    expect(await p.over(id)).toMatchObject({ status: "STUCK", stuckFrom: "ENDING", cause: "completed" });
    expect(await statusOf(0, 1)).toBe("STUCK");
    await ask({ as: "confirmed" }, 0, 1);
    expect(await ended()).toBe("COMPLETED");
    expect(await statusOf(0, 1)).toBe("COMPENSATED");
  });

  it("fences the holder; the run resumes under the next term", async () => {
    let held = (): void => {};
    const wait = new Promise<void>((done) => {
      held = done;
    });
    let calls = 0;
    const { s, p, id, ask, ended, world } = await set(async (tape, { wire }) => {
      await tape.effect(wire.with(1));
      return tape.step("slow", async () => {
        if (++calls === 1) await wait;
        return calls;
      });
    });
    await p.until(async () => calls === 1);
    expect((await s.run(id)).status).toBe("RUNNING");
    const { token } = (await s.run(id)).lease;
    await ask({ as: "compensate" });
    expect((await s.run(id)).lease.token).toBeGreaterThan(token);
    held();
    expect(await ended()).toBe("COMPLETED");
    expect(calls).toBe(2);
    expect(world.calls).toEqual(["send 1", "compensate 1 sent 1"]);
  });

  it("confirms and compensates an effect in doubt in one transaction", async () => {
    const { s, p, id, ask, rowOf, statusOf, acted, ended, world } = await set(async (tape, { wire }) => {
      const result = await tape.effect(wire.with(-1));
      await tape.gate(go);
      return result;
    });
    await p.over(id);
    const { item } = (await rowOf())!;
    await ask({ as: "compensate", value: "W-7" });
    const kinds = (await s.store.read.journal(tenant, { journal: item! })).map(({ kind }) => kind);
    expect(kinds.slice(-4)).toEqual(["operator.action", "effect.settled", "obligation.surplus", "term.ended"]);
    expect([await statusOf(), await statusOf(0, 1)]).toEqual(["CONFIRMED", "PENDING"]);
    await p.until(async () => (await statusOf(0, 1)) === "COMPENSATED");
    expect((await s.run(id)).endedAt).toBeNull();
    expect(await s.store.read.businessKeyOwner(tenant, "wire", "invoice -1")).toBeUndefined(); // the key is free again
    await s.store.intake.cancel(tenant, id, { reason: "no more" });
    expect(await ended()).toBe("CANCELLED"); // nothing else was owed
    expect(world.calls).toEqual(["send -1", "compensate -1 W-7"]);
    expect(await acted({ journal: item! })).toHaveLength(1);
    await expect(ask({ as: "confirmed" })).rejects.toMatchObject({ code: "TAPE_ILLEGAL_TRANSITION" });
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("keeps the first resolution for a process that has the definition", async () => {
    const { s, p, id, ask, stranger, statusOf, ended, world } = await set(inDoubt);
    await p.over(id);
    await ask({ as: "compensate", value: "W-8" }, 0, 0, stranger);
    expect(await statusOf()).toBe("STUCK");
    for (const as of ["confirmed", "observe", "compensate", "retry"] as const) {
      await expect(ask({ as })).rejects.toMatchObject({ code: "TAPE_ILLEGAL_TRANSITION" });
    }
    await p.until(async () => (await statusOf(0, 1)) === "COMPENSATED");
    expect(await ended()).toBe("COMPLETED");
    expect(world.calls).toEqual(["send -1", "compensate -1 W-8"]);
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("rejects effects without compensate, compensations, and runs that compensate anyway", async () => {
    const { p, id, ask, stranger, statusOf } = await set((tape, { blind }) => tape.effect(blind.with(-1)));
    await p.over(id);
    await expect(ask({ as: "compensate" })).rejects.toMatchObject({ code: "TAPE_NO_COMPENSATE" });
    // Without the definition the obligation is recorded all the same, and it needs an operator.
    await ask({ as: "compensate" }, 0, 0, stranger);
    await p.until(async () => (await statusOf()) === "CONFIRMED");
    expect(await statusOf(0, 1)).toBe("STUCK");
    await expect(ask({ as: "compensate" }, 0, 1)).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });

    const done = await set(async (tape, { blind }) => {
      await tape.effect(blind.with(1));
      await tape.gate(go);
    });
    await done.p.until(async () => (await done.s.run(done.id)).status === "WAITING");
    await expect(done.ask({ as: "compensate" })).rejects.toMatchObject({ code: "TAPE_NO_COMPENSATE" });

    const failing = await set(async (tape, { wire }) => {
      await tape.effect(wire.with(1));
      tape.effect(wire.with(-1)).catch(() => {});
      throw new Error("no");
    });
    await failing.p.until(async () => (await failing.s.run(failing.id)).cause === "failed");
    expect((await failing.s.run(failing.id)).status).toBe("ENDING");
    await expect(failing.ask({ as: "compensate" })).rejects.toMatchObject({ code: "TAPE_ILLEGAL_TRANSITION" });
  });
});
