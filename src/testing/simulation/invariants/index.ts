import type { Evidence } from "../evidence.ts";
import * as effects from "./effects.ts";
import * as endings from "./endings.ts";
import * as journal from "./journal.ts";

const { inboxOf: _inbox, mainJournals: _main, ...journalRules } = journal;

/** Every invariant by its name. */
export const invariants: Readonly<Record<string, journal.Invariant>> = { ...journalRules, ...effects, ...endings };

/** What does not hold, each with the name of its invariant. */
export function brokenInvariants(evidence: Evidence): string[] {
  return Object.entries(invariants).flatMap(([name, check]) => check(evidence).map((fault) => `${name}: ${fault}`));
}
