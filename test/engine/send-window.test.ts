import { describe, expect, it } from "vitest";
import { assertStartWindow, sendWindowMs } from "../../src/engine/effects/send-window.ts";
import { readClocks } from "../../src/lease/belief.ts";
import { timingsOf } from "../../src/lease/timings.ts";
import { effect } from "../../src/sdk/effect.ts";
import { NotSent } from "../../src/sdk/outcomes.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { stage } from "./stage.ts";

const held = (ttlMs: number) => ({ timings: timingsOf({ ttlMs }, 1_000) });

describe.each([
  ["the lease TTL if that is short", 4_000, 4_000],
  ["ten seconds if the lease TTL is longer", 30_000, 10_000],
] as const)("the start window is %s", (_, ttlMs, startMs) => {
  it("and not a millisecond longer", async () => {
    const clock = new ManualClock();
    const authorised = readClocks(clock);
    await clock.elapse(startMs);
    expect(() => assertStartWindow(held(ttlMs), authorised, clock)).not.toThrow();
    await clock.elapse(1);
    expect(() => assertStartWindow(held(ttlMs), authorised, clock)).toThrow(NotSent);
  });

  it("and its sum with the time-out is in the journal, inline and in the outbox", async () => {
    expect(sendWindowMs(held(ttlMs), 500)).toBe(startMs + 500);
    const s = await stage();
    const own = { semantics: "idempotent", timeout: "700ms" } as const;
    const inline = effect("inline", (_: null) => "done", own);
    const later = effect("later", (_: null) => "done", { ...own, dispatch: "outbox" });
    const run = workflow("run", async (tape, _: null) => {
      await tape.effect(inline.with(null));
      await tape.effect(later.with(null));
    });
    const p = s.process(createRunner({ workflows: [run], effects: [inline, later] }), { ttlMs });
    const id = await p.start(run);
    expect((await p.over(id)).status).toBe("COMPLETED");
    const journals = (await s.store.read.feed(undefined, 100)).records;
    const dispatched = journals.filter(({ kind }) => kind === "effect.dispatched");
    expect(dispatched.map(({ data }) => (data as { sendWithinMs: number }).sendWithinMs)).toEqual([
      startMs + 700,
      startMs + 700,
    ]);
  });
});
