import type { Injection } from "./fault.ts";
import type { RoundReport } from "./round.ts";

export interface Head {
  /** Repeats the run. */
  readonly command: string;
  readonly seed: string;
  readonly platform: string;
  readonly at: string;
  /** States that no round reached. */
  readonly unreached: readonly string[];
}

/** The report in Markdown. */
export function reportOf(rounds: readonly RoundReport[], head: Head): string {
  const broken = [...rounds.flatMap(({ violations }) => violations), ...head.unreached];
  const effective = rounds.flatMap(({ injections }) => injections).filter(({ effective }) => effective).length;
  const verdict =
    broken.length === 0
      ? `**Every rule held** under ${effective} effective faults.`
      : `**${broken.length} findings.** They are listed at the end of each round.`;
  const notRun = rounds.flatMap(({ name, notRun: missing }) => missing.map((fault) => ({ name, ...fault })));
  return `${[
    "# Chaos report",
    verdict,
    `${head.at}, ${head.platform}, seed \`${head.seed}\`. Repeat it with:`,
    `\`\`\`sh\n${head.command}\n\`\`\``,
    "Times are real: a seed fixes which faults are drawn, not what they hit.",
    ...(notRun.length > 0
      ? ["## Not run", notRun.map(({ name, kind, why }) => `- NOT RUN: ${kind} (${name}): ${why}`).join("\n")]
      : []),
    "## Faults",
    faultTable(rounds),
    "## Rules",
    ruleTable(rounds),
    "## States reached",
    table(["state", "times"], Object.entries(sum(rounds.map(({ states }) => states)))),
    ...(head.unreached.length > 0 ? [list(head.unreached)] : []),
    "## Rounds",
    ...rounds.flatMap(roundSection),
  ].join("\n\n")}\n`;
}

function faultTable(rounds: readonly RoundReport[]): string {
  const rows = rounds.flatMap(({ name, faults, injections, notRun }) => [
    ...faults.map(({ kind, effectiveWhen }) => {
      const of = injections.filter((injection) => injection.kind === kind);
      const effective = of.filter((injection) => injection.effective);
      return [kind, name, of.length, effective.length, effectiveWhen, counted(of, "hit"), counted(of, "outcome")];
    }),
    ...notRun.map(({ kind, why }) => [kind, name, "NOT RUN", "–", why, "–", "–"]),
  ]);
  return table(["fault", "round", "injected", "effective", "effective when", "what it hit", "outcome"], rows);
}

function ruleTable(rounds: readonly RoundReport[]): string {
  const all = Map.groupBy(
    rounds.flatMap(({ rules }) => rules),
    ({ rule }) => rule,
  );
  const rows = [...all].map(([rule, same]) => [
    rule,
    same.reduce((sum, { checked }) => sum + checked, 0),
    same.reduce((sum, { broken }) => sum + broken.length, 0),
  ]);
  return table(["rule", "checked", "broken"], rows);
}

function roundSection({ name, seconds, violations, lost, lines, notRun, faults }: RoundReport): string[] {
  if (faults.length === 0 && violations.length === 0)
    return [`### ${name}`, `NOT RUN: ${notRun.map(({ why }) => why).join("; ")}`];
  return [
    `### ${name}`,
    list([`${seconds} s`, ...lines]),
    ...(lost.length > 0 ? [`Lost, which no guarantee excludes: ${lost.join("; ")}.`] : []),
    violations.length === 0
      ? "Every rule held."
      : list(violations.slice(0, 50).map((violation) => `BROKEN: ${violation}`)),
  ];
}

function counted(injections: readonly Injection[], what: "hit" | "outcome"): string {
  const all = injections.flatMap((injection) => injection[what]);
  const texts = [...Map.groupBy(all, (text) => text)].map(([text, same]) => `${same.length} × ${text}`);
  return texts.join("; ") || "nothing";
}

function sum(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const total: Record<string, number> = {};
  for (const [name, n] of all.flatMap((counts) => Object.entries(counts))) total[name] = (total[name] ?? 0) + n;
  return total;
}

const list = (items: readonly string[]): string => items.map((item) => `- ${item}`).join("\n");

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]): string =>
    `| ${cells.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}
