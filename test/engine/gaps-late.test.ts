import { expect, it } from "vitest";
import type { TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { stage, tenant, watched } from "./stage.ts";

it.each(["inline", "outbox"] as const)(
  "an %s attempt that cannot begin in time is not sent, and costs none of the policy",
  async (dispatch) => {
    const s = await stage();
    const attempts: number[] = [];
    const wire = effect("wire", async (_: null, fx) => void attempts.push(fx.attempt), {
      dispatch,
      compensate: () => {},
      retry: { attempts: 1 },
    });
    const act = workflow("act", ((tape: TapeContext) =>
      tape.attempt(wire.with(null))) as never) as unknown as AnyWorkflow;
    let stalls = 2;
    // Its lease lives on: only the send deadline has passed, after which others may take it for absent.
    const store = watched(s.store, (kinds) => {
      if (kinds.includes("effect.dispatched") && stalls-- > 0) s.clock.stall(10_001);
    });
    const p = s.process(createRunner({ workflows: [act], effects: [wire] as never }), { store });
    const id = await p.start(act);
    expect((await p.over(id)).outcome).toMatchObject({ status: "confirmed" });
    expect(attempts).toEqual([3]);
    const [row] = await s.store.read.effects(tenant, { run: id, role: "effect" });
    expect([row!.status, row!.attempt]).toEqual(["CONFIRMED", 3]);
  },
);
