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

/** The world: what was done and undone, in order, and what a look at it says. */
interface World {
  readonly deeds: string[];
  looks: number;
  seen: () => Observation<string>;
  undoing: () => void;
}

const go = gate<boolean>("go");

function play(world: World) {
  const wire = effect(
    "wire",
    async (n: number, fx): Promise<string> => {
      world.deeds.push(`send ${n}`);
      if (n < 0 && fx.attempt === 1) throw new AckLost();
      return `sent ${n}`;
    },
    {
      businessKey: (n: number) => `invoice ${n}`,
      observe: () => {
        world.looks++;
        return world.seen();
      },
      settleDelay: "0s",
      compensate: (n: number, result: string) => {
        world.undoing();
        world.deeds.push(`undo ${n} ${result}`);
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

async function set(run: (tape: TapeContext, acts: ReturnType<typeof play>) => unknown) {
  const world: World = { deeds: [], looks: 0, seen: () => outcome.inconclusive("busy"), undoing: () => {} };
  const acts = play(world);
  const s = await stage();
  const act = workflow("act", ((tape: TapeContext) => run(tape, acts)) as never) as unknown as AnyWorkflow;
  const runner = createRunner({ workflows: [act], effects: [acts.wire, acts.blind] as never });
  const p = s.process(runner);
  const id = await p.start(act);
  const random = seededRandom("person");
  const knows = { store: p.store, keeper: p.keeper, tenant, clock: s.clock, random, log: () => {}, runner };
  const ask = (resolution: Resolution, pos = 0, sub = 0, deps = knows): Promise<void> =>
    resolve(deps, { run: id, pos, sub, resolution, by: "ada", reason: "asked the bank" });
  /** A server without anybody's code. */
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

const doubt = (tape: TapeContext, { wire }: ReturnType<typeof play>) => tape.effect(wire.with(-1));
const opening = async (
  tape: TapeContext,
  { wire }: ReturnType<typeof play>,
): Promise<{ first: string; second: string }> => {
  const first = await tape.effect(wire.with(1));
  const second = await tape.effect(wire.with(2));
  await tape.gate(go);
  return { first, second };
};
const dataOf = (record: JournalRecord | undefined): unknown => record?.data;

describe("a person asks for a look", () => {
  it("what ten looks could not settle is looked at again at once; what is seen settles it, and the run goes on", async () => {
    const { s, p, id, ask, rowOf, statusOf, acted, ended, world } = await set(doubt);
    expect((await p.over(id)).status).toBe("STUCK");
    const before = world.looks;
    expect(await rowOf()).toMatchObject({ status: "STUCK", reason: "inconclusive" });
    await ask({ as: "observe" });
    expect(await statusOf()).toBe("STUCK"); // asking settles nothing
    await p.reactors();
    expect([world.looks, await statusOf()]).toEqual([before + 1, "STUCK"]);
    world.seen = () => outcome.confirmed("seen");
    await ask({ as: "observe" });
    expect(await ended()).toBe("COMPLETED");
    expect((await s.run(id)).outcome).toBe("seen");
    expect(world.deeds).toEqual(["send -1"]);
    const said = await acted({ journal: (await rowOf())!.item! });
    expect(said.map(dataOf)).toEqual(
      [1, 2].map(() => ({ who: "ada", action: "resolve", reason: "asked the bank", detail: { as: "observe" } })),
    );
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("ten more looks, then it rests where it was, stuck as before", async () => {
    const { s, p, id, ask, rowOf, world } = await set(doubt);
    await p.over(id);
    const before = world.looks;
    await ask({ as: "observe" });
    for (let k = 0; k < 40; k++) {
      await p.reactors();
      await s.clock.elapse(60_000);
    }
    expect(world.looks - before).toBe(10);
    expect(await rowOf()).toMatchObject({ status: "STUCK", reason: "inconclusive" });
    expect((await s.store.read.lease(tenant, { journal: (await rowOf())!.item! }))?.nextReactor).toBeNull();
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("an UNKNOWN act that waits for its next look is looked at now", async () => {
    const { p, ask, rowOf, statusOf, ended, world } = await set(doubt);
    await p.until(async () => world.looks === 4);
    expect(await statusOf()).toBe("UNKNOWN");
    await p.reactors();
    expect(world.looks).toBe(4); // not due yet
    world.seen = () => outcome.confirmed("seen");
    await ask({ as: "observe" });
    await p.reactors();
    expect([world.looks, (await rowOf())?.reason]).toEqual([5, "observed"]);
    expect(await ended()).toBe("COMPLETED");
  });

  it("refuses what is settled, and what nobody can look at; without its definition the journal says so", async () => {
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

describe("a resolution that is refused", () => {
  it.each<[string, Resolution, "knows" | "strange"]>([
    ["a look that nobody can take", { as: "observe" }, "knows"],
    ["a second word after what happened was said", { as: "failed" }, "strange"],
    ["undoing what nothing undoes", { as: "compensate" }, "knows"],
  ])("%s: fences nobody and leaves no term behind", async (_, refused, who) => {
    const { p, id, ask, stranger, rowOf } = await set((tape, { blind }) => tape.effect(blind.with(-1)));
    await p.over(id);
    if (who === "strange") await ask({ as: "confirmed", value: "yes" }, 0, 0, stranger);
    const target = { journal: (await rowOf())!.item! };
    const seen = async () => [
      await p.store.read.journal(tenant, target),
      (await p.store.read.lease(tenant, target))?.token,
    ];
    const before = await seen();
    const asked = who === "strange" ? ask(refused, 0, 0, stranger) : ask(refused);
    await expect(asked).rejects.toMatchObject({
      code: expect.stringMatching(/NO_OBSERVER|NO_COMPENSATE|ILLEGAL_TRANSITION/),
    });
    expect(await seen()).toEqual(before);
  });
});

describe("a person has an act undone", () => {
  it("a confirmed one while its run lives: it alone, once, with author and reason; a run that ends well waits for it", async () => {
    const { s, p, id, ask, statusOf, acted, ended, world } = await set(opening);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    await ask({ as: "compensate" });
    expect([await statusOf(0, 1), await statusOf(1, 1)]).toEqual(["PENDING", "ARMED"]);
    expect((await acted({ run: id })).map(dataOf)).toEqual([
      { who: "ada", action: "resolve", reason: "asked the bank", detail: { as: "compensate", pos: 0 } },
    ]);
    expect((await s.store.read.terms(tenant, { run: id })).at(-1)).toMatchObject({ startReason: "manual", by: "ada" });
    await expect(ask({ as: "compensate" })).rejects.toMatchObject({ code: "TAPE_ILLEGAL_TRANSITION" });
    // The run may end only once it is undone.
    await s.store.intake.signal(tenant, id, { name: "go", value: true });
    await p.until(async () => {
      await p.worker.poll(10);
      return (await s.run(id)).cause === "completed";
    });
    expect(await ended()).toBe("COMPLETED");
    expect(world.deeds).toEqual(["send 1", "send 2", "undo 1 sent 1"]);
    expect([await statusOf(0, 1), await statusOf(1, 1)]).toEqual(["COMPENSATED", "DISCHARGED"]);
    await expect(ask({ as: "compensate" }, 1)).rejects.toMatchObject({ code: "TAPE_RUN_ENDED" });
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("a run whose undoing fails is STUCK and not COMPLETED, until a person has settled that", async () => {
    const { s, p, id, ask, statusOf, ended, world } = await set(opening);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    world.undoing = () => {
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

  it("whoever drives the run is fenced, and it goes on under the next term", async () => {
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
    expect(world.deeds).toEqual(["send 1", "undo 1 sent 1"]);
  });

  it("one in doubt: it happened and is undone, in one transaction, whatever becomes of the run", async () => {
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
    expect(world.deeds).toEqual(["send -1", "undo -1 W-7"]);
    expect(await acted({ journal: item! })).toHaveLength(1);
    await expect(ask({ as: "confirmed" })).rejects.toMatchObject({ code: "TAPE_ILLEGAL_TRANSITION" });
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("without its definition the word waits for a process that has it, and the first word counts", async () => {
    const { s, p, id, ask, stranger, statusOf, ended, world } = await set(doubt);
    await p.over(id);
    await ask({ as: "compensate", value: "W-8" }, 0, 0, stranger);
    expect(await statusOf()).toBe("STUCK");
    for (const word of ["confirmed", "observe", "compensate", "retry"] as const) {
      await expect(ask({ as: word })).rejects.toMatchObject({ code: "TAPE_ILLEGAL_TRANSITION" });
    }
    await p.until(async () => (await statusOf(0, 1)) === "COMPENSATED");
    expect(await ended()).toBe("COMPLETED");
    expect(world.deeds).toEqual(["send -1", "undo -1 W-8"]);
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("refuses what nobody knows how to undo, what is an undoing itself, and a run that undoes everything anyway", async () => {
    const { p, id, ask, stranger, statusOf } = await set((tape, { blind }) => tape.effect(blind.with(-1)));
    await p.over(id);
    await expect(ask({ as: "compensate" })).rejects.toMatchObject({ code: "TAPE_NO_COMPENSATE" });
    // Where nobody could tell, it is owed all the same, and a person must see to it.
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
