import { scopeTimer } from "../../src/model/projection.ts";
import type { EffectRow } from "../../src/model/rows.ts";
import type { FeedRecord } from "../../src/store/contract/store.ts";
import type { Evidence } from "../evidence.ts";
import { inboxOf, mainJournals, recordsOf } from "./journal.ts";
import { across, combine, each, exempt, type Invariant, notApplicable, settles } from "./judge.ts";
import { sagaOf } from "./scopes.ts";

const obligations = ({ effects }: Evidence, run: number): EffectRow[] =>
  effects.filter((effect) => effect.run === run && effect.role === "compensation" && !effect.surplus);

/** The run, its parent, and so on up to the root. */
const lineOf = (runs: Evidence["runs"], journal: number): Evidence["runs"] => {
  const run = runs.find((one) => one.journal === journal)!;
  return run.parent === null ? [run] : [run, ...lineOf(runs, run.parent)];
};

export const compensatedExactly: Invariant = (evidence) =>
  across(evidence.runs, ({ id, journal, status }) => {
    const line = lineOf(evidence.runs, journal);
    // A run that was compensated has compensated what its children did, too.
    const compensated = line.some((above) => above.status === "COMPENSATED");
    const endedBadly = status === "FAILED" || status === "CANCELLED";
    const endedWell = line.every((above) => above.status === "COMPLETED");
    if (!compensated && !endedBadly && !endedWell) return notApplicable;
    return each(obligations(evidence, journal), (row) => {
      const { key, name, status: is } = row;
      const faults: string[] = [];
      if (compensated && is !== "COMPENSATED") faults.push(`${id} is COMPENSATED, but ${name} is ${is}`);
      if (endedBadly && is !== "COMPENSATED" && is !== "DISCHARGED")
        faults.push(`${id} is ${status} and still owes ${name} (${is})`);
      // What a failed saga has compensated stays so, although the run ended well.
      if (endedWell && sagaOf(evidence, row) !== undefined)
        return is === "COMPENSATED" ? faults : [`${id}: a saga has failed, and ${name} is ${is}`];
      if (endedWell && is !== "DISCHARGED") faults.push(`${id} ended well, but ${name} is still ${is}`);
      if (endedWell && evidence.calls.some((call) => call.role === "compensation" && call.key === key))
        faults.push(`${id} ended well, but ${name} was compensated`);
      return faults;
    });
  });

/** Every confirmed effect with a compensate has an obligation, armed in the same transaction. */
export const obligationsArmed: Invariant = ({ effects }) =>
  each(effects, ({ role, status, name, key, run, pos }) => {
    if (role !== "effect" || status !== "CONFIRMED" || !/^(compensable|blind)/.test(name ?? "")) return exempt;
    return effects.some((other) => other.role === "compensation" && other.run === run && other.pos === pos)
      ? []
      : [`${name} (${key}) is confirmed, and has no obligation`];
  });

/** Applies to runs and to failed sagas with several compensations. */
export const newestFirst: Invariant = (evidence) => {
  const groups = evidence.runs.flatMap(({ id, journal }) => [
    ...Map.groupBy(obligations(evidence, journal), (row) => `${id}, ${sagaOf(evidence, row) ?? "its end"}`),
  ]);
  return each(groups, ([what, rows]) => {
    const keys = new Map(rows.map(({ key, pos }) => [key, pos]));
    const order = [
      ...new Set(
        evidence.calls.filter((call) => call.role === "compensation" && keys.has(call.key)).map(({ key }) => key),
      ),
    ];
    if (order.length < 2) return exempt;
    const positions = order.map((key) => keys.get(key)!);
    return positions.every((pos, k) => k === 0 || pos < positions[k - 1]!)
      ? []
      : [`${what}: compensated in the order ${positions.join(", ")}`];
  });
};

/** The timer that this record fires: by a note, or by the run's driver. */
function firedBy(record: FeedRecord): string | undefined {
  if (record.kind === "timer.fired" && record.in === "inbox") return `${record.data.pos} ${record.data.purpose}`;
  if (record.kind === "sleep.ended" && record.data.fired) return `${record.data.pos} sleep`;
  return undefined;
}

export const timersNeverEarly: Invariant = (evidence) =>
  across(evidence.runs, ({ id, journal }) => {
    const due = new Map<string, number>();
    for (const { kind, data, at } of recordsOf(evidence, journal)) {
      if (kind === "run.created") {
        const start = at + (data.debounce?.waitMs ?? data.delayMs ?? 0);
        due.set("0 start", start);
        due.set("0 expire", start + (data.expiresMs ?? 0));
      }
      if (kind === "timer.set") due.set(`${data.pos} ${data.purpose}`, data.until ?? at + data.delayMs);
      if (kind === "step.failed" && data.timer) due.set(`${data.pos} retry ${data.attempt}`, at + data.delayMs);
      if (kind === "scope.opened" && data.timeoutMs !== undefined)
        due.set(`${data.pos} ${scopeTimer(data.again)}`, at + data.timeoutMs);
      if (kind === "gate.opened" && data.timeoutMs !== undefined) {
        due.set(`${data.pos} gate_timeout`, at + data.timeoutMs);
      }
    }
    const fired = new Set<string>();
    const own = evidence.feed.filter((record) => record.journal === journal);
    return combine([
      each(own, (record) => {
        const timer = firedBy(record);
        if (timer === undefined) return exempt;
        const faults = fired.has(timer) ? [`${id}: timer ${timer} fired twice`] : [];
        fired.add(timer);
        const early = record.at < (due.get(timer) ?? Number.POSITIVE_INFINITY);
        return early ? [...faults, `${id}: timer ${timer} fired early`] : faults;
      }),
      each(settles(evidence) ? evidence.timers : [], ({ run, status, pos, purpose }) => {
        if (run !== journal) return exempt;
        return status === "SET" ? [`${id}: timer ${pos} ${purpose} never fired`] : [];
      }),
    ]);
  });

