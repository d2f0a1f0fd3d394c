import type { EffectRow } from "../../src/model/rows.ts";
import type { FeedRecord } from "../../src/store/contract/store.ts";
import type { Evidence } from "../evidence.ts";
import { type Invariant, inboxOf, mainJournals } from "./journal.ts";

const inverses = ({ effects }: Evidence, run: number): EffectRow[] =>
  effects.filter((effect) => effect.run === run && effect.role === "compensation" && !effect.surplus);

/** The run, its parent, and so on up to the root. */
const lineOf = (runs: Evidence["runs"], journal: number): Evidence["runs"] => {
  const run = runs.find((one) => one.journal === journal)!;
  return run.parent === null ? [run] : [run, ...lineOf(runs, run.parent)];
};

export const undoneExactly: Invariant = (evidence) =>
  evidence.runs.flatMap(({ id, journal, status }) => {
    const { runs } = evidence;
    const owed = inverses(evidence, journal);
    const called = (effect: EffectRow): boolean =>
      evidence.calls.some((call) => call.role === "compensation" && call.key === effect.key);
    const faults: string[] = [];
    // A run that has undone its work has undone what its children did, too.
    if (lineOf(runs, journal).some((above) => above.status === "COMPENSATED")) {
      const left = owed.filter((effect) => effect.status !== "COMPENSATED");
      faults.push(...left.map((effect) => `${id} is COMPENSATED, but ${effect.name} is ${effect.status}`));
    }
    if (status === "FAILED" || status === "CANCELLED") {
      const left = owed.filter((effect) => effect.status !== "COMPENSATED" && effect.status !== "DISCHARGED");
      faults.push(...left.map((effect) => `${id} is ${status} and still owes ${effect.name} (${effect.status})`));
    }
    if (lineOf(runs, journal).every((above) => above.status === "COMPLETED")) {
      faults.push(...owed.filter(called).map((effect) => `${id} ended well, but ${effect.name} was undone`));
      const kept = owed.filter((effect) => effect.status !== "DISCHARGED");
      faults.push(...kept.map((effect) => `${id} ended well, but ${effect.name} is still ${effect.status}`));
    }
    return faults;
  });

/** Every confirmed act that can be undone has its obligation from the same moment. */
export const obligationsArmed: Invariant = ({ effects }) =>
  effects
    .filter(
      ({ role, status, name }) => role === "effect" && status === "CONFIRMED" && /^(undone|blind)/.test(name ?? ""),
    )
    .filter(
      (act) =>
        !effects.some((other) => other.role === "compensation" && other.run === act.run && other.pos === act.pos),
    )
    .map(({ name, key }) => `${name} (${key}) is confirmed, and nothing would undo it`);

