import { describe, expect, it } from "vitest";
import type { TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { stage, tenant } from "./stage.ts";

const flow = (name: string, run: (tape: TapeContext, input: never) => unknown, attempts = 3): AnyWorkflow =>
  workflow(name, run as never, { retry: { attempts, base: "1s" } }) as unknown as AnyWorkflow;
const go = gate("go");

describe("a run that is retried after it has cleaned up", () => {
  it("retries the failure, cleans up each time, and replays as one history", async () => {
    const s = await stage();
    const done: string[] = [];
    let left = 2;
    const body = (what: string) => () => void done.push(what);
    const tidy = flow("tidy", async (tape) => {
      await tape.step("before", body("before"));
      try {
        await Promise.all([
          tape.step("beside", body("beside")),
          tape.step("fragile", () => {
            done.push("fragile");
            if (left-- > 0) throw new Error("not yet");
          }),
        ]);
      } finally {
        await tape.step("tidy", body("tidy"));
        await tape.sleep("1s");
        tape.now();
      }
      await tape.step("after", body("after"));
      await tape.gate(go);
      return tape.step("last", () => "done");
    });
    const p = s.process([tidy]);
    const id = await p.start(tidy);
    await p.until(async () => (await s.store.read.gates(tenant, { run: id, open: true })).length > 0);
    const expected = ["before", "beside", "fragile", "tidy", "fragile", "tidy", "fragile", "tidy", "after"];
    expect(done).toEqual(expected);
    p.crash();
    await s.clock.elapse(60_000);
    await s.store.intake.signal(tenant, id, { name: "go", value: 1 });
    const run = await s.process([tidy]).over(id);
    expect([run.status, run.outcome]).toEqual(["COMPLETED", "done"]);
    expect(done).toEqual(expected);
    const retried = (await s.records(id)).flatMap((record) => (record.kind === "run.retried" ? [record.data] : []));
    expect(retried.map(({ pos, from, to }) => [pos, from, to])).toEqual([
      [2, 3, 6],
      [2, 6, 9],
    ]);
  });

  it("fails with its error after real attempts when none is left", async () => {
    const s = await stage();
    let tries = 0;
    const hopeless = flow("hopeless", async (tape) => {
      try {
        await tape.step("fragile", () => Promise.reject(new Error(`no ${++tries}`)));
      } finally {
        await tape.step("tidy", () => {});
      }
    });
    const p = s.process([hopeless]);
    const run = await p.over(await p.start(hopeless));
    expect([run.status, (run.outcome as Error).message, tries]).toEqual(["FAILED", "no 3", 3]);
  });

  it("is not retried if its clean-up has called an effect", async () => {
    const s = await stage();
    let [tries, sent] = [0, 0];
    const notify = effect("notify", async (_: null) => void sent++, { compensate: () => {} });
    const careful = flow("careful", async (tape) => {
      try {
        await tape.step("fragile", () => Promise.reject(new Error(`no ${++tries}`)));
      } finally {
        await tape.effect(notify.with(null));
      }
    });
    const p = s.process(createRunner({ workflows: [careful], effects: [notify] as never }));
    const run = await p.over(await p.start(careful));
    expect([run.status, (run.outcome as Error).message]).toEqual(["COMPENSATED", "no 1"]);
    expect([tries, sent]).toEqual([1, 1]);
  });
});