/** Gates of one name take signals in order; a signal sent under a key enters the inbox once. */
export const signalsOnceInOrder: Invariant = (evidence) =>
  across(evidence.runs, ({ id, journal }) => {
    const notes = new Map(inboxOf(evidence, journal).map((record) => [record.seq, record]));
    const taken = recordsOf(evidence, journal).flatMap(({ kind, data }) =>
      kind === "gate.resolved" && data.note !== undefined ? [notes.get(data.note)!] : [],
    );
    const keys = [...notes.values()].flatMap((note) => (note.kind === "signal.sent" ? (note.data.key ?? []) : []));
    return combine([
      each(["left", "right"], (gate) => {
        const seqs = taken
          .filter((note) => note.kind === "signal.sent" && note.data.name === gate)
          .map(({ seq }) => seq);
        if (seqs.length < 2) return exempt;
        return seqs.every((seq, k) => k === 0 || seq > seqs[k - 1]!)
          ? []
          : [`${id}: ${gate} took the signals ${seqs.join(", ")}`];
      }),
      each(
        Map.groupBy(keys, (key) => key),
        ([key, same]) => (same.length > 1 ? [`${id}: the signal "${key}" entered its inbox ${same.length} times`] : []),
      ),
    ]);
  });

/** A parent ends after its children. */
export const parentsOutliveChildren: Invariant = ({ runs, feed }) => {
  const ends = new Map<number, number>();
  for (const [k, record] of feed.entries()) {
    if (record.in === "journal" && record.kind === "run.ended" && !ends.has(record.journal))
      ends.set(record.journal, k);
  }
  return each(runs, ({ id, journal, parent }) => {
    const above = parent === null ? undefined : ends.get(parent);
    if (above === undefined) return exempt;
    const parentId = runs.find((run) => run.journal === parent)?.id;
    return (ends.get(journal) ?? Number.POSITIVE_INFINITY) > above ? [`${parentId} ended before its child ${id}`] : [];
  });
};

/** Reserved and spent amounts never exceed the cap, and open runs hold exactly what is reserved. */
export const budgetsHold: Invariant = ({ budgets, runs, feed }) =>
  each(budgets, ({ run, cap, reserved, spent }) => {
    const root = runs.find(({ id }) => id === run)!.journal;
    const held = new Map<number, number>();
    const hold = (journal: number, amount: number): void => void held.set(journal, (held.get(journal) ?? 0) + amount);
    const all = (): number => [...held.values()].reduce((sum, amount) => sum + amount, 0);
    const faults: string[] = [];
    let [gone, uses] = [0, 0];
    for (const { kind, data, journal, seq } of feed) {
      if (kind === "budget.charged" && data.rootRun === root) {
        hold(journal, -(data.reserved.usd ?? 0));
        gone += data.spent.usd ?? 0;
      }
      if (kind === "budget.presumed" && data.rootRun === root) gone += data.amounts.usd ?? 0;
      if (kind !== "budget.reserved" || data.rootRun !== root) continue;
      uses++;
      hold(journal, data.amounts.usd ?? 0);
      if (cap !== null && gone + all() > cap)
        faults.push(`${run}: with record ${seq} of ${journal} ${gone + all()} of ${cap} are taken`);
    }
    for (const [journal, amount] of held) {
      const holder = runs.find((one) => one.journal === journal)!;
      if (amount !== 0 && holder.endedAt !== null) faults.push(`${holder.id} has ended and still holds ${amount}`);
    }
    if (all() !== reserved) faults.push(`${run}: ${reserved} is reserved, its runs hold ${all()}`);
    if (gone !== spent) faults.push(`${run}: ${spent} is spent, its runs were charged ${gone}`);
    return uses === 0 && faults.length === 0 ? exempt : faults;
  });

/** A run ends as it was decided, compensated or not. */
export const endsAsDecided: Invariant = (evidence) =>
  each(mainJournals(evidence), ({ id, records }) => {
    const decided = records.find(({ kind }) => kind === "run.decided");
    const end = records.at(-1);
    if (decided?.kind !== "run.decided" || end?.kind !== "run.ended") return exempt;
    const expected = {
      completed: ["COMPLETED"],
      failed: ["FAILED", "COMPENSATED"],
      cancelled: ["CANCELLED", "COMPENSATED"],
    };
    return expected[decided.data.cause].includes(end.data.status)
      ? []
      : [`${id} was ${decided.data.cause} and ended as ${end.data.status}`];
  });
