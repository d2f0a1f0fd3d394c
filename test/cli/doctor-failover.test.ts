import { expect, inject, it } from "vitest";
import { diagnose } from "../../src/cli/commands/doctor.ts";
import type { Store, StoreSettings } from "../../src/store/contract/store.ts";
import { sceneOn } from "../store/postgres/scene.ts";

it("doctor says whether a failover of this PostgreSQL server is safe", async () => {
  const scene = await sceneOn(inject("postgres18"));
  const about = async (facts: StoreSettings["facts"] = {}) => {
    const settings = async (): Promise<StoreSettings> => {
      const found = await scene.store.read.settings();
      return { ...found, facts: { ...found.facts, ...facts } };
    };
    const store: Store = { ...scene.store, read: { ...scene.store.read, settings } };
    return (await diagnose(store, "acme", scene.url)).find((finding) => finding.about === "failover");
  };
  expect(await about()).toMatchObject({ state: "fine", says: expect.stringContaining("no standby follows") });
  expect(await about({ standbys: 2 })).toMatchObject({
    state: "look",
    says: expect.stringContaining("would go on acting"),
    next: expect.stringContaining("stop the old server"),
  });
  expect(await about({ standbys: 2, synchronousStandbyNames: "one" })).toMatchObject({ state: "fine" });
  await scene.close();
});
