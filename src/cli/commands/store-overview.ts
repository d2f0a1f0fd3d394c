import { type UnservedEffect, type UnservedWorkflow, unservedEffects, unservedWorkflows } from "../../engine/served.ts";
import type { LeaseView } from "../../model/lease.ts";
import type { RunStatus } from "../../model/machines.ts";
import type { QueueView, Store } from "../../store/contract/store.ts";
import { readHolders, withHolders } from "../../store/read-all.ts";
import { readQueues } from "../../store/read-queues.ts";

/** State of a tenant, from a few reads that skip finished runs. */
export interface StoreOverview {
  readonly runs: Readonly<Partial<Record<RunStatus, number>>>;
  readonly inDoubt: {
    readonly effectsUnknown: number;
    readonly effectsStuck: number;
    readonly obligationsUnknown: number;
    readonly obligationsStuck: number;
  };
  readonly openGates: number;
  readonly queues: readonly QueueView[];
  readonly held: number;
  readonly stale: readonly LeaseView[];
  /** Runs whose holder renews but has made no progress for ten minutes. */
  readonly silent: readonly LeaseView[];
  /** Workflows whose runs have been unclaimed for ten seconds and that no process has reported. */
  readonly unserved: readonly UnservedWorkflow[];
  /** Effects that wait for a reactor and that no process defines. */
  readonly unservedEffects: readonly UnservedEffect[];
  /** Reactors with work that is due now. */
  readonly overdue: readonly string[];
  /** Number of runs, effects and obligations that wait for an operator or the reconciler. */
  readonly needsAttention: number;
  /** Counts stop here: the rows of one page of the store. */
  readonly maxCount: number;
  /** Store time. */
  readonly now: number;
}

/** Longer than most steps take, and short enough that a hanging run is found on the same day. */
const silentMs = 600_000;

const isSilent = ({ kind, state, progressAgoMs }: LeaseView): boolean =>
  kind === "run" && state === "HELD" && progressAgoMs > silentMs;

export const liveStatuses: readonly RunStatus[] = [
  "QUEUED",
  "RUNNABLE",
  "RUNNING",
  "WAITING",
  "ENDING",
  "COMPENSATING",
  "STUCK",
];

export async function readOverview(store: Store, tenant: string): Promise<StoreOverview> {
  const maxCount = store.limits.pageRows;
  const count = async (rows: Promise<readonly unknown[]>): Promise<number> => (await rows).length;
  const effects = (role: "effect" | "compensation", status: string): Promise<number> =>
    count(store.read.effects(tenant, { role, status: [status], limit: maxCount }));
  const [runs, effectsUnknown, effectsStuck, obligationsUnknown, obligationsStuck, openGates, holders, some, agenda] =
    await Promise.all([
      Promise.all(liveStatuses.map((status) => count(store.read.runs(tenant, { status: [status], limit: maxCount })))),
      effects("effect", "UNKNOWN"),
      effects("effect", "STUCK"),
      effects("compensation", "UNKNOWN"),
      effects("compensation", "STUCK"),
      count(store.read.gates(tenant, { open: true, limit: maxCount })),
      readHolders(store.read, tenant),
      store.read.leases(tenant, { held: true, limit: maxCount }),
      store.read.agenda(tenant),
    ]);
  const leases = withHolders(holders, some);
  const counted = Object.fromEntries(liveStatuses.map((status, k) => [status, runs[k]!])) as StoreOverview["runs"];
  const overdue = agenda.flatMap(({ reactor = "recovery", dueInMs }) => (dueInMs === 0 ? [reactor] : []));
  return {
    runs: counted,
    inDoubt: { effectsUnknown, effectsStuck, obligationsUnknown, obligationsStuck },
    openGates,
    queues: await readQueues(store.read, tenant),
    held: leases.length,
    stale: leases.filter(({ state }) => state === "EXPIRED" || state === "DOOMED"),
    silent: leases.filter(isSilent),
    unserved: await unservedWorkflows(store, tenant),
    unservedEffects: await unservedEffects(store, tenant),
    overdue: [...new Set(overdue)],
    needsAttention: (counted.STUCK ?? 0) + effectsUnknown + effectsStuck + obligationsUnknown + obligationsStuck,
    maxCount,
    now: await store.read.now(),
  };
}
