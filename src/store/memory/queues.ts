import type { QueryResult } from "../sql/plan.ts";
import { listed, page, passes, rows, type Statements, type Times } from "./statement.ts";
import { keyOf } from "./table.ts";
import type { LeaseRow, Tables } from "./tables.ts";
import { lateMs } from "./waits.ts";

type Queue = { readonly tenant: string; readonly workflows: string };
type Looking = Queue & { readonly kind: "run" | "item" | null; readonly full: string | null; readonly limit: number };
type Among = { readonly tenant: string | null; readonly limit: number };
type Place = { readonly tenant: string; readonly workflow: string };

/** Looks for work, queue by queue. */
export const queues = {
  "lease.due"(t, p: Looking & { nextReactor: string }, { now }) {
    const found = workflowsOf(p)
      .flatMap((workflow) => t.leases.by.queue(keyOf(p.nextReactor, p.tenant, workflow)))
      .filter(({ due_at, paused, kind }) => due_at <= now && !paused && passes(p.kind, kind))
      .filter(hasRoom(t, p));
    return numbers(
      page(
        found,
        p.limit,
        ({ due_at }) => due_at,
        ({ journal }) => journal,
      ),
    );
  },

  "lease.stale"(t, p: Looking & { staleOf: string }, { now }) {
    const found = heldIn(t, p).filter(
      ({ expires_at, doomed, kind, reactor }) =>
        (expires_at <= now || doomed) && listed(p.staleOf, reactor!) && passes(p.kind, kind),
    );
    return numbers(page(found.filter(hasRoom(t, p)), p.limit, ({ journal }) => journal));
  },

  "lease.by_nonce"(t, p: Queue & { owner: string; nonce: bigint }) {
    const found = heldIn(t, p).filter(({ owner, nonce }) => owner === p.owner && nonce === p.nonce);
    return numbers(page(found, Number.POSITIVE_INFINITY, ({ journal }) => journal));
  },

  "item.callees": (t, p: { journals: string }) =>
    rows((JSON.parse(p.journals) as number[]).map((journal) => ({ journal, callee: calleeOf(t, journal) }))),

  "lease.queues": (t, p: Among & { nextReactor: string }) =>
    placesOf(
      p,
      t.leases.all().filter(({ next_reactor }) => next_reactor === p.nextReactor),
    ),

  "lease.holders": (t, p: Among) =>
    placesOf(
      p,
      t.leases.by.state("held").filter(({ kind }) => kind !== "name"),
    ),

  "lease.preload"(t, p: { aheadMs: number; tenant: string; limit: number; served: string | null }, times) {
    const served = p.served === null ? undefined : new Set(JSON.parse(p.served) as string[]);
    const rests = (journal: number): boolean => {
      const lease = t.leases.get(journal);
      return (
        lease?.owner === null && lease.next_reactor === null && !lease.paused && t.runs.get(journal)?.phase === "LIVE"
      );
    };
    const soon = t.timers.by
      .set(p.tenant)
      .filter((timer) => {
        const inMs = -lateMs(timer, times);
        return inMs > 0 && inMs <= p.aheadMs && rests(timer.run);
      })
      .filter(({ run }) => served?.has(t.runs.get(run)!.workflow) ?? true);
    return rows(page(soon, p.limit, (timer) => -lateMs(timer, times)).map(({ run }) => ({ journal: run })));
  },

  "lease.unserved"(t, p: Queue & { minLagMs: number }, { now }) {
    const found = workflowsOf(p).flatMap((workflow) => {
      const due = t.leases.by.queue(keyOf("recovery", p.tenant, workflow)).filter(({ paused }) => !paused);
      const held = t.leases.by.holders(keyOf(p.tenant, workflow));
      const since = [...due.map(({ due_at }) => due_at), ...held.map(({ expires_at }) => expires_at)];
      const long = since.filter((from) => from <= now - p.minLagMs);
      return long.length === 0 ? [] : [{ workflow, runs: long.length, lag_ms: now - least(long)! }];
    });
    return rows(found.sort((a, b) => (a.workflow < b.workflow ? -1 : 1)));
  },

  agenda(t, p: { queues: string; holders: string; tenants: string }, times) {
    const { now } = times;
    const asked = Map.groupBy(JSON.parse(p.queues) as [string, string, string][], ([reactor]) => reactor);
    const due = [...asked].map(([reactor, of]) => {
      const asking = of.flatMap((queue) => t.leases.by.queue(keyOf(...queue))).filter(({ paused }) => !paused);
      return { reactor, in_ms: after(now, least(asking.map(({ due_at }) => due_at))) };
    });
    const held = (JSON.parse(p.holders) as [string, string][]).flatMap((queue) => t.leases.by.holders(keyOf(...queue)));
    const until = least(held.map(({ doomed, expires_at }) => (doomed ? 0 : expires_at)));
    const set = (JSON.parse(p.tenants) as string[]).flatMap((tenant) => dueIn(t, tenant, times));
    return rows([
      ...due,
      { reactor: null, in_ms: after(now, until) },
      { reactor: "timers", in_ms: after(0, least(set)) },
    ]);
  },

  "timer.tenants": (t, p: { limit: number }) =>
    tenantsOf(
      p,
      t.timers.all().filter(({ status }) => status === "SET"),
    ),

  "schedule.tenants": (t, p: { limit: number }) =>
    tenantsOf(
      p,
      t.schedules.all().filter(({ next_at, paused }) => next_at !== null && !paused),
    ),
} satisfies Statements;

