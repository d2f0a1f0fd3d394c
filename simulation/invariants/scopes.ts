import type { EffectRow } from "../../src/model/rows.ts";
import type { FeedRecord } from "../../src/store/contract/store.ts";
import type { Evidence } from "../evidence.ts";
import type { Op } from "../program.ts";
import { markOf, type ScopeOp, type ScopeSight } from "../scope-work.ts";
import { inboxOf, mainJournals, recordsOf } from "./journal.ts";
import { across, combine, each, exempt, type Invariant, settles } from "./judge.ts";

/** A scope of a program, with the names of those around it. */
interface PlannedScope {
  readonly op: ScopeOp<Op>;
  readonly around: readonly string[];
}

const branchesOf = (op: Op): readonly (readonly Op[])[] => {
  if (op.op === "all" || op.op === "race") return op.branches;
  return op.op === "scope" || op.op === "tidy" || op.op === "child" ? [op.ops] : [];
};

/** The scopes of a run itself, without those of its children. */
function scopesIn(ops: readonly Op[], around: readonly string[] = []): PlannedScope[] {
  return ops.flatMap((op) => {
    if (op.op === "child") return [];
    const inside = op.op === "scope" ? [...around, op.name] : around;
    const below = branchesOf(op).flatMap((branch) => scopesIn(branch, inside));
    return op.op === "scope" ? [{ op, around }, ...below] : below;
  });
}

/** The ids of all effects in these operations, also of children. */
const effectsIn = (ops: readonly Op[]): string[] =>
  ops.flatMap((op) => (op.op === "effect" ? [op.args.id] : branchesOf(op).flatMap(effectsIn)));

/** Runs with scopes: as planned, and what their journals say. */
function scoped(evidence: Evidence) {
  return evidence.plan.runs.flatMap(({ id, program }) => {
    const scopes = scopesIn(program.ops);
    const run = scopes.length === 0 ? undefined : evidence.runs.find((one) => one.id === id);
    if (run === undefined) return [];
    const { journal, root } = run;
    const records = recordsOf(evidence, journal);
    const cancelled = inboxOf(evidence, journal).some(({ kind }) => kind === "cancel.requested");
    return [
      { id, journal, root, records, scopes, cancelled, sights: evidence.scopeSights.filter((one) => one.run === id) },
    ];
  });
}

/** The position of a scope: before that of its first step. */
function positionOf(records: readonly FeedRecord[], scope: string): number | undefined {
  const mark = records.find((one) => one.kind === "step.done" && one.data.name === markOf(scope));
  return mark?.kind === "step.done" ? mark.data.pos - 1 : undefined;
}

const closedAt = (records: readonly FeedRecord[], pos: number | undefined): FeedRecord | undefined =>
  records.find((one) => one.kind === "scope.closed" && one.data.of === pos);

/**
 * The code sees the same in every process that executes it, and it sees what the journal says: each end of a scope has
 * its record, with the reason that the code got; and an effect was sent, or was not and never is.
 */
export const scopesAgree: Invariant = (evidence) =>
  across(scoped(evidence), ({ id, journal, records, scopes, cancelled, sights }) =>
    combine([
      each(
        Map.groupBy(sights, ({ scope, index }) => `${scope}, ${index ?? "whole"}`),
        ([what, seen]) => {
          const outcomes = [
            ...new Set(seen.map(({ outcome, refusedBy }) => `${outcome} ${JSON.stringify(refusedBy)}`)),
          ];
          return outcomes.length === 1 ? [] : [`${id}, ${what}: the code saw ${outcomes.join(", then ")}`];
        },
      ),
      each(sights, ({ scope, refusedBy }) => {
        if (refusedBy === undefined) return exempt;
        const end = closedAt(records, refusedBy.scope);
        const reason = end?.kind === "scope.closed" ? end.data.reason : "open";
        return reason === refusedBy.reason
          ? []
          : [`${id}, ${scope}: refused because scope ${refusedBy.scope} is ${refusedBy.reason}, recorded as ${reason}`];
      }),
      each(scopes, ({ op: { name }, around }) => {
        const pos = positionOf(records, name);
        if (pos === undefined || !sights.some(({ scope, index }) => scope === name && index === undefined))
          return exempt;
        // What encloses it had ended, which ends it without a record of its own.
        if (cancelled || around.some((outer) => closedAt(records, positionOf(records, outer)))) return exempt;
        return closedAt(records, pos) === undefined ? [`${id}: the end of ${name} is not recorded`] : [];
      }),
      each(sights, ({ effect, refusedBy }) =>
        effect === undefined || refusedBy === undefined
          ? exempt
          : sentAsSeen(evidence, journal, records, { ...effect, scope: refusedBy.scope }),
      ),
    ]),
  );

function sentAsSeen(
  { effects, world }: Evidence,
  journal: number,
  records: readonly FeedRecord[],
  { pos, sent, scope }: { readonly pos: number; readonly sent: boolean; readonly scope: number },
): string[] {
  const end = closedAt(records, scope)?.seq ?? Number.POSITIVE_INFINITY;
  const before = (kind: string): boolean =>
    records.some((one) => one.kind === kind && one.seq < end && (one.data as { pos?: number }).pos === pos);
  const wasSent = before("effect.intended") && !before("effect.withdrawn");
  if (wasSent !== sent) return [`the code saw effect ${pos} as ${sent ? "sent" : "not sent"}, its journal does not`];
  const row = effects.find((one) => one.run === journal && one.pos === pos && one.role === "effect");
  const happened = world.some(({ key, applied }) => applied && key === row?.key);
  return !sent && happened && row?.semantics !== "read" ? [`effect ${pos} was not sent, and happened`] : [];
}

