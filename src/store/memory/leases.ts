import { admits, type Fence } from "../../model/fence.ts";
import type { Claimant } from "../../model/lease.ts";
import type { TermEnd, TermReason } from "../../model/records.ts";
import type { Answer, Row } from "../sql/plan.ts";
import { headOf } from "./journals.ts";
import {
  changed,
  type Do,
  listed,
  none,
  page,
  passes,
  present,
  row,
  rows,
  type Statements,
  type Times,
} from "./statement.ts";
import { keyOf } from "./table.ts";
import type { LeaseRow, Tables } from "./tables.ts";
import { timesSet } from "./waits.ts";

type Progress = Fence & { readonly progress: number; readonly progressNote: string | null };
type Taking = Claimant & { readonly journal: number; readonly nonce: bigint; readonly maxStallMs: number | null };

/** Those that are asked for by name. */
const reactors = ["recovery", "reconciler", "outbox", "compensation"];

export const leases = {
  /** THE FENCE (see src/model/fence.ts). A plan runs to its end within one turn: nothing comes between this and it. */
  fence(t, p: Fence & { readonly after: number }) {
    const lease = t.leases.get(p.journal);
    if (lease === undefined || !admits(lease, p)) return none;
    const isHead = t.records.get(keyOf(p.journal, p.after)) && !t.records.get(keyOf(p.journal, p.after + 1));
    const { kind, tenant, run, notes } = lease;
    return isHead ? row({ kind, tenant, run, notes }) : none;
  },

  "fence.why"(t, p: { journal: number }) {
    const lease = t.leases.get(p.journal);
    return row(lease && { ...shown(lease), head: headOf(t, p.journal) });
  },

  "lease.create"(t, p: Do<"lease.create">, { now }) {
    const { journal, kind, run, token, wants } = p;
    t.leases.insert({ ...blank(now), journal, kind, tenant: p.tenant ?? tenantOf(t, p.source), run, token, wants });
    return changed(1);
  },

  "lease.first"(t, p: Taking & { readonly tenant: string }, { now }) {
    const { journal, tenant } = p;
    const lease: LeaseRow = { ...blank(now), journal, kind: "run", tenant, run: journal, token: 0n };
    return row(shown(t.leases.insert({ ...lease, ...termOf(t, lease, p, now, "start") })));
  },

  "lease.take"(t, p: Taking & { token: bigint; was: string | null; reason: TermReason }, { now }) {
    const lease = t.leases.get(p.journal);
    if (lease === undefined || lease.token !== p.token || lease.owner !== p.was || lease.paused) return none;
    const last_end = lease.owner === null ? lease.last_end : "expired";
    return row(shown(t.leases.update(lease, { ...termOf(t, lease, p, now, p.reason), last_end })));
  },

  "lease.renew"(t, p: Progress, { now }) {
    const lease = t.leases.get(p.journal);
    if (lease === undefined || !admits(lease, p) || isStalled(lease, p, now)) return none;
    const { notes, ttl_ms } = t.leases.update(lease, {
      expires_at: now + lease.ttl_ms,
      renewals: lease.renewals + 1,
      longest_gap_ms: Math.max(lease.longest_gap_ms, now - lease.renewed_at),
      renewed_at: now,
      progress_at: p.progress > lease.progress ? now : lease.progress_at,
      progress: Math.max(lease.progress, p.progress),
      progress_note: p.progressNote ?? lease.progress_note,
      stalled: false,
    });
    return row({ notes, ttl_ms });
  },

  "lease.stall"(t, p: Progress, { now }) {
    const lease = t.leases.get(p.journal);
    const ours = lease?.token === p.token && lease.nonce === p.nonce;
    if (!ours || !isStalled(lease, p, now)) return none;
    t.leases.update(lease, { stalled: true, expires_at: Math.min(lease.expires_at, now) });
    return row({ journal: p.journal });
  },

  "lease.release"(t, p: Do<"lease.release">, { now }) {
    const lease = t.leases.get(p.journal);
    if (lease === undefined || (lease.kind !== "name" && lease.notes !== p.taken)) return none;
    const { tenant, kind } = t.leases.update(lease, {
      token: lease.token + 1n,
      nonce: null,
      owner: null,
      label: null,
      reactor: null,
      expires_at: now,
      doomed: false,
      open: p.open,
      last_end: p.end as TermEnd,
      wants: p.wants,
      due_at: now + p.inMs,
    });
    return row({ tenant, kind });
  },

  "lease.wake"(t, p: Do<"lease.wake">, { now }) {
    const lease = t.leases.get(p.journal);
    if (lease === undefined || lease.owner !== null || !lease.open) return none;
    t.leases.update(lease, { wants: p.wants, due_at: now + p.inMs });
    return changed(1);
  },

  "lease.pause"(t, p: { journal: number; paused: boolean }) {
    return changed(t.leases.updateAll(present(t.leases.get(p.journal)), { paused: p.paused }));
  },

  "leases.doom": (t, _p: object, { now }) =>
    changed(t.leases.updateAll(t.leases.by.state("held"), { doomed: true, expires_at: now, last_end: "superseded" })),

  "lease.read": (t, p: { journal: number }, times) =>
    rows(present(t.leases.get(p.journal)).map((lease) => named(t, lease, times))),

  "lease.list"(t, p: { tenant: string; held: boolean; limit: number }, times) {
    const found = t.leases
      .all()
      .filter(({ tenant, kind, owner }) => tenant === p.tenant && kind !== "store" && (owner !== null || !p.held));
    return rows(page(found, p.limit, (lease) => -lease.journal).map((lease) => named(t, lease, times)));
  },

  "lease.due"(t, p: { wants: string; tenant: string | null; limit: number; workflows: string | null }, { now }) {
    const served = servedBy(t, p.workflows);
    const found = t.leases.by
      .wants(p.wants)
      .filter(
        ({ journal, due_at, paused, tenant }) =>
          due_at <= now && !paused && passes(p.tenant, tenant) && served(journal),
      );
    return numbers(
      page(
        found,
        p.limit,
        ({ due_at }) => due_at,
        ({ journal }) => journal,
      ),
    );
  },

  "lease.soon"(t, p: { aheadMs: number; tenant: string | null; limit: number; workflows: string | null }, { at }) {
    const served = servedBy(t, p.workflows);
    const rests = (journal: number): boolean => {
      const lease = t.leases.get(journal);
      return lease?.owner === null && lease.wants === null && !lease.paused && t.runs.get(journal)?.phase === "LIVE";
    };
    const soon = t.timers.by
      .status("SET")
      .filter(
        ({ run, due_at, tenant }) => due_at > at && due_at <= at + p.aheadMs && passes(p.tenant, tenant) && rests(run),
      )
      .filter(({ run }) => served(run));
    return rows(page(soon, p.limit, ({ due_at }) => due_at).map(({ run }) => ({ journal: run })));
  },

  "lease.stale"(t, p: { staleOf: string; tenant: string | null; limit: number; workflows: string | null }, { now }) {
    const served = servedBy(t, p.workflows);
    const found = t.leases.by
      .state("held")
      .filter(
        ({ journal, expires_at, doomed, kind, reactor, tenant }) =>
          (expires_at <= now || doomed) &&
          kind !== "name" &&
          listed(p.staleOf, reactor!) &&
          passes(p.tenant, tenant) &&
          served(journal),
      );
    return numbers(page(found, p.limit, ({ journal }) => journal));
  },

  "lease.unserved"(t, p: { workflows: string; minLagMs: number; tenant: string | null }, { now }) {
    const served = servedBy(t, p.workflows);
    const since = new Map<string, number[]>();
    const due = t.leases.by.wants("recovery").filter(({ paused }) => !paused);
    const held = t.leases.by.state("held").filter(({ kind }) => kind === "run");
    for (const { journal, tenant, owner, due_at, expires_at } of [...due, ...held]) {
      const from = owner === null ? due_at : expires_at;
      if (from > now - p.minLagMs || !passes(p.tenant, tenant) || served(journal)) continue;
      const { workflow } = t.runs.get(journal)!;
      since.set(workflow, [...(since.get(workflow) ?? []), from]);
    }
    const found = [...since].map(([workflow, times]) => ({
      workflow,
      runs: times.length,
      lag_ms: now - Math.min(...times),
    }));
    return rows(found.sort((a, b) => (a.workflow < b.workflow ? -1 : 1)));
  },

  agenda(t, p: { tenant: string | null }, { now, at }) {
    const ours = t.leases.all().filter(({ kind, tenant }) => kind !== "name" && passes(p.tenant, tenant));
    const least = (times: readonly number[], from: number) => (times.length === 0 ? null : Math.min(...times) - from);
    const asking = (name: string) => ours.filter(({ wants, paused }) => wants === name && !paused);
    const held = ours.filter(({ owner }) => owner !== null);
    return rows([
      ...reactors.map((name) => ({
        reactor: name,
        in_ms: least(
          asking(name).map(({ due_at }) => due_at),
          now,
        ),
      })),
      {
        reactor: null,
        in_ms: least(
          held.map(({ doomed, expires_at }) => (doomed ? 0 : expires_at)),
          now,
        ),
      },
      { reactor: "timers", in_ms: least(timesSet(t, p.tenant), at) },
    ]);
  },

  "lease.mine"(t, p: { owner: string; nonce: bigint; tenant: string | null }) {
    const found = t.leases.by
      .state("held")
      .filter(({ owner, nonce, tenant }) => owner === p.owner && nonce === p.nonce && passes(p.tenant, tenant));
    return numbers(page(found, Number.POSITIVE_INFINITY, ({ journal }) => journal));
  },

  "name.create"(t, p: { tenant: string; name: string; journal: number }) {
    const { tenant, name, journal } = p;
    if (t.names.get(keyOf(tenant, name)) !== undefined) return none;
    t.names.insert({ tenant, name, journal });
    return changed(1);
  },

  "name.find": (t, p: { tenant: string; name: string }) => row(t.names.get(keyOf(p.tenant, p.name))),
} satisfies Statements;

