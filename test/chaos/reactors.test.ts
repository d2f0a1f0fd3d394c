import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { rareStates, unreached } from "../../tools/chaos/evidence.ts";
import { connectionFaults, cutKind, holeKind } from "../../tools/chaos/faults/connections.ts";
import { processFaults } from "../../tools/chaos/faults/processes.ts";
import { postgresStop, sqliteStop } from "../../tools/chaos/faults/transaction.ts";
import { postgresPlace, shortTtl, sqlitePlace } from "../../tools/chaos/places.ts";
import { playRound, type RoundOptions } from "../../tools/chaos/round.ts";
import { dropDatabase } from "../postgres/database.ts";

/** A few seconds of faults, and then as long as the runs need to settle: a busy machine may take its while. */
const patienceMs = 300_000;

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "tape-chaos-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Every rule of tools/chaos/judge.ts, and the demand that each fault has bitten. */
async function holds(options: Omit<RoundOptions, "seed" | "ms" | "mostLive">): Promise<void> {
  const report = await playRound({ ...options, ms: 2_500, seed: "suite", mostLive: 10 });
  console.log([options.name, ...report.lines].join("\n  "));
  expect([...report.violations, ...unreached([report.states], rareStates)]).toEqual([]);
  const bitten = report.strikes.filter((strike) => strike.bitten).map(({ kind }) => kind);
  expect(new Set(bitten)).toEqual(new Set(report.faults.map(({ kind }) => kind)));
}

// The long version is `npm run chaos`. Times are real, so a seed fixes what is drawn, not what it meets.
describe("all five reactors and a singleton, under faults", () => {
  it(
    "processes on one SQLite file, killed and stopped, also inside a transaction",
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
    "replicas on PostgreSQL, killed, stopped and cut off",
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
            // What takes a TTL and more is left to the long version.
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
