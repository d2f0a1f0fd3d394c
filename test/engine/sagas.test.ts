import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { resolve } from "../../src/operator/resolve.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { AckLost } from "../../src/sdk/outcomes.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { checkProjection } from "../../testkit/projection.ts";
import { stage, tenant } from "./stage.ts";

async function ran(
  run: (tape: TapeContext, book: (what: string) => Promise<string>, trip: typeof tripOf) => unknown,
  onCompensate: (what: string) => void = () => {},
) {
  const s = await stage();
  const compensated: string[] = [];
  const book = effect("book", async (what: string) => what, {
    compensate: (what: string) => {
      onCompensate(what);
      compensated.push(what);
    },
  });
  const flow = workflow("flow", (tape) =>
    run(tape, (what) => tape.effect(book.with(what)), trip as never),
  ) as unknown as AnyWorkflow;
  const trip = workflow("trip", async (tape, what: string) => {
    await tape.effect(book.with(`${what} 1`));
    await tape.effect(book.with(`${what} 2`));
    if (what === "lost") await tape.gate(gate("never"));
  });
  const runner = createRunner({ workflows: [flow, trip] as never, effects: [book] });
  const p = s.process(runner);
  const id = await p.start(flow);
  return { s, p, id, runner, compensated };
}
const tripOf = workflow("trip", async (_tape, _what: string) => {});

describe("a saga", () => {
  it("that fails compensates what it did, newest first, and nothing else; the run continues", async () => {
    const { s, p, id, compensated } = await ran(async (tape, book) => {
      await book("before");
      const failure = await tape
        .saga(async () => {
          await book("flight");
          await tape.scope(() => book("hotel"));
          throw new Error("no car");
        })
        .catch((error: Error) => error.message);
      const seen = [...compensated];
      await book("after");
      return [failure, await tape.sample("seen", () => seen)];
    });
    expect((await p.over(id)).outcome).toEqual(["no car", ["hotel", "flight"]]);
    expect(compensated).toEqual(["hotel", "flight"]);
    const obligations = await s.store.read.effects(tenant, { run: id, role: "compensation" });
    expect(obligations.map(({ status }) => status)).toEqual(["DISCHARGED", "COMPENSATED", "COMPENSATED", "DISCHARGED"]);
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("that succeeds owes what it did until the run ends", async () => {
    const { p, id, compensated } = await ran(async (tape, book) => {
      await tape.saga(() => book("flight"));
      await tape.gate(gate("hold"), { timeout: "5s" });
      throw new Error("later");
    });
    expect((await p.over(id)).status).toBe("COMPENSATED");
    expect(compensated).toEqual(["flight"]);
  });

  it("inside a time-out is compensated before the time-out is thrown", async () => {
    const { p, id, compensated } = await ran(async (tape, book) => {
      const code = await tape
        .timeout("30s", () =>
          tape.saga(async () => {
            await book("flight");
            await book("hotel");
            await tape.gate(gate("car"));
          }),
        )
        .catch((error: { code: string }) => error.code);
      return tape.sample("seen", () => [code, ...compensated]);
    });
    expect((await p.over(id)).outcome).toEqual(["TAPE_TIMEOUT", "hotel", "flight"]);
  });

  it("compensates its children: completed ones by their obligations, live ones by cancelling them", async () => {
    const { s, p, id, compensated } = await ran(async (tape, book, trip) => {
      await tape.call(trip, "outside");
      const message = await tape
        .saga(async () => {
          await book("own");
          await tape.call(trip, "done");
          const lost = await tape.spawn(trip, "lost");
          await tape.gate(gate("wait"), { timeout: "5s" });
          void lost;
          throw new Error("no");
        })
        .catch((error: Error) => error.message);
      return tape.sample("seen", () => [message, compensated.length]);
    });
    const { outcome } = await p.over(id);
    expect(outcome).toEqual(["no", 5]);
    expect([...compensated].sort()).toEqual(["done 1", "done 2", "lost 1", "lost 2", "own"]);
    expect(compensated.indexOf("done 2")).toBeLessThan(compensated.indexOf("done 1"));
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("whose compensation needs an operator makes the run STUCK, and continues after the resolution", async () => {
    let broken = true;
    const { s, p, id, runner, compensated } = await ran(
      async (tape, book) => {
        await tape
          .saga(async () => {
            await book("flight");
            await book("hotel");
            throw new Error("no");
          })
          .catch(() => {});
        return "continued";
      },
      (what) => {
        if (broken && what === "hotel") throw new AckLost();
      },
    );
    expect((await p.over(id)).status).toBe("STUCK");
    broken = false;
    const stuck = (await s.records(id)).findLast(({ kind }) => kind === "run.stuck");
    const { journal } = await s.run(id);
    expect(stuck?.data).toMatchObject({ effects: [{ run: journal, pos: 2, sub: 1 }] });
    const { clock, store } = s;
    const deps = { store, keeper: p.keeper, tenant, clock, random: seededRandom("operator"), log: () => {}, runner };
    const resolution = { as: "confirmed" } as const;
    await resolve(deps, { run: id, pos: 2, sub: 1, resolution, by: "ann", reason: "done by hand" });
    await p.until(async () => (await s.run(id)).endedAt !== null);
    expect((await s.run(id)).outcome).toBe("continued");
    expect(compensated).toEqual(["flight"]);
  });

  it("of a cancelled run leaves the compensation to the run", async () => {
    const { s, p, id, compensated } = await ran(async (tape, book) => {
      await book("before");
      await tape.saga(async () => {
        await book("flight");
        await tape.gate(gate("car"));
      });
    });
    await p.until(async () => (await s.store.read.gates(tenant, { run: id, open: true })).length > 0);
    await s.store.intake.cancel(tenant, id, { reason: "enough" });
    expect((await p.over(id)).status).toBe("COMPENSATED");
    expect(compensated).toEqual(["flight", "before"]);
  });

  it("continues to compensate wherever its process crashes", async () => {
    for (let crashAfter = 3; crashAfter < 40; crashAfter += 3) {
      const { s, p, id, runner, compensated } = await ran(async (tape, book) => {
        await tape
          .saga(async () => {
            await Promise.all([book("a"), book("b")]);
            await book("c");
            throw new Error("no");
          })
          .catch(() => {});
        return "continued";
      });
      const full = async (): Promise<boolean> => {
        const { endedAt } = await s.run(id);
        return endedAt !== null || (await s.records(id)).length >= crashAfter;
      };
      await p.until(full);
      p.crash();
      await s.clock.elapse(60_000);
      const q = s.process(runner);
      expect((await q.over(id)).outcome).toBe("continued");
      expect([...new Set(compensated)]).toEqual(["c", "b", "a"]);
      expect(await checkProjection(s.store, [tenant])).toEqual([]);
    }
  });
});
