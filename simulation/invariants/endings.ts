import type { EffectRow } from "../../src/model/rows.ts";
import type { FeedRecord } from "../../src/store/contract/store.ts";
import type { Evidence } from "../evidence.ts";
import { inboxOf, mainJournals, recordsOf } from "./journal.ts";
import { across, comesToRest, each, exempt, type Invariant, nothing, together } from "./judge.ts";

const inverses = ({ effects }: Evidence, run: number): EffectRow[] =>
  effects.filter((effect) => effect.run === run && effect.role === "compensation" && !effect.surplus);

/** The run, its parent, and so on up to the root. */
const lineOf = (runs: Evidence["runs"], journal: number): Evidence["runs"] => {
  const run = runs.find((one) => one.journal === journal)!;
  return run.parent === null ? [run] : [run, ...lineOf(runs, run.parent)];
};

export const compensatedExactly: Invariant = (evidence) =>
  across(evidence.runs, ({ id, journal, status }) => {
    const line = lineOf(evidence.runs, journal);
    // A run that has undone its work has undone what its children did, too.
    const undone = line.some((above) => above.status === "COMPENSATED");
    const endedBadly = status === "FAILED" || status === "CANCELLED";
    const endedWell = line.every((above) => above.status === "COMPLETED");
    if (!undone && !endedBadly && !endedWell) return nothing;
    return each(inverses(evidence, journal), ({ key, name, status: is }) => {
      const faults: string[] = [];
      if (undone && is !== "COMPENSATED") faults.push(`${id} is COMPENSATED, but ${name} is ${is}`);
      if (endedBadly && is !== "COMPENSATED" && is !== "DISCHARGED")
        faults.push(`${id} is ${status} and still owes ${name} (${is})`);
      if (endedWell && is !== "DISCHARGED") faults.push(`${id} ended well, but ${name} is still ${is}`);
      if (endedWell && evidence.calls.some((call) => call.role === "compensation" && call.key === key))
        faults.push(`${id} ended well, but ${name} was undone`);
      return faults;
    });
  });

/** Every confirmed act that can be undone has its obligation from the same moment. */
export const obligationsArmed: Invariant = ({ effects }) =>
  each(effects, ({ role, status, name, key, run, pos }) => {
    if (role !== "effect" || status !== "CONFIRMED" || !/^(undone|blind)/.test(name ?? "")) return exempt;
    return effects.some((other) => other.role === "compensation" && other.run === run && other.pos === pos)
      ? []
      : [`${name} (${key}) is confirmed, and nothing would undo it`];
  });

/** In a run that has undone several things. */
export const newestFirst: Invariant = (evidence) =>
  each(evidence.runs, ({ id, journal }) => {
    const keys = new Map(inverses(evidence, journal).map(({ key, pos }) => [key, pos]));
    const order = [
      ...new Set(
        evidence.calls.filter((call) => call.role === "compensation" && keys.has(call.key)).map(({ key }) => key),
      ),
    ];
    if (order.length < 2) return exempt;
    const positions = order.map((key) => keys.get(key)!);
    return positions.every((pos, k) => k === 0 || pos < positions[k - 1]!)
      ? []
      : [`${id} undid in the order ${positions.join(", ")}`];
  });

/** The timer that this record fires: by a note, or by the holder of the run itself. */
function firedBy(record: FeedRecord): string | undefined {
  if (record.kind === "timer.fired" && record.in === "inbox") return `${record.data.pos} ${record.data.purpose}`;
  if (record.kind === "sleep.ended" && record.data.fired) return `${record.data.pos} sleep`;
  return undefined;
}

export const timersNeverEarly: Invariant = (evidence) =>
  across(evidence.runs, ({ id, journal }) => {
    const due = new Map<string, number>();
    for (const { kind, data, at } of recordsOf(evidence, journal)) {
      if (kind === "timer.set") due.set(`${data.pos} ${data.purpose}`, data.until ?? at + data.inMs);
      if (kind === "gate.opened" && data.timeoutMs !== undefined) {
        due.set(`${data.pos} gate_timeout`, at + data.timeoutMs);
      }
    }
    const fired = new Set<string>();
    const own = evidence.feed.filter((record) => record.journal === journal);
    return together([
      each(own, (record) => {
        const timer = firedBy(record);
        if (timer === undefined) return exempt;
        const faults = fired.has(timer) ? [`${id}: timer ${timer} fired twice`] : [];
        fired.add(timer);
        const early = record.at < (due.get(timer) ?? Number.POSITIVE_INFINITY);
        return early ? [...faults, `${id}: timer ${timer} fired early`] : faults;
      }),
      each(comesToRest(evidence) ? evidence.timers : [], ({ run, status, pos, purpose }) => {
        if (run !== journal) return exempt;
        return status === "SET" ? [`${id}: timer ${pos} ${purpose} never fired`] : [];
      }),
    ]);
  });

/** Signals that gates of one name took, and signals that were sent under a key. */
export const signalsOnceInOrder: Invariant = (evidence) =>
  across(evidence.runs, ({ id, journal }) => {
    const notes = new Map(inboxOf(evidence, journal).map((record) => [record.seq, record]));
    const taken = recordsOf(evidence, journal).flatMap(({ kind, data }) =>
      kind === "gate.resolved" && data.note !== undefined ? [notes.get(data.note)!] : [],
    );
    const keys = [...notes.values()].flatMap((note) => (note.kind === "signal.sent" ? (note.data.key ?? []) : []));
    return together([
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
        ([key, same]) => (same.length > 1 ? [`${id}: the signal "${key}" is in its inbox ${same.length} times`] : []),
      ),
    ]);
  });

/** A parent ends after its children, never before. */
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
    return (ends.get(journal) ?? Number.POSITIVE_INFINITY) > above
      ? [`${parentId} has ended, its child ${id} lived on`]
      : [];
  });
};

/** Never more than the cap, at any moment; and exactly what live runs hold is reserved. */
export const budgetsHold: Invariant = ({ budgets, runs, feed }) =>
  each(budgets, ({ run, cap, reserved, spent }) => {
    const root = runs.find(({ id }) => id === run)!.journal;
    const held = new Map<number, number>();
    const hold = (journal: number, amount: number): void => void held.set(journal, (held.get(journal) ?? 0) + amount);
    const all = (): number => [...held.values()].reduce((sum, amount) => sum + amount, 0);
    const faults: string[] = [];
    let [gone, uses] = [0, 0];
    for (const { kind, data, journal, seq } of feed) {
      if (kind === "budget.charged" && data.of === root) {
        hold(journal, -(data.reserved.usd ?? 0));
        gone += data.spent.usd ?? 0;
      }
      if (kind !== "budget.reserved" || data.of !== root) continue;
      uses++;
      hold(journal, data.amounts.usd ?? 0);
      if (gone + all() > cap)
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

/** What was decided is what it ends as; undone or not. */
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
