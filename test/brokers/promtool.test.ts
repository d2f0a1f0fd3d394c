import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type AlertRule, alertFiles, alertRules } from "../../src/deploy/alerts.ts";
import { findProgram } from "./servers/programs.ts";

const folder = mkdtempSync(join(tmpdir(), "tape-alerts-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs promtool over the rendered files. */
function promtool(args: readonly string[], rules: readonly AlertRule[] = alertRules) {
  for (const { path, text } of alertFiles(rules)) writeFileSync(join(folder, path), text);
  const { path, env } = findProgram("promtool");
  const { status, stdout, stderr } = spawnSync(path, args, {
    ...{ cwd: folder, encoding: "utf8", env: { ...process.env, ...env } },
  });
  return { status, output: `${stdout}${stderr}` };
}

describe("the alerts that deploy renders, by promtool", () => {
  it("are rules that Prometheus reads", () => {
    const { status, output } = promtool(["check", "rules", "alerts.yaml"]);
    expect(output).toContain(`SUCCESS: ${alertRules.length} rules found`);
    expect(status).toBe(0);
  });

  it("fire on the series that they name, and stay quiet on the others", () => {
    expect(promtool(["test", "rules", "alerts.test.yaml"])).toMatchObject({
      ...{ status: 0, output: expect.stringContaining("SUCCESS") },
    });
  });

  it.each(alertRules.map((rule) => [rule.alert, rule] as const))("%s has a test that can fail", (_, rule) => {
    const swapped = { ...rule, fires: rule.quiet, quiet: rule.fires };
    expect(promtool(["test", "rules", "alerts.test.yaml"], [swapped]).status).toBe(1);
    const unreadable = { ...rule, expr: `${rule.expr} >` };
    expect(promtool(["check", "rules", "alerts.yaml"], [unreadable]).status).toBe(1);
  });
});
