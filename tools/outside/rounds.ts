import { appendFileSync, existsSync, readFileSync } from "node:fs";

/** What one agent went through: each boundary once with a crash, once with a zombie. */
export interface CrashRounds {
  readonly framework: string;
  /** Which agent, and how it is called. */
  readonly agent: string;
  readonly boundaries: number;
  readonly rounds: number;
  /** Rounds after which the bank's own ledger has each payment once. */
  readonly paidOnce: number;
}

/** Suites run in processes of their own, so they note their rounds in a file. Without one they note nothing. */
export const roundsFile = "TAPE_OUTSIDE_ROUNDS_FILE";

/** Notes rounds that all passed, for the table at the end of `npm run outside`. */
export function noteRounds(rounds: CrashRounds): void {
  const file = process.env[roundsFile];
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(rounds)}\n`);
}

/** What the suites have noted. */
export function readRounds(file: string): CrashRounds[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").trim().split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as CrashRounds);
}

/**
 * A table in Markdown, one row for each agent, and the sum. Half of the rounds are zombies: a round passes only if what
 * the zombie decided, wrote and did was refused.
 */
export function roundsTable(all: readonly CrashRounds[]): string {
  const sorted = [...all].sort((a, b) => `${a.framework} ${a.agent}`.localeCompare(`${b.framework} ${b.agent}`));
  const sum = (of: (one: CrashRounds) => number): number => all.reduce((total, one) => total + of(one), 0);
  const zombies = ({ rounds }: CrashRounds): number => rounds / 2;
  const row = (...cells: readonly (string | number)[]): string => `| ${cells.join(" | ")} |`;
  return [
    row("framework", "agent", "boundaries", "rounds", "paid once", "with a zombie"),
    "|---|---|---|---|---|---|",
    ...sorted.map((one) => row(one.framework, one.agent, one.boundaries, one.rounds, one.paidOnce, zombies(one))),
    row(
      "all",
      "",
      sum((one) => one.boundaries),
      sum((one) => one.rounds),
      sum((one) => one.paidOnce),
      sum(zombies),
    ),
  ].join("\n");
}