const sagaReason = (pos: number): string => `the saga at position ${pos} has failed`;

/** Why this obligation fell due before the end of its run: the reason of a failed saga, around it or around its child. */
export function sagaOf(evidence: Evidence, { run, pos, sub }: EffectRow): string | undefined {
  const own = recordsOf(evidence, run).find(
    (one) => one.kind === "obligation.due" && one.data.pos === pos && one.data.sub === sub,
  );
  if (own?.kind === "obligation.due" && own.data.reason.startsWith("the saga")) return own.data.reason;
  for (let below = run; ; ) {
    const child = evidence.runs.find(({ journal }) => journal === below);
    if (child === undefined || child.parent === null) return undefined;
    const records = recordsOf(evidence, child.parent);
    const started = records.find((one) => one.kind === "child.started" && one.data.id === child.id);
    const startedAt = started?.kind === "child.started" ? started.data.pos : undefined;
    const due = records.find((one) => one.kind === "children.due" && one.data.pos === startedAt);
    if (due?.kind === "children.due") return due.data.reason;
    below = child.parent;
  }
}

/** Exactly the effects inside a failed saga are compensated because of it, before its error is thrown. */
export const sagaCompensatesExactly: Invariant = (evidence) =>
  across(scoped(evidence), ({ id, root, records, scopes, cancelled, sights }) => {
    const idAt = idsByPlace(evidence);
    const obligations = evidence.effects.filter(({ role, surplus }) => role === "compensation" && !surplus);
    return each(scopes, ({ op }) => {
      const pos = positionOf(records, op.name);
      if (op.kind !== "saga" || pos === undefined) return exempt;
      const inside = new Set(effectsIn(op.ops));
      const due = obligations.filter((row) => row.root === root && sagaOf(evidence, row) === sagaReason(pos));
      const whole = sights.find(({ scope, index }) => scope === op.name && index === undefined);
      if (whole === undefined && due.length === 0) return exempt;
      const faults = due
        .filter((row) => !inside.has(idAt.get(`${row.run} ${row.pos}`) ?? ""))
        .map(({ name, key }) => `${id}: ${op.name} compensates ${name} (${key}), which is not inside`);
      if (whole?.threw === false && due.length > 0) faults.push(`${id}: ${op.name} returned, and compensates`);
      if (whole?.threw !== true || cancelled) return faults;
      const done = records.find((one) => one.kind === "saga.compensated" && one.data.of === pos);
      for (const row of obligations) {
        if (!inside.has(idAt.get(`${row.run} ${row.pos}`) ?? "")) continue;
        if (row.status !== "COMPENSATED") faults.push(`${id}: ${op.name} has failed, and ${row.key} is ${row.status}`);
        if (done === undefined) faults.push(`${id}: ${op.name} has failed, and does not say that it is compensated`);
      }
      return faults;
    });
  });

/** The ids of effects, as programs have them, by run and position. */
function idsByPlace(evidence: Evidence): ReadonlyMap<string, string> {
  const ids = new Map<string, string>();
  for (const { journal, kind, data } of evidence.feed) {
    if (kind === "effect.intended") ids.set(`${journal} ${data.pos}`, (data.args as { readonly id: string }).id);
  }
  return ids;
}

/** Whether something ended that would have cancelled a child started by this record. */
const outlived = (records: readonly FeedRecord[], started: FeedRecord): boolean =>
  records.some(
    (one) =>
      one.seq > started.seq &&
      ((one.kind === "scope.closed" && one.data.reason !== "done") ||
        (one.kind === "run.ended" && one.data.status !== "COMPLETED")),
  );

/** A detached run belongs to no other run, and none cancels it. Applies where a child would have been cancelled. */
export const detachedLives: Invariant = (evidence) =>
  each(mainJournals(evidence), ({ id, journal, records }) => {
    const [created] = records;
    const by = created?.kind === "run.created" ? created.data.startedBy : undefined;
    if (by === undefined) return exempt;
    const starter = mainJournals(evidence).find((one) => one.id === by)?.records ?? [];
    const started = starter.find((one) => one.kind === "child.started" && one.data.id === id);
    if (started === undefined) return [`${id} says that ${by} started it, which does not`];
    if (!outlived(starter, started)) return exempt;
    const { parent, status } = evidence.runs.find((one) => one.journal === journal)!;
    const faults: string[] = [];
    if (parent !== null) faults.push(`${id} is detached, and has a parent`);
    if (inboxOf(evidence, journal).some(({ kind }) => kind === "cancel.requested"))
      faults.push(`${id} is detached, and was cancelled`);
    if (settles(evidence) && status !== "COMPLETED") faults.push(`${id} is detached, and is ${status}`);
    return faults;
  });

/** Whether a process replayed what another had seen of a scope. */
export const replayedElsewhere = (sights: readonly ScopeSight[]): boolean =>
  [...Map.groupBy(sights, ({ run, scope, index }) => `${run} ${scope} ${index}`).values()].some(
    (seen) => new Set(seen.map(({ process }) => process)).size > 1,
  );
