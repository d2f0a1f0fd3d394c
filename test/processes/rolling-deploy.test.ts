import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { rollingDeploy } from "../../tools/chaos/deploy/rolling.ts";
import { shortTtl, sqlitePlace } from "../../tools/chaos/places.ts";

// The long version is `npm run chaos -- deploy`.
it("[INV-23] a rolling deploy: each run ends in the build that began it, and old processes exit when it is drained", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tape-deploy-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const url = sqlitePlace(folder).urlFor(0);
  const size = { processes: 2, runs: 30, later: 6 };
  const { rules, kill, terms } = await rollingDeploy({ url, folder, ttlMs: shortTtl(2), ...size });
  expect(rules.flatMap(({ broken }) => broken)).toEqual([]);
  expect(rules.filter(({ checked }) => checked === 0)).toEqual([]);
  expect(kill.effective).toBe(true);
  expect(terms).toBeGreaterThan(size.runs + size.later);
}, 60_000);
