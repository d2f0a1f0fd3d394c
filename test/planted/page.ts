// `node test/planted/page.ts` writes the tables of docs/planted-bugs.md anew; a test keeps the two equal.
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Bug } from "./bug.ts";
import { effectBugs } from "./bugs/effects.ts";
import { endingBugs } from "./bugs/endings.ts";
import { journalBugs } from "./bugs/journals.ts";
import { leaseBugs } from "./bugs/leases.ts";
import { neighbourBugs } from "./bugs/neighbours.ts";
import { serviceBugs } from "./bugs/services.ts";
import { strangerBugs } from "./bugs/strangers.ts";

export const page = join(resolve(import.meta.dirname, "../.."), "docs/planted-bugs.md");

const begin = "<!-- bugs: written by test/planted/page.ts -->";
const end = "<!-- end of bugs -->";

const groups: readonly (readonly [string, readonly Bug[]])[] = [
  ["Leases and fences", leaseBugs],
  ["Acts on the world", effectBugs],
  ["Journals, signals and timers", journalBugs],
  ["Ends, compensation and budgets", endingBugs],
  ["Values, schedules, operators, restores", serviceBugs],
  ["Strangers, approvals, audit, forks and clocks", strangerBugs],
  ["Quotas, cursors, erasure and doors", neighbourBugs],
];

function tables(): string {
  return groups
    .map(([heading, bugs]) => {
      const rows = bugs.map(
        ({ name, planted, why, tellers, kind = "any", within }) =>
          `| ${name} | ${planted} | ${why} | ${tellers.map((teller) => `\`${teller}\``).join(", ")} | ${kind} | ${within} |`,
      );
      const head =
        "| bug | what was changed | where it comes from | told of by | worlds | within seeds |\n|---|---|---|---|---|---|";
      return `## ${heading}\n\n${head}\n${rows.join("\n")}\n`;
    })
    .join("\n");
}

/** The page with the tables as they must be. */
export function written(text: string): string {
  const [before, rest] = text.split(begin);
  const after = rest?.split(end)[1];
  if (before === undefined || after === undefined) throw new Error(`${page} has lost its marks`);
  return `${before}${begin}\n\n${tables()}\n${end}${after}`;
}

if (import.meta.main) writeFileSync(page, written(readFileSync(page, "utf8")));
