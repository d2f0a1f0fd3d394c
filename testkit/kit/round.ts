import { fingerprint } from "../../src/base/canonical.ts";
import type { EffectRow } from "../../src/model/rows.ts";
import { NotSent } from "../../src/sdk/outcomes.ts";
import type { RunView, Store } from "../../src/store/contract/store.ts";
import { checkProjection } from "../projection.ts";
import type { BodyCall } from "./runner.ts";
import type { WorldLedger } from "./world.ts";

/** What one round came to. */
export interface CrashRound {
  readonly tenant: string;
  readonly store: Store;
  readonly run: RunView;
  readonly effects: readonly EffectRow[];
  /** Every call of a body, an observer or an inverse, as the world saw it. */
  readonly calls: readonly BodyCall[];
  readonly struck: boolean;
  readonly ledger: WorldLedger | undefined;
  /** Found while the store was open. */
  readonly faults?: readonly string[];
}

/** What is wrong with a round, alone (while its store is open) or beside the round without a crash. */
export async function roundFaults(
  round: CrashRound,
  calm: CrashRound | undefined,
  outcome: (outcome: unknown) => unknown = (value) => value,
): Promise<string[]> {
  if (calm === undefined)
    return [...twice(round), ...undone(round), ...(await checkProjection(round.store, [round.tenant]))];
  return [...(round.faults ?? []), ...ending(round, calm, outcome), ...lost(round, calm)];
}

function twice(round: CrashRound): string[] {
  const faults = (round.ledger?.twice() ?? []).map((what) => `the world has done it twice: ${what}`);
  const sent = new Map<string, BodyCall>();
  for (const call of round.calls) {
    if (call.semantics !== "non_idempotent" || call.role === "observe") continue;
    const before = sent.get(call.key);
    sent.set(call.key, call);
    if (
      before === undefined ||
      (before.came !== undefined && "error" in before.came && before.came.error instanceof NotSent)
    )
      continue;
    faults.push(
      `${call.role} ${call.effect} was called twice under ${call.key}, by ${before.process} and ${call.process}`,
    );
  }
  return faults;
}

function ending(round: CrashRound, calm: CrashRound, pick: (outcome: unknown) => unknown): string[] {
  const { status } = round.run;
  const acts = round.effects.filter(({ role }) => role === "effect");
  if (status === calm.run.status) {
    if (status !== "COMPLETED") return [];
    const same = fingerprint(pick(round.run.outcome)) === fingerprint(pick(calm.run.outcome));
    return same ? [] : ["the outcome is another than without the crash"];
  }
  const asks = round.effects.some((effect) => effect.status === "STUCK");
  if (asks && (status === "STUCK" || status === "WAITING")) return []; // it stops and asks
  // It surely did not happen: a look in time said so, or its late sender did. The author decides about another try.
  const surely = ["ABSENT", "evidence"];
  const absent = acts.some((effect) => effect.status === "FAILED" && surely.includes(effect.reason ?? ""));
  if (absent && (status === "FAILED" || status === "COMPENSATED")) return [];
  return [`it ended as ${status} instead of ${calm.run.status}: ${String(round.run.outcome)}`];
}

/** An act of the calm round that a completed round does not have. */
function lost(round: CrashRound, calm: CrashRound): string[] {
  if (round.run.status !== "COMPLETED") return [];
  const done = tally(round);
  return [...tally(calm)].flatMap(([what, times]) => {
    const seen = done.get(what) ?? 0;
    return seen < times ? [`${what} was done ${seen} times instead of ${times}`] : [];
  });
}

/** How often each act was done, under whatever key: one that surely did not happen may be done under another. */
function tally(round: CrashRound): Map<string, number> {
  const acts = round.calls.filter((call) => succeeded(call) && call.role !== "observe" && call.semantics !== "read");
  const counts = new Map<string, number>();
  for (const act of new Set(acts.map(({ role, effect, key }) => `${role} ${effect}\n${key}`))) {
    const what = act.split("\n")[0]!;
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  return counts;
}

const succeeded = ({ came }: BodyCall): boolean => came !== undefined && "value" in came;

/** Undone is what was confirmed, if and only if the run did not end well. */
function undone(round: CrashRound): string[] {
  const { status } = round.run;
  const inverses = round.effects.filter(({ role, surplus }) => role === "compensation" && !surplus);
  const called = (key: string): boolean => round.calls.some((call) => call.role === "compensation" && call.key === key);
  if (status === "COMPENSATED") {
    return inverses
      .filter((inverse) => inverse.status !== "COMPENSATED" || !called(inverse.key))
      .map(({ name, key }) => `${name} was not undone (${key})`);
  }
  if (status !== "COMPLETED") return [];
  return inverses
    .filter(({ key }) => called(key))
    .map(({ name, key }) => `${name} of a healthy run was undone (${key})`);
}
