import { describe, expect, inject, it, onTestFinished } from "vitest";
import { tenant } from "../../../testkit/conformance/frame.ts";
import { heldRuns } from "../../../testkit/conformance/lease-fixtures.ts";
import { planReader } from "./plan-reader.ts";
import { type Scene, sceneOn } from "./scene.ts";

/** Statements of many items, carried out all the time. (`end` is one too; of two indexes it may begin with the wrong one.) */
const hot = [
  "append_many",
  "append_many.check",
  "park_many",
  "end_sleep_many",
  "fire_many",
  "fire_many.check",
  "claim_many",
  "renew_many",
  "create_many",
  "records.append",
];

/** Whoever vacuums the tables while they are empty tells the planner that reading all of one costs nothing. */
async function knownEmpty(server: string, first = "select"): Promise<Scene> {
  const scene = await sceneOn(server);
  onTestFinished(() => scene.close());
  await scene.admin.query(first);
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
      // An index of somebody else's that begins as well as ours: of empty tables, one costs as much as the other.
      const scene = await knownEmpty(inject(server), "create index on tape.runs(tenant, journal)");
      const hand = await scene.hand();
      const look = (id: string) => hand.run("run.get", { tenant, id });
      const count = async (): Promise<number> => {
        const { rows } = await hand.sql("select sum(idx_tup_fetch)::int as rows from pg_stat_xact_user_tables");
        return (rows[0] as { rows: number }).rows;
      };
      /** Rows that one look fetches. */
      const fetched = async (id: string): Promise<number> => {
        await hand.sql("begin");
        const before = await count();
        expect((await look(id)).rows).toHaveLength(1);
        const after = await count();
        await hand.sql("rollback");
        return after - before;
      };
      await look("nobody"); // its plan is made
      const [run] = await heldRuns(scene.store, 2_000);
      expect(await fetched(run!.id)).toBeGreaterThan(1_000);
      for (let k = 0; k < 40; k++) await look(run!.id);
      expect(await fetched(run!.id)).toBe(2); // the run and its lease
    });
  },
);
