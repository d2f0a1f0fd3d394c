import { describe, expect, it } from "vitest";
import { effect } from "../../src/sdk/effect.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { stage } from "./stage.ts";

describe("a sender that crashes", () => {
  it("costs no attempt, but an item that crashes every sender becomes STUCK", async () => {
    const s = await stage();
    let calls = 0;
    const options = { semantics: "idempotent", dispatch: "outbox", retry: { attempts: 1 }, timeout: "1h" } as const;
    const kill = (): Promise<never> => {
      calls++;
      return new Promise(() => {});
    };
    const killer = effect("kill", kill, options);
    const send = workflow("send", (tape) => tape.attempt(killer.with(null)));
    const runner = createRunner({ workflows: [send], effects: [killer] });
    const id = await s.process(runner).start(send as never);
    for (let k = 0; k < 60 && (await s.run(id)).status !== "STUCK"; k++) {
      const victim = s.process(runner);
      const before = calls;
      for (let n = 0; n < 10 && calls === before && (await s.run(id)).status !== "STUCK"; n++) {
        void victim.reactors().catch(() => {});
        await s.clock.elapse(500);
      }
      if (calls > before) victim.crash();
      await s.clock.elapse(31_000);
    }
    expect(await s.run(id)).toMatchObject({ status: "STUCK" });
    expect(calls).toBeGreaterThan(5);
    expect(calls).toBeLessThanOrEqual(22);
  });
});