const workflowsOf = ({ workflows }: Queue): string[] => [...new Set(JSON.parse(workflows) as string[])];

const heldIn = (t: Tables, queue: Queue): LeaseRow[] =>
  workflowsOf(queue).flatMap((workflow) => t.leases.by.holders(keyOf(queue.tenant, workflow)));

function calleeOf(t: Tables, item: number): string {
  const [effect] = t.effects.by.item(item);
  return effect?.connector ?? effect?.name ?? "";
}

function hasRoom(t: Tables, { full }: Looking): (lease: LeaseRow) => boolean {
  if (full === null) return () => true;
  const callees = new Set(JSON.parse(full) as string[]);
  return ({ kind, journal }) => kind !== "item" || !callees.has(calleeOf(t, journal));
}

const numbers = (found: readonly LeaseRow[]): QueryResult => rows(found.map(({ journal }) => ({ journal })));

function placesOf(p: Among, leases: readonly LeaseRow[]): QueryResult {
  const places = new Map<string, Place>();
  for (const { tenant, workflow } of leases) {
    if (passes(p.tenant, tenant)) places.set(keyOf(tenant, workflow), { tenant, workflow });
  }
  return rows(
    page(
      [...places.values()],
      p.limit,
      ({ tenant }) => tenant,
      ({ workflow }) => workflow,
    ),
  );
}

function tenantsOf({ limit }: { limit: number }, waiting: readonly { readonly tenant: string }[]): QueryResult {
  const tenants = [...new Set(waiting.map(({ tenant }) => tenant))].sort().slice(0, limit);
  return rows(tenants.map((tenant) => ({ tenant })));
}

function least(times: readonly number[]): number | undefined {
  return times.length === 0 ? undefined : times.reduce((a, b) => Math.min(a, b));
}

const after = (from: number, time: number | undefined): number | null => (time === undefined ? null : time - from);

/** In how long timers and schedules of one tenant are due, each by its own clock. */
function dueIn(t: Tables, tenant: string, times: Times): number[] {
  const schedules = t.schedules.by.tenant(tenant).filter(({ paused }) => !paused);
  return [
    ...t.timers.by.set(tenant).map((timer) => -lateMs(timer, times)),
    ...schedules.flatMap(({ next_at }) => (next_at === null ? [] : [next_at - times.at])),
  ];
}
