import { expect, it } from "vitest";
import type { TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { stage, tenant, watched } from "./stage.ts";

it.each(["inline", "outbox"] as const)(
  "an %s attempt that cannot start in time is not sent, and does not count",
  async (dispatch) => {
    const s = await stage();
    const attempts: number[] = [];
    const wire = effect("wire", async (_: null, fx) => void attempts.push(fx.attempt), {
      dispatch,
      compensate: () => {},
      retry: { attempts: 1 },
    });
    const caller = workflow("caller", ((tape: TapeContext) =>
      tape.attempt(wire.with(null))) as never) as unknown as AnyWorkflow;
    let stalls = 2;
    // Its lease is valid: only the send window has passed, after which an observation may find the effect absent.
    const store = watched(s.store, (kinds) => {
      if (kinds.includes("effect.dispatched") && stalls-- > 0) s.clock.stall(10_001);
    });
    const p = s.process(createRunner({ workflows: [caller], effects: [wire] as never }), { store });
    const id = await p.start(caller);
    expect((await p.over(id)).outcome).toMatchObject({ status: "confirmed" });
    expect(attempts).toEqual([3]);
    const [row] = await s.store.read.effects(tenant, { run: id, role: "effect" });
    expect([row!.status, row!.attempt]).toEqual(["CONFIRMED", 3]);
  },
);
