import { erasedBody, erasedResult, erasedText } from "../../../model/erasure.ts";
import type { Limits } from "../../../model/limits.ts";
import type { RecordData } from "../../../model/records.ts";
import { decodeRecord } from "../../decode-rows.ts";
import { queryPage } from "../paging.ts";
import { type Plan, query, queryRows } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";

/** Rows of one transaction: on SQLite, every other writer waits for it. */
export const rowsAtOnce = 500;

/** Where the next part begins: in this run, journal (negative: its inbox; 0: after all of them) and after this number. */
export interface ErasePlace {
  readonly run: number;
  readonly journal: number;
  readonly seq: number;
}

/** What one transaction may still erase, and what it has erased. */
export interface EraseBudget {
  rows: number;
  bytes: number;
  records: number;
  /** Bytes that no longer count as used. */
  freed: number;
}

type StoredRow = RowOf<"erase.page">;

/** Erases records from a place on, but the first of the run. Returns where to continue; undefined: after all of them. */
export function* eraseRecords(from: ErasePlace, budget: EraseBudget, limits: Limits): Plan<ErasePlace | undefined> {
  const { run } = from;
  if (from.journal === 0) return undefined;
  let { journal, seq } = from;
  for (;;) {
    const rows = yield* queryRows("erase.journals", { run, from: Math.abs(journal), limit: rowsAtOnce });
    for (const row of rows) {
      const own = Number(row.journal);
      if (Math.abs(journal) !== own) [journal, seq] = [own, 0];
      for (const part of journal < 0 ? [-own] : [own, -own]) {
        if (part !== journal) [journal, seq] = [part, 0];
        const stop = yield* eraseJournal({ run, journal, seq }, budget, limits);
        if (stop !== undefined) return stop;
      }
      journal = own + 1;
      seq = 0;
    }
    if (rows.length < rowsAtOnce) return undefined;
  }
}

function* eraseJournal(from: ErasePlace, budget: EraseBudget, limits: Limits): Plan<ErasePlace | undefined> {
  const { run, journal } = from;
  for (let above = Math.max(from.seq, journal === run ? 1 : 0); ; ) {
    if (budget.rows <= 0 || budget.bytes <= 0) return { run, journal, seq: above };
    const few = { limit: Math.min(budget.rows, limits.pageRows), pageBytes: limits.pageBytes };
    const rows = yield* queryPage("erase.page", { journal, above, ...few });
    const last = rows.at(-1);
    if (last === undefined) return undefined;
    budget.rows -= rows.length;
    for (const { body } of rows) budget.bytes -= body.length;
    yield* writeErased(journal, rows, budget);
    if (journal > 0) yield* eraseRows(run, rows);
    if (rows.more !== true) return undefined;
    above = Number(last.seq);
  }
}

/** Writes back what erasing changes. */
export function* writeErased(journal: number, rows: readonly StoredRow[], budget: EraseBudget): Plan<void> {
  const changed = rows.flatMap(({ seq, kind, body, counted }) => {
    const erased = erasedBody(kind, body);
    if (erased === body) return [];
    if (counted) budget.freed += Buffer.byteLength(body) - Buffer.byteLength(erased);
    return [[Number(seq), erased] as const];
  });
  if (changed.length === 0) return;
  budget.records += changed.length;
  yield* query("erase.records", { journal, rows: JSON.stringify(changed) });
}

/** The rows that the records explain hold the same payloads: tables stay the fold of the records. */
function* eraseRows(run: number, rows: readonly StoredRow[]): Plan<void> {
  const effects: (readonly [pos: number, sub: number])[] = [];
  const gates: number[] = [];
  const replies = new Map<number, string>();
  for (const row of rows) {
    switch (row.kind) {
      case "effect.intended":
        effects.push([dataOf<"effect.intended">(row).pos, 0]);
        break;
      case "obligation.armed":
      case "obligation.surplus": {
        const { pos, sub } = dataOf<"obligation.armed" | "obligation.surplus">(row);
        effects.push([pos, sub]);
        break;
      }
      case "gate.opened":
        gates.push(dataOf<"gate.opened">(row).pos);
        break;
      case "reply.sent": {
        const { note, error } = dataOf<"reply.sent">(row);
        if (note !== undefined) replies.set(note, erasedResult(error === undefined ? '{"value":1}' : '{"error":1}'));
        break;
      }
      case "signal.refused": {
        const { note, asks } = dataOf<"signal.refused">(row);
        if (asks === true) replies.set(note, erasedResult('{"refused":""}'));
        break;
      }
      default:
    }
  }
  if (effects.length > 0) yield* eraseEffects(run, effects);
  if (gates.length > 0) yield* query("erase.gates", { run, positions: JSON.stringify(gates), erased: erasedText });
  if (replies.size > 0) yield* query("erase.replies", { run, rows: JSON.stringify([...replies]) });
}

function* eraseEffects(run: number, keys: readonly (readonly [number, number])[]): Plan<void> {
  const found = yield* queryRows("erase.results", { run, rows: JSON.stringify(keys) });
  const rows = found.map(({ pos, sub, outcome }) => [
    Number(pos),
    Number(sub),
    outcome === null ? null : erasedResult(outcome),
  ]);
  yield* query("erase.effects", { run, rows: JSON.stringify(rows), erased: erasedText });
}

/** The record as it was before or after its erasure: the fields that are read here stay. */
function dataOf<
  K extends
    | "effect.intended"
    | "obligation.armed"
    | "obligation.surplus"
    | "gate.opened"
    | "reply.sent"
    | "signal.refused",
>({ seq, kind, body }: StoredRow): RecordData<K> {
  return decodeRecord({ journal: 0, seq: Number(seq), token: 0n, at: 0, kind, body }).data as RecordData<K>;
}
