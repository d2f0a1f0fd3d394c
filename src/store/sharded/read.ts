import type { AgendaItem, ReadOps, Store, UnservedWorkflow } from "../contract/store.ts";
import { shardedFeed } from "./feed.ts";
import { forwarded } from "./forward.ts";
import { mergedAdminReads } from "./read-admin.ts";
import type { Answers, Router } from "./router.ts";

const ofTenant = [
  "run",
  "progress",
  "journal",
  "effects",
  "businessKeyOwner",
  "value",
  "lease",
  "runs",
  "gates",
  "timers",
  "schedules",
  "budgets",
  "spend",
  "rate",
  "values",
  "valueHistory",
  "leases",
  "terms",
  "quota",
  "processes",
  "published",
  "reply",
  "chunks",
  "streams",
  "streamParts",
  "blob",
  "queues",
  "queuePartitions",
  "queueSlots",
  "queuePosition",
  "builds",
  "buildRuns",
  "isDrained",
  "deadLetters",
  "subjects",
  "sinks",
  "retention",
  "archived",
  "census",
] as const satisfies readonly (keyof ReadOps)[];

export function shardedRead(router: Router): ReadOps {
  return {
    ...forwarded(ofTenant, (tenant, work) => router.read(tenant, work) as Promise<never>, readsOf),
    ...mergedAdminReads(router),
    ...shardedFeed(router),
    due: (reactor, cap, tenant) => router.read(tenant, (store) => store.read.due(reactor, cap, tenant)),
    async dueTimers(limit, tenant) {
      if (tenant !== undefined) return router.read(tenant, (store) => store.read.dueTimers(limit, tenant));
      return inTurn(await router.all((store) => store.read.dueTimers(limit)), limit);
    },
    async dueSchedules(limit, tenant) {
      if (tenant !== undefined) return router.read(tenant, (store) => store.read.dueSchedules(limit, tenant));
      return inTurn(await router.all((store) => store.read.dueSchedules(limit)), limit);
    },
    async agenda(tenant, workflows, queues, build) {
      if (tenant !== undefined)
        return router.read(tenant, (store) => store.read.agenda(tenant, workflows, queues, build));
      return soonest(await router.all((store) => store.read.agenda(tenant, workflows, queues, build)));
    },
    async unserved(workflows, minLagMs, tenant, build) {
      if (tenant !== undefined)
        return router.read(tenant, (store) => store.read.unserved(workflows, minLagMs, tenant, build));
      return summed(await router.all((store) => store.read.unserved(workflows, minLagMs, tenant, build)));
    },
  };
}

const readsOf = (store: Store): ReadOps => store.read;

/** One row of each shard in turn, so that a long backlog of one does not delay the others. */
function inTurn<T>({ found }: Answers<readonly T[]>, limit: number): T[] {
  const rows: T[] = [];
  const longest = Math.max(...found.map(({ value }) => value.length));
  for (let k = 0; k < longest && rows.length < limit; k++) {
    for (const { value } of found) if (k < value.length && rows.length < limit) rows.push(value[k]!);
  }
  return rows;
}

/** One item for each reactor: when its first work is due, and how late the oldest is. */
function soonest({ found }: Answers<readonly AgendaItem[]>): AgendaItem[] {
  const items = new Map<string | undefined, AgendaItem>();
  for (const item of found.flatMap(({ value }) => value)) {
    const known = items.get(item.reactor) ?? item;
    const dueInMs = Math.min(known.dueInMs, item.dueInMs);
    items.set(item.reactor, { ...item, dueInMs, lateMs: Math.max(known.lateMs, item.lateMs) });
  }
  return [...items.values()];
}

function summed({ found }: Answers<readonly UnservedWorkflow[]>): UnservedWorkflow[] {
  const rows = new Map<string, UnservedWorkflow>();
  for (const row of found.flatMap(({ value }) => value)) {
    const key = JSON.stringify([row.workflow, row.build]);
    const known = rows.get(key);
    const lagMs = Math.max(known?.lagMs ?? 0, row.lagMs);
    rows.set(key, { ...row, runs: row.runs + (known?.runs ?? 0), lagMs });
  }
  return [...rows.values()];
}
