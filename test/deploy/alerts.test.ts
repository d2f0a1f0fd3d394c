import { parser } from "@prometheus-io/lezer-promql";
import { describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { type AlertRule, alertFiles, alertRules } from "../../src/deploy/alerts.ts";
import { type BoardPanel, board } from "../../src/deploy/board.ts";
import { targets } from "../../src/deploy/plan.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import { rendered, textOfFile } from "./sample.ts";

/** What the expression selects, and whether it can be parsed. Grafana's own variables become durations and names. */
function readExpression(text: string): { readonly faults: number; readonly metrics: readonly string[] } {
  const plain = text.replaceAll("$__rate_interval", "5m");
  const metrics: string[] = [];
  let faults = 0;
  parser.parse(plain).iterate({
    enter({ type, from, to, node }) {
      if (type.isError) faults++;
      if (type.name === "Identifier" && node.parent?.type.name === "VectorSelector")
        metrics.push(plain.slice(from, to));
    },
  });
  return { faults, metrics };
}

/** The families of a scraped page, with the labels of their samples. */
async function scraped(): Promise<{ readonly families: ReadonlySet<string>; readonly text: string }> {
  const app = await Tape.open({ store: "memory:", runner: createRunner({ workflows: [] }), log: "silent" });
  onTestFinished(() => app.close());
  const text = await app.metrics.text();
  return { families: new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!)), text };
}

const panels = (): BoardPanel[] => board().panels.filter((panel) => panel.type !== "row");

describe("alert rules", () => {
  it("are parsed, and use only metrics that a process has", async () => {
    const { families } = await scraped();
    const used = alertRules.map(({ alert, expr }) => ({ alert, ...readExpression(expr) }));
    expect(used.filter(({ faults, metrics }) => faults > 0 || metrics.length === 0)).toEqual([]);
    expect(used.flatMap(({ metrics }) => metrics).filter((name) => !families.has(name))).toEqual([]);
    expect(readExpression("max by (job) (tape_runs{) > 0").faults).toBeGreaterThan(0); // the check can fail
  });

  it("each have a case that fires and one that does not, over series of their own metrics", () => {
    const [rules, tests] = alertFiles().map(({ text }) => parse(text)) as [
      { groups: { rules: AlertRule[] }[] },
      { rule_files: string[]; tests: { name: string; input_series: { series: string }[] }[] },
    ];
    expect(rules.groups.flatMap((group) => group.rules).map(({ alert }) => alert)).toEqual(
      alertRules.map(({ alert }) => alert),
    );
    expect(tests.rule_files).toEqual(["alerts.yaml"]);
    expect(tests.tests.map(({ name }) => name)).toEqual(
      alertRules.flatMap(({ alert }) => [`${alert} fires`, `${alert} is quiet`]),
    );
    for (const { expr, fires, quiet, alert } of alertRules) {
      const { metrics } = readExpression(expr);
      const given = [...fires, ...quiet].map(({ series }) => series.replace(/\{.*/, ""));
      expect([...new Set(given)].sort(), alert).toEqual([...new Set(metrics)].sort());
    }
  });

  it("name a section of the page for operators", () => {
    const anchors = [...textOfFile("docs/operating.md").matchAll(/^## (.+)$/gm)].map(([, title]) =>
      title!
        .toLowerCase()
        .replaceAll(/[^a-z ]/g, "")
        .replaceAll(" ", "-"),
    );
    expect(alertRules.map(({ section }) => section).filter((section) => !anchors.includes(section))).toEqual([]);
  });
});

it.each(targets)("%s: rules, their tests and the board are rendered", (target) => {
  const { text } = rendered(target);
  expect(parse(text("alerts.yaml"))).toMatchObject({ groups: [{ name: "tape" }] });
  expect(parse(text("alerts.test.yaml"))).toMatchObject({ rule_files: ["alerts.yaml"] });
  expect(JSON.parse(text("dashboard.json"))).toEqual(board());
});

describe("the board", () => {
  it("shows every metric of a process but its start and failed queries, by expressions that are parsed", async () => {
    const { families } = await scraped();
    const queries = panels().flatMap(({ targets: all }) => all.map(({ expr }) => readExpression(expr)));
    expect(queries.filter(({ faults, metrics }) => faults > 0 || metrics.length === 0)).toEqual([]);
    const shown = new Set(queries.flatMap(({ metrics }) => metrics));
    const unshown = ["tape_run_replay_seconds", "tape_census_failures_total", "tape_process_start_time_seconds"];
    expect([...shown, ...unshown].sort()).toEqual([...families].sort());
  });

  it("has panels with ids of their own that do not overlap", () => {
    const all = board().panels;
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    const cells = all.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, k) => `${x + (k % w)},${y + Math.floor(k / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...all.map(({ gridPos: { x, w } }) => x + w))).toBe(24);
  });
});
