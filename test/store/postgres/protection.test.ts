import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { type Scene, sceneOn } from "./scene.ts";

/** How a manual change of the database can silently disable the fence. */
describe.each(["postgres14", "postgres18"] as const)(
  "%s: a store that the fence cannot protect is not opened",
  (server) => {
    let scene: Scene;
    beforeEach(async () => {
      scene = await sceneOn(inject(server));
    });
    afterEach(() => scene.close());

    const index = "drop index tape.leases_fence; create";
    it.each([
      ["without its index", "drop index tape.leases_fence", /leases_fence is missing/],
      ["with one that is not unique", `${index} index leases_fence on tape.leases(journal, token)`, /leases_fence/],
      [
        "with a partial one",
        `${index} unique index leases_fence on tape.leases(journal, token) where open`,
        /leases_fence/,
      ],
      ["with one of other columns", `${index} unique index leases_fence on tape.leases(journal, kind)`, /leases_fence/],
      [
        "with one of an expression",
        `${index} unique index leases_fence on tape.leases(journal, (token + 0))`,
        /leases_fence/,
      ],
      [
        "with one that only includes the token",
        `${index} unique index leases_fence on tape.leases(journal) include (token)`,
        /leases_fence/,
      ],
      [
        "with one that is half built",
        "update pg_index set indisvalid = false where indexrelid = 'tape.leases_fence'::regclass",
        /leases_fence/,
      ],
      ["without that of the records", "drop index tape.records_head", /records_head is missing/],
      [
        "without a primary key",
        "alter table tape.business_keys drop constraint business_keys_pkey",
        /business_keys_pkey is missing/,
      ],
      [
        "with a table that is not logged",
        "alter table tape.leases set unlogged",
        /a crash would empty leases \(unlogged\)/,
      ],
    ])("%s", async (_, edit, says) => {
      await scene.admin.query(edit);
      const refusal = await openPostgres({ url: scene.url }).catch((error: unknown) => error);
      expect(refusal).toMatchObject({ code: "TAPE_STORE_UNPROTECTED", message: expect.stringMatching(says) });
    });
  },
);
