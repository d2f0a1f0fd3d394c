import { describe, expect, inject, it, onTestFinished } from "vitest";
import { step, tenant } from "../../../src/testing/conformance/frame.ts";
import { heldRuns } from "../../../src/testing/conformance/holding.ts";
import { planReader } from "./plan-reader.ts";
import { type Scene, sceneOn, until } from "./scene.ts";

/** Statements of many items, carried out all the time. (`end` is one too; of two indexes it may begin with the wrong one.) */
const hot = [
  "append",
  "append.check",
  "park",
  "rise",
  "fire",
  "fire.check",
  "take",
  "renew",
  "create",
  "records.append",
];

/** Whoever vacuums the tables while they are empty tells the planner that reading all of one costs nothing. */
async function knownEmpty(server: string): Promise<Scene> {
  const scene = await sceneOn(server);
  onTestFinished(() => scene.close());
  await scene.admin.query("vacuum analyze");
  return scene;
}

describe.each(["postgres14", "postgres18"] as const)(
  "%s: tables that were looked at while they were empty",
  (server) => {
    it("are looked up item by item in what is carried out all the time", async () => {
      const plans = await planReader(await knownEmpty(inject(server)));
      expect(await plans.scansOf(hot)).toEqual([]);
    });

    it("are not read whole for long by the other statements when they have grown: plans are made anew", async () => {
      const scene = await knownEmpty(inject(server));
      const store = await scene.open("?connections=2");
      const reads = async (): Promise<number> => {
        const { rows } = await scene.admin.query(
          "select sum(idx_tup_read)::int as read from pg_stat_user_indexes where relname in ('runs', 'leases')",
        );
        return (rows[0] as { read: number }).read;
      };
      const looks = 40;
      for (let k = 0; k < looks; k++) await store.read.run(tenant, `nobody-${k}`); // plans are made, for nothing
      const runs = await heldRuns(store, 2_000);
      const before = await reads();
      for (const { id } of runs.slice(0, 500)) expect((await store.read.run(tenant, id))?.id).toBe(id);
      expect((await store.fenced.append(runs[0]!.fence, { after: 1, records: [step(1)] })).head).toBe(2);
      await store.close(); // its connection hands in its statistics
      await until(async () => (await reads()) > before, "the statistics do not arrive");
      // Two entries each. A plan that reads all of them, for each of so many: a million.
      expect((await reads()) - before).toBeLessThan(100_000);
    });
  },
);
