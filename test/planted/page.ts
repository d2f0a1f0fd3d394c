// `node test/planted/page.ts` rewrites the tables of docs/planted-bugs.md; a test keeps the two equal.
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Bug } from "./bug.ts";
import { alarmBugs } from "./bugs/alarms.ts";
import { buildBugs } from "./bugs/builds.ts";
import { effectBugs } from "./bugs/effects.ts";
import { endingBugs } from "./bugs/endings.ts";
import { generationBugs } from "./bugs/generations.ts";
import { journalBugs } from "./bugs/journals.ts";
import { leaseBugs } from "./bugs/leases.ts";
import { neighbourBugs } from "./bugs/neighbours.ts";
import { objectBugs } from "./bugs/objects.ts";
import { queueBugs } from "./bugs/queues.ts";
import { retentionBugs } from "./bugs/retention.ts";
import { scopeBugs } from "./bugs/scopes.ts";
import { sealedBugs } from "./bugs/sealed.ts";
import { serviceBugs } from "./bugs/services.ts";
import { shardBugs } from "./bugs/shards.ts";
import { sinkBugs } from "./bugs/sinks.ts";
import { stepBugs } from "./bugs/steps.ts";
import { strangerBugs } from "./bugs/strangers.ts";
import { streamBugs } from "./bugs/streams.ts";
import { talkingBugs } from "./bugs/talking.ts";
import { transactionBugs } from "./bugs/transactions.ts";

export const page = join(resolve(import.meta.dirname, "../.."), "docs/planted-bugs.md");

const begin = "<!-- bugs: written by test/planted/page.ts -->";
const end = "<!-- end of bugs -->";

const groups: readonly (readonly [string, readonly Bug[]])[] = [
  ["Leases and fences", leaseBugs],
  ["Effects", effectBugs],
  ["Journals, signals and timers", journalBugs],
  ["Steps", stepBugs],
  ["Ends, compensation and budgets", endingBugs],
  ["Values, schedules, operators, restores", serviceBugs],
  ["Transactions of callers", transactionBugs],
  ["Strangers, approvals, audit, forks and clocks", strangerBugs],
  ["Quotas, cursors, erasure and request fences", neighbourBugs],
  ["Talking to runs", talkingBugs],
  ["Queues", queueBugs],
  ["Objects", objectBugs],
  ["Alarms", alarmBugs],
  ["Sinks", sinkBugs],
  ["Shards", shardBugs],
  ["Retention", retentionBugs],
  ["Builds", buildBugs],
  ["Streams", streamBugs],
  ["Encryption", sealedBugs],
  ["Scopes, sagas and detached runs", scopeBugs],
  ["Generations", generationBugs],
];

function tables(): string {
  return groups
    .map(([heading, bugs]) => {
      const rows = bugs.map(
        ({ name, planted, why, detectedBy, kind = "any", within }) =>
          `| ${name} | ${planted} | ${why} | ${detectedBy.map((invariant) => `\`${invariant}\``).join(", ")} | ${kind} | ${within} |`,
      );
      const head =
        "| bug | what was changed | where it comes from | detected by | plans | within seeds |\n|---|---|---|---|---|---|";
      return `## ${heading}\n\n${head}\n${rows.join("\n")}\n`;
    })
    .join("\n");
}

/** The page with its tables rewritten. */
export function written(text: string): string {
  const [before, rest] = text.split(begin);
  const after = rest?.split(end)[1];
  if (before === undefined || after === undefined)
    throw new Error(`${page} has lost the comments that mark its tables`);
  return `${before}${begin}\n\n${tables()}\n${end}${after}`;
}

if (import.meta.main) writeFileSync(page, written(readFileSync(page, "utf8")));
