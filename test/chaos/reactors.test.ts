import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { rareStates, unreachedStates } from "../../tools/chaos/evidence.ts";
import { connectionFaults, cutKind, holeKind } from "../../tools/chaos/faults/connections.ts";
import { processFaults } from "../../tools/chaos/faults/processes.ts";
import { postgresStop, sqliteStop } from "../../tools/chaos/faults/transaction.ts";
import { postgresPlace, shortTtl, sqlitePlace } from "../../tools/chaos/places.ts";
import { type RoundOptions, runRound } from "../../tools/chaos/round.ts";
import { dropDatabase } from "../postgres/database.ts";

/** Seconds of faults, then the time that the runs need to settle, which is long on a busy machine. */
const patienceMs = 300_000;

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "tape-chaos-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Checks every rule of tools/chaos/judge.ts, and that each fault took effect. */
async function holds(options: Omit<RoundOptions, "seed" | "ms" | "maxLive">): Promise<void> {
  const report = await runRound({ ...options, ms: 2_500, seed: "suite", maxLive: 10 });
  console.log([options.name, ...report.lines].join("\n  "));
  expect([...report.violations, ...unreachedStates([report.states], rareStates)]).toEqual([]);
  const effective = report.injections.filter((injection) => injection.effective).map(({ kind }) => kind);
  expect(new Set(effective)).toEqual(new Set(report.faults.map(({ kind }) => kind)));
}

// The long version is `npm run chaos`. Times are real, so a seed fixes which faults are drawn, not what they hit.
describe("all five reactors and a singleton, under faults", () => {
  it(
    "keep every rule on one SQLite file when killed or stopped, even in a transaction",
    async () => {
      const place = sqlitePlace(folder());
      await holds({
        name: "processes on SQLite",
        place,
        ttlMs: shortTtl(2),
        replicas: 2,
        folder: folder(),
        faults: (deployment) => [...processFaults(deployment), sqliteStop(deployment, place.file)],
      });
    },
    patienceMs,
  );

  it(
    "keep every rule on PostgreSQL when killed, stopped or cut off",
    async () => {
      const ttlMs = shortTtl(2);
      const place = await postgresPlace(inject("postgres18"), 3, ttlMs);
      onTestFinished(() => dropDatabase(place.admin()));
      onTestFinished(() => place.close());
      await holds({
        name: "processes and connections on PostgreSQL",
        place,
        ttlMs,
        replicas: 3,
        folder: folder(),
        faults: (deployment) => {
          const lines = deployment.replicas.map((replica) => {
            return { proxy: place.proxyOf(replica), worker: () => replica.label };
          });
          return [
            ...processFaults(deployment),
            postgresStop(deployment, place.admin, place.proxyOf),
            // Faults that last longer than a TTL are left to the long version.
            ...connectionFaults(deployment, lines, place.admin).filter(
              ({ kind }) => kind !== cutKind && kind !== holeKind,
            ),
          ];
        },
      });
    },
    patienceMs,
  );
});
