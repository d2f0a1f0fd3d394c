import { expect, it, onTestFinished } from "vitest";
import { diagnose } from "../../src/cli/commands/doctor.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { claimant, heldRun, tenant } from "../../testkit/conformance/frame.ts";
import { renewed } from "../../testkit/conformance/lease-fixtures.ts";
import { openBlank } from "../blank-database.ts";

it("doctor names runs that are held without progress for ten minutes", async () => {
  const clock = new ManualClock();
  const store = await openSqlite({ file: ":memory:", clock, open: openBlank });
  onTestFinished(() => store.close());
  const finding = async () =>
    (await diagnose(store, tenant, "sqlite::memory:", clock)).find(({ check }) => check === "progress");
  const silent = await heldRun(store, { id: "import-7" }, claimant("w", { ttlMs: 60_000 }));
  const busy = await heldRun(store, { id: "import-8" }, claimant("w", { ttlMs: 60_000 }));
  const beat = async (times: number) => {
    for (let k = 0; k < times; k++) {
      await clock.elapse(30_000);
      await renewed(store, silent, 1);
      await renewed(store, busy, clock.mono());
    }
  };
  await beat(20);
  expect(await finding()).toMatchObject({ state: "ok" });
  await beat(2);
  expect(await finding()).toMatchObject({
    state: "warn",
    message: "running without progress: import-7 on label of w (11 m)",
    next: expect.stringContaining("maxStall"),
  });
});
