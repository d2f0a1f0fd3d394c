import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { alertFiles, alertRules } from "../../src/deploy/alerts.ts";
import { findProgram } from "./servers/programs.ts";

/** Prometheus' own checker over the rendered rules and their tests. */
function promtool(rules: Parameters<typeof alertFiles>[0], ...args: readonly string[]): { ok: boolean; text: string } {
  const folder = mkdtempSync(join(tmpdir(), "tape-alerts-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const { path, text } of alertFiles(rules)) writeFileSync(join(folder, path), text);
  const { path, env } = findProgram("promtool");
  const { status, stdout, stderr } = spawnSync(path, args, {
    ...{ cwd: folder, encoding: "utf8", env: { ...process.env, ...env } },
  });
  return { ok: status === 0, text: `${stdout}${stderr}` };
}

it("Prometheus accepts the alert rules, and each fires and stays quiet as its tests say", () => {
  const checked = promtool(alertRules, "check", "rules", "alerts.yaml");
  expect(checked.text).toContain(`${alertRules.length} rules found`);
  const tested = promtool(alertRules, "test", "rules", "alerts.test.yaml");
  expect(tested.text).toContain("SUCCESS");
  expect([checked.ok, tested.ok]).toEqual([true, true]);
});

it("rules that never fire, or always do, fail their tests", () => {
  for (const expr of ["vector(1) > 2", "vector(1)"]) {
    const broken = alertRules.map((rule) => ({ ...rule, expr }));
    const { ok, text } = promtool(broken, "test", "rules", "alerts.test.yaml");
    expect(ok).toBe(false);
    expect(alertRules.filter(({ alert }) => !text.includes(`alertname: ${alert}`))).toEqual([]);
  }
});
