import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { postgresChaos, sqliteChaos } from "../../tools/chaos/places.ts";
import { type ChaosOptions, chaosReactors } from "../../tools/chaos/reactors.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";

/** Five seconds of faults, and then as long as the runs need to settle: a busy machine may take its while. */
const patienceMs = 150_000;
const seconds = 5;

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "tape-chaos-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Every rule of tools/chaos/judge.ts, and the demand that each fault has bitten. */
async function holds(options: ChaosOptions): Promise<void> {
  const { violations, lines, hits } = await chaosReactors(options);
  console.log([`seed ${options.seed}, ${options.replicas} replicas`, ...lines].join("\n  "));
  expect(violations, `seed ${options.seed}`).toEqual([]);
  expect(new Set(hits.map(({ kind }) => kind))).toEqual(new Set(["kill", "pause"]));
}

// The long version is `npm run chaos -- reactors`. Times are real, so a seed fixes what is drawn, not what it meets.
describe("all five reactors under kill -9 and SIGSTOP", () => {
  it("2 processes on one SQLite file", () => holds(sqliteChaos(folder(), seconds, "suite")), patienceMs);

  it(
    "4 replicas on PostgreSQL",
    async () => {
      const database = await freshDatabase(inject("postgres18"));
      onTestFinished(() => dropDatabase(database));
      await holds(postgresChaos(folder(), seconds, "suite", database));
    },
    patienceMs,
  );
});
