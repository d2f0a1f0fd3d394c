import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { serverChaos } from "../../tools/chaos/places.ts";
import { chaosReactors } from "../../tools/chaos/reactors.ts";
import { freshDatabase } from "../postgres/database.ts";
import { ownPostgres } from "../postgres/own.ts";

const postgresUrl = ownPostgres(18);

// The long version is `npm run chaos -- server`.
it("three servers and six workers: processes and connections die, nothing is lost, no act happens twice", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tape-chaos-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  // Nine processes on two cores: fewer runs, so that they settle soon after the faults.
  const options = { ...serverChaos(folder, 5, "suite", await freshDatabase(postgresUrl())), mostLive: 20 };
  const { violations, lines, hits } = await chaosReactors(options);
  console.log(["three servers, six workers", ...lines].join("\n  "));
  expect(violations).toEqual([]);
  expect(new Set(hits.map(({ kind }) => kind))).toEqual(new Set(["kill", "pause"]));
}, 240_000);
