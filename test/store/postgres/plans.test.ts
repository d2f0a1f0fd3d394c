import { describe, expect, inject, it, onTestFinished } from "vitest";
import { tenant } from "../../../testkit/conformance/frame.ts";
import { heldRuns } from "../../../testkit/conformance/lease-fixtures.ts";
import { planReader } from "./plan-reader.ts";
import { type Scene, sceneOn } from "./scene.ts";

/**
 * Multi-row statements, executed all the time. (`end_many` is one, too, but it may start with the wrong one of two
 * indexes.)
 */
const batched = [
  "append_one",
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
  "journals.short",
  "admit.pick",
  "admit.take",
  "create_many.queued",
  "park_many.queued",
  "stream_many",
  "stream_many.check",
];

/** VACUUM on empty tables suggests to the planner that full scans cost nothing. */
async function knownEmpty(server: string, first = "select"): Promise<Scene> {
  const scene = await sceneOn(server);
  onTestFinished(() => scene.close());
  await scene.admin.query(first);
  await scene.admin.query("vacuum analyze");
  return scene;
}

describe.each(["postgres14", "postgres18"] as const)(
  "%s: tables that were analysed while they were empty",
  (server) => {
    it("are accessed by index lookups per item in the batched statements", async () => {
      const plans = await planReader(await knownEmpty(inject(server)));
      expect(await plans.scansOf(batched)).toEqual([]);
    });

    it("are not scanned for long by other statements once they have grown, because plans are renewed", async () => {
      // A foreign index that starts like ours: on empty tables, both cost the same.
      const scene = await knownEmpty(inject(server), "create index on tape.runs(tenant, journal)");
      const hand = await scene.hand();
      const readRun = (id: string) => hand.run("run.get", { tenant, id });
      const count = async (): Promise<number> => {
        const { rows } = await hand.sql("select sum(idx_tup_fetch)::int as rows from pg_stat_xact_user_tables");
        return (rows[0] as { rows: number }).rows;
      };
      /** Rows that one query fetches. */
      const fetched = async (id: string): Promise<number> => {
        await hand.sql("begin");
        const before = await count();
        expect((await readRun(id)).rows).toHaveLength(1);
        const after = await count();
        await hand.sql("rollback");
        return after - before;
      };
      await readRun("missing"); // prepares its plan
      const [run] = await heldRuns(scene.store, 2_000);
      expect(await fetched(run!.id)).toBeGreaterThan(1_000);
      for (let k = 0; k < 40; k++) await readRun(run!.id);
      expect(await fetched(run!.id)).toBe(2); // the run and its lease
    });
  },
);
