import { fingerprint } from "../../src/base/canonical.ts";
import type { EffectRow } from "../../src/model/rows.ts";
import { NotSent } from "../../src/sdk/outcomes.ts";
import type { RunView, Store } from "../../src/store/contract/store.ts";
import { readAll } from "../../src/store/read-all.ts";
import { checkProjection } from "../projection.ts";
import type { BodyCall } from "./runner.ts";
import type { WorldLedger } from "./world.ts";

/**
 * One round of {@link crashAtEveryBoundary}, as its `check` receives it.
 *
 * @example
 * const check = ({ run, calls }: CrashRound) => assert.ok(run.status !== "FAILED", `${calls.length} calls`);
 */
export interface CrashRound {
  readonly tenant: string;
  readonly store: Store;
  readonly run: RunView;
  readonly effects: readonly EffectRow[];
  /** Every call of an effect, an observer or a compensation, as the upstream saw it. */
  readonly calls: readonly BodyCall[];
  /** The round reached its boundary. */
  readonly reached: boolean;
  readonly ledger: WorldLedger | undefined;
  /** Found while the store was open. */
  readonly faults?: readonly string[];
}

/** The faults of a round: alone, while its store is open, or compared with the round without a crash. */
export async function roundFaults(
  round: CrashRound,
  calm: CrashRound | undefined,
  outcome: (outcome: unknown) => unknown = (value) => value,
): Promise<string[]> {
  if (calm === undefined)
    return [
      ...duplicates(round),
      ...compensationFaults(round, await duePositions(round)),
      ...(await checkProjection(round.store, [round.tenant])),
    ];
  return [...(round.faults ?? []), ...endingFaults(round, calm, outcome), ...lostEffects(round, calm)];
}

function duplicates(round: CrashRound): string[] {
  const faults = (round.ledger?.duplicates() ?? []).map((what) => `applied twice upstream: ${what}`);
  const sent = new Map<string, BodyCall>();
  for (const call of round.calls) {
    if (call.semantics !== "non_idempotent" || call.role === "observe") continue;
    const before = sent.get(call.key);
    sent.set(call.key, call);
    if (
      before === undefined ||
      (before.result !== undefined && "error" in before.result && before.result.error instanceof NotSent) ||
      wasAbsentBetween(round, before, call)
    )
      continue;
    faults.push(
      `${call.role} ${call.effect} was called twice under ${call.key}, by ${before.process} and ${call.process}`,
    );
  }
  return faults;
}

/** The first of the two attempts was observed as absent before the second was requested, so it was sent again. */
function wasAbsentBetween({ calls }: CrashRound, one: BodyCall, other: BodyCall): boolean {
  const [first, second] = one.attempt < other.attempt ? [one, other] : [other, one];
  return calls.some(
    ({ role, key, at, result }) =>
      role === "observe" &&
      key === first.key &&
      at >= first.requestedAt &&
      at <= second.requestedAt &&
      result !== undefined &&
      "value" in result &&
      (result.value as { observed?: unknown } | undefined)?.observed === "absent",
  );
}

function endingFaults(round: CrashRound, calm: CrashRound, pick: (outcome: unknown) => unknown): string[] {
  const { status } = round.run;
  const ownEffects = round.effects.filter(({ role }) => role === "effect");
  if (status === calm.run.status) {
    if (status !== "COMPLETED") return [];
    const same = fingerprint(pick(round.run.outcome)) === fingerprint(pick(calm.run.outcome));
    return same ? [] : ["the outcome differs from the one without a crash"];
  }
  const isStuck = round.effects.some((effect) => effect.status === "STUCK");
  if (isStuck && (status === "STUCK" || status === "WAITING")) return []; // it waits for an operator
  // It did not happen, according to a timely observation or to late evidence. The author decides about another attempt.
  const proofs = ["ABSENT", "evidence"];
  const absent = ownEffects.some((effect) => effect.status === "FAILED" && proofs.includes(effect.reason ?? ""));
  if (absent && (status === "FAILED" || status === "COMPENSATED")) return [];
  return [`the run ended as ${status} instead of ${calm.run.status}: ${String(round.run.outcome)}`];
}

/** Effects of the round without a crash that a completed round lacks. */
function lostEffects(round: CrashRound, calm: CrashRound): string[] {
  if (round.run.status !== "COMPLETED") return [];
  const done = callCounts(round);
  return [...callCounts(calm)].flatMap(([what, times]) => {
    const seen = done.get(what) ?? 0;
    return seen < times ? [`${what} was called ${seen} times instead of ${times}`] : [];
  });
}

/** How often each effect succeeded, under any key: one that did not happen may succeed under another. */
function callCounts(round: CrashRound): Map<string, number> {
  const ownEffects = round.calls.filter(
    (call) => succeeded(call) && call.role !== "observe" && call.semantics !== "read",
  );
  const counts = new Map<string, number>();
  for (const entry of new Set(ownEffects.map(({ role, effect, key }) => `${role} ${effect}\n${key}`))) {
    const what = entry.split("\n")[0]!;
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  return counts;
}

const succeeded = ({ result }: BodyCall): boolean => result !== undefined && "value" in result;

/** Positions whose obligations fell due while the run was live: a saga has failed there. */
async function duePositions({ store, tenant, run }: CrashRound): Promise<ReadonlySet<number>> {
  const records = await readAll((from) => store.read.journal(tenant, { run: run.id }, { from }));
  return new Set(records.flatMap((record) => (record.kind === "obligation.due" ? [record.data.pos] : [])));
}

/** Confirmed effects are compensated if and only if the run did not complete, or their saga has failed. */
function compensationFaults(round: CrashRound, due: ReadonlySet<number>): string[] {
  const { status } = round.run;
  const compensations = round.effects.filter(({ role, surplus }) => role === "compensation" && !surplus);
  const called = (key: string): boolean => round.calls.some((call) => call.role === "compensation" && call.key === key);
  if (status === "COMPENSATED") {
    return compensations
      .filter((compensation) => compensation.status !== "COMPENSATED" || !called(compensation.key))
      .map(({ name, key }) => `${name} was not compensated (${key})`);
  }
  if (status !== "COMPLETED") return [];
  return compensations
    .filter(({ key, pos }) => called(key) !== due.has(pos))
    .map(({ name, key }) => `${name} of a completed run was ${called(key) ? "" : "not "}compensated (${key})`);
}