export const newestFirst: Invariant = (evidence) =>
  evidence.runs.flatMap(({ id, journal }) => {
    const keys = new Map(inverses(evidence, journal).map(({ key, pos }) => [key, pos]));
    const order = [
      ...new Set(
        evidence.calls.filter((call) => call.role === "compensation" && keys.has(call.key)).map(({ key }) => key),
      ),
    ];
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

export const timersKeepTime: Invariant = (evidence) =>
  evidence.runs.flatMap((run) => {
    const faults: string[] = [];
    const due = new Map<string, number>();
    for (const record of evidence.feed) {
      if (record.in !== "journal" || record.journal !== run.journal) continue;
      if (record.kind === "timer.set")
        due.set(`${record.data.pos} ${record.data.purpose}`, record.data.until ?? record.at + record.data.inMs);
      if (record.kind === "gate.opened" && record.data.timeoutMs !== undefined) {
        due.set(`${record.data.pos} gate_timeout`, record.at + record.data.timeoutMs);
      }
    }
    const fired = new Set<string>();
    for (const record of evidence.feed.filter(({ journal }) => journal === run.journal)) {
      const name = firedBy(record);
      if (name === undefined) continue;
      if (fired.has(name)) faults.push(`${run.id}: timer ${name} fired twice`);
      fired.add(name);
      if (record.at < (due.get(name) ?? Number.POSITIVE_INFINITY)) faults.push(`${run.id}: timer ${name} fired early`);
    }
    const set = evidence.timers.filter((timer) => timer.run === run.journal && timer.status === "SET");
    if (set.length > 0 && evidence.plan.heals) faults.push(`${run.id}: ${set.length} timers never fired`);
    return faults;
  });

export const signalsOnceInOrder: Invariant = (evidence) =>
  evidence.runs.flatMap((run) => {
    const notes = new Map(inboxOf(evidence, run.journal).map((record) => [record.seq, record]));
    const taken: FeedRecord[] = [];
    for (const record of evidence.feed) {
      if (
        record.in === "journal" &&
        record.journal === run.journal &&
        record.kind === "gate.resolved" &&
        record.data.note !== undefined
      ) {
        taken.push(notes.get(record.data.note)!);
      }
    }
    const faults: string[] = [];
    for (const gate of ["left", "right"]) {
      const seqs = taken.filter((note) => note.kind === "signal.sent" && note.data.name === gate).map(({ seq }) => seq);
      if (!seqs.every((seq, k) => k === 0 || seq > seqs[k - 1]!))
        faults.push(`${run.id}: ${gate} took the signals ${seqs.join(", ")}`);
    }
    const keys = [...notes.values()].flatMap((note) => (note.kind === "signal.sent" ? (note.data.key ?? []) : []));
    if (new Set(keys).size < keys.length) faults.push(`${run.id}: a signal's key is in its inbox twice`);
    return faults;
  });

/** A parent ends after its children, never before. */
export const familiesEndTogether: Invariant = ({ runs, feed }) => {
  const ends = new Map<number, number>();
  for (const [k, record] of feed.entries()) {
    if (record.in === "journal" && record.kind === "run.ended" && !ends.has(record.journal))
      ends.set(record.journal, k);
  }
  return runs.flatMap(({ id, journal, parent }) => {
    const above = parent === null ? undefined : ends.get(parent);
    const parentId = runs.find((run) => run.journal === parent)?.id;
    return above !== undefined && (ends.get(journal) ?? Number.POSITIVE_INFINITY) > above
      ? [`${parentId} has ended, its child ${id} lived on`]
      : [];
  });
};

/** Never more than the cap, at any moment; and exactly what live runs hold is reserved. */
export const budgetsHold: Invariant = ({ budgets, runs, feed }) =>
  budgets.flatMap(({ run, cap, reserved, spent }) => {
    const root = runs.find(({ id }) => id === run)!.journal;
    const held = new Map<number, number>();
    const hold = (journal: number, amount: number): void => void held.set(journal, (held.get(journal) ?? 0) + amount);
    const all = (): number => [...held.values()].reduce((sum, amount) => sum + amount, 0);
    const faults: string[] = [];
    let gone = 0;
    for (const { kind, data, journal, seq } of feed) {
      if (kind === "budget.charged" && data.of === root) {
        hold(journal, -(data.reserved.usd ?? 0));
        gone += data.spent.usd ?? 0;
      }
      if (kind !== "budget.reserved" || data.of !== root) continue;
      hold(journal, data.amounts.usd ?? 0);
      if (gone + all() > cap)
        faults.push(`${run}: with record ${seq} of ${journal} ${gone + all()} of ${cap} are taken`);
    }
    for (const [journal, amount] of held) {
      const holder = runs.find((one) => one.journal === journal)!;
      if (amount !== 0 && holder.endedAt !== null) faults.push(`${holder.id} has ended and still holds ${amount}`);
    }
    if (all() !== reserved) faults.push(`${run}: ${reserved} is reserved, its runs hold ${all()}`);
    return gone === spent ? faults : [...faults, `${run}: ${spent} is spent, its runs were charged ${gone}`];
  });

/** What was decided is what it ends as; undone or not. */
export const endsAsDecided: Invariant = (evidence) =>
  mainJournals(evidence).flatMap(({ id, records }) => {
    const decided = records.find(({ kind }) => kind === "run.decided");
    const end = records.at(-1);
    if (decided?.kind !== "run.decided" || end?.kind !== "run.ended") return [];
    const expected = {
      completed: ["COMPLETED"],
      failed: ["FAILED", "COMPENSATED"],
      cancelled: ["CANCELLED", "COMPENSATED"],
    };
    return expected[decided.data.cause].includes(end.data.status)
      ? []
      : [`${id} was ${decided.data.cause} and ended as ${end.data.status}`];
  });
