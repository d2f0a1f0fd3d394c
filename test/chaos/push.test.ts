import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { killKind } from "../../tools/chaos/faults/processes.ts";
import { shortTtl, sqlitePlace } from "../../tools/chaos/places.ts";
import { runPushRound } from "../../tools/chaos/push/round.ts";

// The long version is `npm run chaos -- push`.
it("push handlers that are killed end every run, and no effect happens twice", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tape-chaos-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const report = await runPushRound({
    name: "push handlers",
    place: sqlitePlace(folder),
    ttlMs: shortTtl(2),
    ms: 10,
    seed: "suite",
    folder,
    handlers: 2,
    maxLive: 3,
    flows: ["payment"],
    ...{ last: [], lastOnly: true }, // dead writers are left to the long version: their alarms take up to 20 s
    select: (faults) => faults.filter(({ kind }) => kind === killKind).map((fault) => ({ ...fault, initial: 1 })),
  });
  console.log(["push handlers", ...report.lines].join("\n  "));
  expect(report.violations).toEqual([]);
  const checked = new Map(report.rules.map((rule) => [rule.rule, rule.checked]));
  expect(checked.get("no run was forgotten beyond the bound of its alarm")).toBeGreaterThan(0);
  expect(checked.get("no effect and no compensation happened twice")).toBeGreaterThan(3);
}, 120_000);