/** The tenant of a journal, for what is written from inside it. */
export function tenantOf(t: Tables, source: number | null): string {
  return t.leases.get(source!)!.tenant;
}

/** The lease of nobody. */
export function blank(now: number): Omit<LeaseRow, "journal" | "kind" | "tenant" | "run" | "token"> {
  return {
    nonce: null,
    owner: null,
    label: null,
    reactor: null,
    ttl_ms: 0,
    expires_at: now,
    acquired_at: now,
    reason: null,
    renewals: 0,
    renewed_at: now,
    longest_gap_ms: 0,
    progress: 0,
    progress_at: now,
    progress_note: null,
    max_stall_ms: null,
    doomed: false,
    paused: false,
    stalled: false,
    notes: 0,
    open: true,
    wants: null,
    due_at: now,
    last_end: null,
  };
}

/** A fresh term: always a higher token, also for the owner of before. */
function termOf(t: Tables, lease: LeaseRow, p: Taking, now: number, reason: TermReason): Partial<LeaseRow> {
  const floor = t.meta.get(1)!.token_floor;
  return {
    token: (lease.token > floor ? lease.token : floor) + 1n,
    nonce: p.nonce,
    owner: p.owner,
    label: p.label,
    reactor: p.reactor,
    ttl_ms: p.ttlMs,
    expires_at: now + p.ttlMs,
    acquired_at: now,
    reason,
    renewals: 0,
    renewed_at: now,
    longest_gap_ms: 0,
    progress: 0,
    progress_at: now,
    progress_note: null,
    max_stall_ms: p.maxStallMs,
    doomed: false,
    stalled: false,
    wants: null,
  };
}

function isStalled(lease: LeaseRow, p: { readonly progress: number }, now: number): boolean {
  const { max_stall_ms, progress, progress_at } = lease;
  return max_stall_ms !== null && p.progress <= progress && now - progress_at > max_stall_ms;
}

/** Tokens and nonces as decimal text, as every store answers them. */
function shown(lease: LeaseRow): Row {
  return { ...lease, token: String(lease.token), nonce: lease.nonce === null ? null : String(lease.nonce) };
}

function named(t: Tables, lease: LeaseRow, { now }: Times): Row {
  const { journal, kind } = lease;
  const run = kind === "run" ? t.runs.get(journal)?.id : undefined;
  return { ...shown(lease), now, name: t.names.by.journal(journal)[0]?.name ?? run ?? null };
}

/** Whether a journal is a run of one of these workflows; null: any journal. */
function servedBy(t: Tables, workflows: string | null): (journal: number) => boolean {
  if (workflows === null) return () => true;
  const served = new Set(JSON.parse(workflows) as string[]);
  return (journal) => served.has(t.runs.get(journal)?.workflow ?? "");
}

const numbers = (found: readonly LeaseRow[]): Answer => rows(found.map(({ journal }) => ({ journal })));
