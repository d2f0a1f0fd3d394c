import type { LeaseView } from "../src/model/lease.ts";
import type { EffectRow, GateRow, ScheduleRow, TimerRow } from "../src/model/rows.ts";
import type { RunView } from "../src/store/contract/store.ts";
import type { SharedStore } from "./shared-store.ts";

/** The tables at one moment. A simulation is small: one page holds each of them. */
export interface OrphanReport {
  readonly runs: readonly RunView[];
  readonly leases: readonly LeaseView[];
  readonly effects: readonly EffectRow[];
  /** Open gates. */
  readonly gates: readonly GateRow[];
  readonly timers: readonly TimerRow[];
  readonly schedules: readonly ScheduleRow[];
}

const emptyReport: OrphanReport = { runs: [], leases: [], effects: [], gates: [], timers: [], schedules: [] };

/** Reads the tables for all observers, and only if something was written since the last read. */
export class OrphanWatch {
  readonly #shared: SharedStore;
  readonly #tenant: string;
  /** Converts a time of the store to what it would be if its clock had never been set. */
  readonly #right: (ms: number) => number;
  #seen: { readonly changes: number; readonly report: OrphanReport } | undefined;
  #judged: { readonly report: OrphanReport; readonly orphans: readonly string[] } | undefined;

  constructor(shared: SharedStore, tenant: string, right: (ms: number) => number = (ms) => ms) {
    this.#shared = shared;
    this.#tenant = tenant;
    this.#right = right;
  }

  async read(): Promise<OrphanReport> {
    const { changes, store } = this.#shared;
    if (this.#seen?.changes === changes) return this.#seen.report;
    if (this.#shared.away) return this.#seen?.report ?? emptyReport;
    const { read } = store;
    const tenant = this.#tenant;
    // SQLite answers each query before it returns, so nothing is written in between.
    const [runs, leases, effects, gates, timers, schedules] = await Promise.all([
      read.runs(tenant),
      read.leases(tenant),
      read.effects(tenant),
      read.gates(tenant, { open: true }),
      read.timers(tenant),
      read.schedules(tenant),
    ]);
    const right = this.#right;
    const report = {
      runs: runs.map((run) => ({
        ...run,
        createdAt: right(run.createdAt),
        endedAt: run.endedAt === null ? null : right(run.endedAt),
      })),
      leases,
      effects: effects.map((effect) => ({
        ...effect,
        createdAt: right(effect.createdAt),
        changedAt: right(effect.changedAt),
      })),
      gates,
      timers: timers.map((timer) => ({ ...timer, dueAt: right(timer.dueAt) })),
      schedules,
    };
    this.#seen = { changes, report };
    return report;
  }

  /** Open runs that will never be driven again. There must be none at any moment, not only at the end. */
  async orphans(): Promise<readonly string[]> {
    const report = await this.read();
    if (this.#judged?.report !== report) this.#judged = { report, orphans: orphansIn(report) };
    return this.#judged.orphans;
  }

  /** No run or effect is held or queued, and no timer is set: no run can continue. */
  async quiet(): Promise<boolean> {
    const { leases, timers, schedules } = await this.read();
    return (
      leases.every(
        ({ kind, owner, nextReactor, slot }) =>
          kind === "name" || (owner === null && nextReactor === null && slot !== "QUEUED"),
      ) &&
      timers.every(({ status }) => status !== "SET") &&
      schedules.every(({ nextAt, paused }) => nextAt === null || paused)
    );
  }
}

function orphansIn({ runs, leases, gates, timers, effects }: OrphanReport): string[] {
  const awaited = new Set<number>();
  const held = new Map(
    leases.map(({ journal, owner, nextReactor, slot }) => [
      journal,
      owner !== null || nextReactor !== null || slot === "QUEUED",
    ]),
  );
  const live = runs.filter(({ endedAt }) => endedAt === null);
  const gated = new Set(gates.map(({ run }) => run));
  const timed = new Set(timers.flatMap(({ run, status }) => (status === "SET" ? [run] : [])));
  // An effect that waits for an operator is no excuse: its run must be STUCK.
  const inProgress = new Set(effects.flatMap(({ run, item }) => (item !== null && held.get(item) ? [run] : [])));
  for (const { journal, status, parent, endedAt } of runs) {
    const effect = inProgress.has(journal);
    // Obligations of a completed child concern its ancestors.
    for (let above = effect ? parent : null; above !== null; ) {
      awaited.add(above);
      above = runs.find((one) => one.journal === above)?.parent ?? null;
    }
    if (endedAt !== null) continue;
    const wait = gated.has(journal) || timed.has(journal) || effect;
    if (status === "STUCK" || held.get(journal) || wait) awaited.add(journal);
  }
  // A run that waits for a child is fine if the child is.
  for (let changed = true; changed; ) {
    changed = false;
    for (const { journal, parent } of live) {
      if (!awaited.has(journal) || parent === null || awaited.has(parent)) continue;
      awaited.add(parent);
      changed = true;
    }
  }
  return live
    .filter(({ journal }) => !awaited.has(journal))
    .map(({ id, status }) => `${id} is ${status}, and will never be driven again`);
}
