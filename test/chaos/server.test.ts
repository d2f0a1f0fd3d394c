import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { connectionFaults, terminateKind } from "../../tools/chaos/faults/connections.ts";
import { processFaults } from "../../tools/chaos/faults/processes.ts";
import { postgresPlace, serverTtl } from "../../tools/chaos/places.ts";
import { runRound } from "../../tools/chaos/round.ts";
import { serverFault } from "../../tools/chaos/servers.ts";
import { ownPostgres } from "../postgres/own.ts";

const postgresUrl = ownPostgres(18);

// The long version is `npm run chaos -- server`.
it("servers and workers lose nothing and repeat no effect when processes and connections die", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tape-chaos-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const ttlMs = serverTtl(2);
  const place = await postgresPlace(postgresUrl(), 2, ttlMs);
  onTestFinished(() => place.close());
  const report = await runRound({
    name: "servers",
    place,
    servers: 2,
    replicas: 3,
    ttlMs,
    ms: 2_500,
    seed: "suite",
    // Many processes on two cores: with fewer runs they settle soon after the faults.
    maxLive: 10,
    folder,
    faults: (deployment, servers) => [
      serverFault(deployment, servers),
      ...processFaults(deployment),
      ...connectionFaults(deployment, [], place.admin).filter(({ kind }) => kind === terminateKind),
    ],
  });
  console.log(["two servers, three workers", ...report.lines].join("\n  "));
  expect(report.violations).toEqual([]);
  const effective = report.injections.filter((injection) => injection.effective).map(({ kind }) => kind);
  expect(new Set(effective)).toEqual(new Set(report.faults.map(({ kind }) => kind)));
}, 300_000);
