import { defined } from "../../base/defined.ts";
import type { Migration, Step } from "./migrations.ts";

/** What one statement of a pending migration would do to running processes. */
export interface PlannedStep {
  readonly migration: string;
  readonly does: string;
  /** The table, if it exists already. */
  readonly table?: string;
  readonly rows?: number;
  /** Statements of other processes that wait for it. */
  readonly blocks: "nothing" | "writes" | "all access" | "single rows";
  /** Estimate for a machine with two cores; 0: a moment. */
  readonly seconds: number;
}

/** Rows per second, measured with five million rows and under load; see docs/upgrading.md. */
const pace = { concurrently: 80_000, index: 300_000, batches: 20_000, rewrite: 200_000 };

type Form = readonly [RegExp, PlannedStep["blocks"], number | undefined];

/** The number is the pace in rows per second. */
const forms: readonly Form[] = [
  [/^create (?:unique )?index concurrently \w+ on (?:tape\.)?(\w+)/, "nothing", pace.concurrently],
  [/^drop index concurrently/, "nothing", undefined],
  [/^create (?:unique )?index (?:if not exists )?\w+ on (?:tape\.)?(\w+)/, "writes", pace.index],
  [/^alter table (?:tape\.)?(\w+) alter column \w+ type/, "all access", pace.rewrite],
  [/^alter table (?:tape\.)?(\w+)/, "all access", undefined],
  [/^drop (?:index|table)/, "all access", undefined],
  [/^update (?:tape\.)?(\w+)/, "single rows", pace.batches],
  [/^delete from (?:tape\.)?(\w+)/, "single rows", pace.batches],
];

/** `exclusive`: only one process can write at a time (SQLite), so a step that blocks anything blocks all writes. */
export function plannedSteps(
  pending: readonly Migration[],
  rows: ReadonlyMap<string, number>,
  exclusive = false,
): PlannedStep[] {
  return pending.flatMap(({ name, steps }) => {
    const fresh = new Set(steps.flatMap(({ text }) => /^create table (?:tape\.)?(\w+)/.exec(text)?.[1] ?? []));
    return steps.map((step) => planned(name, step, rows, fresh, exclusive));
  });
}

function planned(
  migration: string,
  { text }: Step,
  rows: ReadonlyMap<string, number>,
  fresh: ReadonlySet<string>,
  exclusive: boolean,
): PlannedStep {
  const does = text.replaceAll(/\s+/g, " ").slice(0, 100);
  for (const [form, blocks, perSecond] of forms) {
    const found = form.exec(text);
    if (found === null) continue;
    const table = found[1];
    if (table !== undefined && fresh.has(table)) break;
    const count = table === undefined ? undefined : (rows.get(table) ?? 0);
    return {
      migration,
      does,
      ...defined({ table, rows: count }),
      blocks: exclusive ? "writes" : blocks,
      seconds: perSecond === undefined || count === undefined ? 0 : Math.round(count / perSecond),
    };
  }
  return { migration, does, blocks: "nothing", seconds: 0 };
}
