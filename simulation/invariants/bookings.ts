import type { Evidence } from "../evidence.ts";
import { combine, each, exempt, type Invariant } from "./judge.ts";

/** Committed steps with rows, as the journals have them: the id of the run, and the booking. */
function stepsOf({ feed, runs }: Evidence): string[] {
  const ids = new Map(runs.map(({ journal, id }) => [journal, id]));
  return feed.flatMap((record) => {
    if (record.in !== "journal" || record.kind !== "step.done" || record.data.transaction !== true) return [];
    return [`${ids.get(record.journal)}: ${String(record.data.value)}`];
  });
}

const countOf = (names: readonly string[]): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
};

/** A row of a transactional step exists if and only if the step's record does, and once. */
export const rowsMatchSteps: Invariant = (evidence) => {
  const rows = countOf(evidence.bookings.flatMap(({ run, booking }) => (run === "" ? [] : [`${run}: ${booking}`])));
  const steps = countOf(stepsOf(evidence));
  return each(new Set([...rows.keys(), ...steps.keys()]), (name) => {
    const [inTable, inJournal] = [rows.get(name) ?? 0, steps.get(name) ?? 0];
    return inTable === 1 && inJournal === 1 ? [] : [`${name} has ${inTable} rows and ${inJournal} records`];
  });
};

/** A run that a caller started in its own transaction exists if and only if the row of that transaction does. */
export const runsMatchRows: Invariant = ({ plan, bookings, runs }) => {
  const rows = countOf(bookings.flatMap(({ run, booking }) => (run === "" ? [booking] : [])));
  const started = new Set(runs.map(({ id }) => id));
  return combine([
    each(plan.callers, ({ id, commits }) => {
      const [row, run] = [rows.has(id), started.has(id)];
      if (!row && !run) return commits ? exempt : []; // not due yet, or lost with the store
      if (row !== run) return [`${id} has ${row ? "a row and no run" : "a run and no row"}`];
      return commits && rows.get(id) === 1 ? [] : [`${id} exists although its transaction was rolled back`];
    }),
  ]);
};
