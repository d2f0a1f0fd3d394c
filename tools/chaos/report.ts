import type { RoundReport } from "./round.ts";
import type { Strike } from "./strike.ts";

export interface Head {
  /** What plays it again. */
  readonly command: string;
  readonly seed: string;
  readonly platform: string;
  readonly at: string;
  /** Broken beyond single rounds: states that no round reached. */
  readonly worthless: readonly string[];
}

/** What was done and what came of it, in Markdown. */
export function reportOf(rounds: readonly RoundReport[], head: Head): string {
  const broken = [...rounds.flatMap(({ violations }) => violations), ...head.worthless];
  const bites = rounds.flatMap(({ strikes }) => strikes).filter(({ bitten }) => bitten).length;
  const verdict =
    broken.length === 0
      ? `**Every rule held** under ${bites} faults that bit.`
      : `**${broken.length} findings.** They are at the end of their rounds.`;
  const notRun = rounds.flatMap(({ name, notRun: missing }) => missing.map((one) => ({ name, ...one })));
  return `${[
    "# Chaos report",
    verdict,
    `${head.at}, ${head.platform}, seed \`${head.seed}\`. Play it again:`,
    `\`\`\`sh\n${head.command}\n\`\`\``,
    "Times are real: a seed fixes what is drawn, not what it meets.",
    ...(notRun.length > 0
      ? ["## Not run", notRun.map(({ name, kind, why }) => `- NOT RUN: ${kind} (${name}): ${why}`).join("\n")]
      : []),
    "## Faults",
    faultTable(rounds),
    "## Rules",
    ruleTable(rounds),
    "## States reached",
    table(["state", "times"], Object.entries(sum(rounds.map(({ states }) => states)))),
    ...(head.worthless.length > 0 ? [list(head.worthless)] : []),
    "## Rounds",
    ...rounds.flatMap(roundSection),
  ].join("\n\n")}\n`;
}

function faultTable(rounds: readonly RoundReport[]): string {
  const rows = rounds.flatMap(({ name, faults, strikes, notRun }) => [
    ...faults.map(({ kind, counts }) => {
      const of = strikes.filter((strike) => strike.kind === kind);
      const bitten = of.filter((strike) => strike.bitten);
      return [kind, name, of.length, bitten.length, counts, tally(of, "hit"), tally(of, "outcome")];
    }),
    ...notRun.map(({ kind, why }) => [kind, name, "NOT RUN", "–", why, "–", "–"]),
  ]);
  return table(["fault", "round", "played", "bit", "it bites when", "what it hit", "what came of it"], rows);
}

function ruleTable(rounds: readonly RoundReport[]): string {
  const all = Map.groupBy(
    rounds.flatMap(({ rules }) => rules),
    ({ rule }) => rule,
  );
  const rows = [...all].map(([rule, same]) => [
    rule,
    same.reduce((sum, { looked }) => sum + looked, 0),
    same.reduce((sum, { broken }) => sum + broken.length, 0),
  ]);
  return table(["rule", "held against", "broken"], rows);
}

function roundSection({ name, seconds, violations, lost, lines, notRun, faults }: RoundReport): string[] {
  if (faults.length === 0 && violations.length === 0)
    return [`### ${name}`, `NOT RUN: ${notRun.map(({ why }) => why).join("; ")}`];
  return [
    `### ${name}`,
    list([`${seconds} s`, ...lines]),
    ...(lost.length > 0 ? [`Not promised, and met: lost: ${lost.join("; ")}.`] : []),
    violations.length === 0 ? "Every rule held." : list(violations.slice(0, 50).map((one) => `BROKEN: ${one}`)),
  ];
}

function tally(strikes: readonly Strike[], what: "hit" | "outcome"): string {
  const all = strikes.flatMap((strike) => strike[what]);
  const counted = [...Map.groupBy(all, (one) => one)].map(([one, same]) => `${same.length} × ${one}`);
  return counted.join("; ") || "nothing";
}

function sum(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const total: Record<string, number> = {};
  for (const [name, n] of all.flatMap((one) => Object.entries(one))) total[name] = (total[name] ?? 0) + n;
  return total;
}

const list = (items: readonly string[]): string => items.map((item) => `- ${item}`).join("\n");

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]): string =>
    `| ${cells.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}
