import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { killKind } from "../../tools/chaos/faults/processes.ts";
import { shortTtl, sqlitePlace } from "../../tools/chaos/places.ts";
import { runPushRound } from "../../tools/chaos/push/round.ts";

// The long version is `npm run chaos -- push`.
it("push handlers that are killed end every run, and find that of a dead writer by its alarm", async () => {
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
    ...{ last: ["committed"], lastOnly: true },
    select: (faults) => faults.filter(({ kind }) => kind === killKind).map((fault) => ({ ...fault, initial: 1 })),
  });
  console.log(["push handlers", ...report.lines].join("\n  "));
  expect(report.violations).toEqual([]);
  const checked = new Map(report.rules.map((rule) => [rule.rule, rule.checked]));
  expect(checked.get("no run was forgotten beyond the bound of its alarm")).toBeGreaterThan(1);
  expect(checked.get("no effect and no compensation happened twice")).toBeGreaterThan(4);
  expect(report.injections.some(({ outcome }) => outcome.includes("nothing followed it but its alarm"))).toBe(true);
}, 120_000);
