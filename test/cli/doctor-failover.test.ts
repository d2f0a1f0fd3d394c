import { expect, inject, it } from "vitest";
import { diagnose } from "../../src/cli/commands/doctor.ts";
import type { Store, StoreSettings } from "../../src/store/contract/store.ts";
import { sceneOn } from "../store/postgres/scene.ts";

it("doctor reports whether a PostgreSQL failover is safe", async () => {
  const scene = await sceneOn(inject("postgres18"));
  const failoverFinding = async (facts: StoreSettings["facts"] = {}) => {
    const settings = async (): Promise<StoreSettings> => {
      const found = await scene.store.read.settings();
      return { ...found, facts: { ...found.facts, ...facts } };
    };
    const store: Store = { ...scene.store, read: { ...scene.store.read, settings } };
    return (await diagnose(store, "acme", scene.url)).find(({ check }) => check === "failover");
  };
  expect(await failoverFinding()).toMatchObject({ state: "ok", message: "this server has no standby" });
  expect(await failoverFinding({ standbys: 2 })).toMatchObject({
    state: "warn",
    message: expect.stringContaining("would continue to run effects"),
    next: expect.stringContaining("stop the old server"),
  });
  expect(await failoverFinding({ standbys: 2, synchronousStandbyNames: "one" })).toMatchObject({ state: "ok" });
  await scene.close();
});
