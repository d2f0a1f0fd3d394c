import { describe, expect, it } from "vitest";
import type { Duration } from "../../src/base/duration.ts";
import type { Tape } from "../../src/host/tape.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { AckLost, outcome } from "../../src/sdk/outcomes.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { type Stage, setStage, tenant } from "./stage.ts";

const ready = gate<string>("ready");
const by = { by: "ada", reason: "the old code comes back at six" };

/** A run that is STUCK, because its code was changed, and the app that drives it. `mend` restores the code. */
async function stuck(stage: Stage): Promise<{ app: Tape; mend: () => void; status: () => Promise<string> }> {
  let isBroken = false;
  const job = workflow("job", async (tape) => {
    await tape.step(isBroken ? "other" : "first", () => 1);
    await tape.gate(ready);
    return "done";
  });
  const app = await stage.app("a", { runner: createRunner({ workflows: [job] }), work: true });
  await app.start(job, undefined, { id: "r" });
  await stage.clock.elapse(1_000);
  isBroken = true;
  await app.signal("r", ready, "go");
  await stage.clock.elapse(1_000);
  const status = async () => (await app.runs.get("r"))!.status;
  expect(await status()).toBe("STUCK");
  const mend = (): void => {
    isBroken = false;
  };
  return { app, status, mend };
}

const timers = async (app: Tape) =>
  (await app.timers.list({ run: "r" })).map(({ purpose, status }) => [purpose, status]);

describe("a redrive with `in`", () => {
  it("sets a timer under the run's lease; its firing resumes the run, and not before", async () => {
    const stage = await setStage();
    const { app, mend, status } = await stuck(stage);
    mend();
    await app.redrive("r", { ...by, in: "10m" });
    expect(await timers(app)).toEqual([["redrive", "SET"]]);
    const { records } = await audited(app);
    expect(records).toEqual([["redrive", "ada", { inMs: 600_000 }]]);
    await stage.clock.elapse(599_000);
    expect(await status()).toBe("STUCK");
    await stage.clock.elapse(2_000);
    expect(await status()).toBe("COMPLETED");
    expect(await timers(app)).toEqual([["redrive", "FIRED"]]);
  });

  it("is replaced by the next redrive, and by one at once", async () => {
    const stage = await setStage();
    const { app, mend, status } = await stuck(stage);
    await app.redrive("r", { ...by, in: "10m" });
    await app.redrive("r", { ...by, in: "1h" });
    expect((await timers(app)).sort()).toEqual([
      ["redrive", "CANCELLED"],
      ["redrive", "SET"],
    ]);
    await stage.clock.elapse(700_000);
    expect(await status()).toBe("STUCK");
    mend();
    await app.redrive("r", by);
    await stage.clock.elapse(1_000);
    expect(await status()).toBe("COMPLETED");
    expect((await timers(app)).map(([, state]) => state)).toEqual(["CANCELLED", "CANCELLED"]);
  });

  it("that finds the cause unmended leaves the run STUCK, and can be repeated", async () => {
    const stage = await setStage();
    const { app, mend, status } = await stuck(stage);
    await app.redrive("r", { ...by, in: "1m" });
    await stage.clock.elapse(120_000);
    expect(await status()).toBe("STUCK");
    mend();
    await app.redrive("r", { ...by, in: "1m" });
    await stage.clock.elapse(62_000);
    expect(await status()).toBe("COMPLETED");
  });

  it("survives the process that set it", async () => {
    const stage = await setStage();
    const { app, mend, status } = await stuck(stage);
    mend();
    const closer = await stage.app("b");
    await closer.redrive("r", { ...by, in: "5m" });
    await closer.close();
    await stage.clock.elapse(302_000);
    expect(await status()).toBe("COMPLETED");
    await app.close();
  });

  it.each<[Duration, RegExp]>([
    ["10 mins" as Duration, /did you mean|in/],
    ["367d", /at most 366 days/],
    [0, /in/],
    [Number.NaN, /in/],
  ])("refuses %s before it takes the lease", async (after, message) => {
    const stage = await setStage();
    const { app } = await stuck(stage);
    const before = await app.leases.history({ run: "r" });
    await expect(app.redrive("r", { ...by, in: after })).rejects.toThrow(message);
    expect(await app.leases.history({ run: "r" })).toHaveLength(before.length);
  });
});

describe("an observation with `in`", () => {
  it("is made at that time, although the reconciler had given up", async () => {
    const stage = await setStage();
    let known = false;
    let observed = 0;
    const wire = effect(
      "wire",
      () => {
        throw new AckLost();
      },
      {
        semantics: "non_idempotent",
        dispatch: "outbox",
        businessKey: () => "invoice-7",
        observe: () => {
          observed++;
          return known ? outcome.confirmed("arrived") : outcome.inconclusive("try later");
        },
      },
    );
    const pay = workflow("pay", async () => wire({ eur: 5 }));
    const runner = createRunner({ workflows: [pay], effects: [wire] });
    const app = await stage.app("a", { runner, work: true });
    await app.start(pay, undefined, { id: "r" });
    await stage.clock.elapse(900_000);
    const [row] = await app.effects.list({ run: "r" });
    expect(row!.status).toBe("STUCK");
    known = true;
    const before = observed;
    await app.resolve({ run: "r", pos: row!.pos, resolution: { as: "observe", in: "1h" }, ...by });
    await stage.clock.elapse(3_590_000);
    expect([observed, (await app.runs.get("r"))?.status]).toEqual([before, "STUCK"]);
    const item = await stage.store.read.lease(tenant, { journal: row!.item! });
    expect(item).toMatchObject({ nextReactor: "reconciler", owner: null });
    await stage.clock.elapse(15_000);
    expect([observed, (await app.runs.get("r"))?.status]).toEqual([before + 1, "COMPLETED"]);
  });
});

async function audited(app: Tape): Promise<{ records: unknown[] }> {
  const records: unknown[] = [];
  for await (const { kind, data } of app.journal("r")) {
    if (kind === "operator.action") records.push([data.action, data.by, data.detail]);
  }
  return { records };
}
