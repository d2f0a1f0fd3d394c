import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, it } from "vitest";
import { fill, past } from "../../bench/growth-fill.ts";
import { createRunner, Tape } from "../../src/exports/index.ts";
import { checkProjection } from "../../testkit/projection.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tape-growth-test-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Everything but numbers, ids and times, in the order of the journal. */
function rows(file: string, id: string): unknown[] {
  const db = new DatabaseSync(file, { readOnly: true });
  const { journal } = db.prepare("select journal from runs where id = ?").get(id) as { journal: number };
  const shape = (table: string, order: string): unknown[] =>
    (
      db.prepare(`select * from ${table} where journal = ? order by ${order}`).all(journal) as Record<string, unknown>[]
    ).map((row) =>
      Object.fromEntries(
        Object.entries(row)
          .filter(([column]) => !/(_at|^at|^id)$/.test(column))
          .map(([column, value]) => [
            column,
            value === journal
              ? "journal"
              : String(value)
                  .replace(id, "ID")
                  .replace(/"owner":"[^"]*"/, "owner"),
          ]),
      ),
    );
  const all = [...shape("runs", "journal"), ...shape("leases", "journal"), ...shape("records", "seq")];
  db.close();
  return all;
}

it("the past of the growth benchmark is what the engine would have left", async () => {
  const file = join(folder, "tape.db");
  await fill(`sqlite:${file}`, 30);
  const app = await Tape.open({ store: `sqlite:${file}`, runner: createRunner({ workflows: [past] }) });
  const run = await app.start(past, 1, { id: "really executed" });
  await run.result();
  expect(await checkProjection(app.store, ["default"])).toEqual([]);
  const filled = (await app.runs.list({ limit: 100 })).filter(({ id }) => /^past-\d+$/.test(id));
  await app.close();
  expect(filled).toHaveLength(30);
  expect(filled.every(({ status }) => status === "COMPLETED")).toBe(true);
  expect(rows(file, filled[7]!.id)).toEqual(rows(file, "really executed"));
});
