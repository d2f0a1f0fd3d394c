import { type UnservedEffect, type UnservedWorkflow, unservedEffects, unservedWorkflows } from "../../engine/served.ts";
import type { LeaseView } from "../../model/lease.ts";
import type { RunStatus } from "../../model/machines.ts";
import type { Store } from "../../store/contract/store.ts";

/** How a tenant is doing, in a few reads that look at nothing finished. */
export interface StoreOverview {
  readonly runs: Readonly<Partial<Record<RunStatus, number>>>;
  readonly doubts: {
    readonly effectsUnknown: number;
    readonly effectsStuck: number;
    readonly obligationsUnknown: number;
    readonly obligationsStuck: number;
  };
  readonly openGates: number;
  readonly held: number;
  readonly stale: readonly LeaseView[];
  /** Workflows of runs that nobody has taken for ten seconds, and that no process has reported. */
  readonly unserved: readonly UnservedWorkflow[];
  /** Effects that wait for a reactor, and whose definition no process has. */
  readonly unservedEffects: readonly UnservedEffect[];
  /** Reactors for which something is due now. */
  readonly overdue: readonly string[];
  /** Runs, effects and obligations that a person, or the reconciler, must see to. */
  readonly inDoubt: number;
  /** Counts are cut here: a page of the store. */
  readonly full: number;
}

const live: readonly RunStatus[] = ["RUNNABLE", "RUNNING", "WAITING", "ENDING", "COMPENSATING", "STUCK"];

export async function readOverview(store: Store, tenant: string): Promise<StoreOverview> {
  const full = store.limits.pageRows;
  const count = async (rows: Promise<readonly unknown[]>): Promise<number> => (await rows).length;
  const effects = (role: "effect" | "compensation", status: string): Promise<number> =>
    count(store.read.effects(tenant, { role, status: [status], limit: full }));
  const [runs, effectsUnknown, effectsStuck, obligationsUnknown, obligationsStuck, openGates, leases, agenda] =
    await Promise.all([
      Promise.all(live.map((status) => count(store.read.runs(tenant, { status: [status], limit: full })))),
      effects("effect", "UNKNOWN"),
      effects("effect", "STUCK"),
      effects("compensation", "UNKNOWN"),
      effects("compensation", "STUCK"),
      count(store.read.gates(tenant, { open: true, limit: full })),
      store.read.leases(tenant, { held: true, limit: full }),
      store.read.agenda(tenant),
    ]);
  const counted = Object.fromEntries(live.map((status, k) => [status, runs[k]!])) as StoreOverview["runs"];
  const overdue = agenda.flatMap(({ reactor = "recovery", inMs }) => (inMs === 0 ? [reactor] : []));
  return {
    runs: counted,
    doubts: { effectsUnknown, effectsStuck, obligationsUnknown, obligationsStuck },
    openGates,
    held: leases.length,
    stale: leases.filter(({ state }) => state === "EXPIRED" || state === "DOOMED"),
    unserved: await unservedWorkflows(store, tenant),
    unservedEffects: await unservedEffects(store, tenant),
    overdue: [...new Set(overdue)],
    inDoubt: (counted.STUCK ?? 0) + effectsUnknown + effectsStuck + obligationsUnknown + obligationsStuck,
    full,
  };
}
