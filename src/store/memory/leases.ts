import { admits, type Fence } from "../../model/fence.ts";
import type { Claimant } from "../../model/lease.ts";
import type { TermEnd, TermReason } from "../../model/records.ts";
import type { Row } from "../sql/plan.ts";
import { headOf } from "./journals.ts";
import { changed, type Do, none, page, present, row, rows, type Statements, type Times } from "./statement.ts";
import { keyOf } from "./table.ts";
import type { LeaseRow, Tables } from "./tables.ts";

type Progress = Fence & { readonly progress: number; readonly progressNote: string | null };
type Taking = Claimant & { readonly journal: number; readonly nonce: bigint; readonly maxStallMs: number | null };

export const leases = {
  /** THE FENCE (see src/model/fence.ts). A plan runs to its end within one turn: nothing comes between this and it. */
  fence(t, p: Fence & { readonly after: number }) {
    const lease = t.leases.get(p.journal);
    if (lease === undefined || !admits(lease, p)) return none;
    const isHead = t.records.get(keyOf(p.journal, p.after)) && !t.records.get(keyOf(p.journal, p.after + 1));
    const { kind, tenant, run, notes } = lease;
    return isHead ? row({ kind, tenant, run, notes }) : none;
  },

  "fence.why"(t, p: { journal: number; tenant: string }) {
    const lease = t.leases.get(p.journal);
    return row(lease?.tenant === p.tenant ? { ...shown(lease), head: headOf(t, p.journal) } : undefined);
  },

  "lease.create"(t, p: Do<"lease.create">, { now }) {
    const { journal, kind, run, workflow, token, nextReactor: next_reactor } = p;
    const tenant = p.tenant ?? tenantOf(t, p.source);
    t.leases.insert({ ...blank(now), journal, kind, tenant, run, workflow, token, next_reactor });
    return changed(1);
  },

  "lease.first"(t, p: Taking & { readonly tenant: string; readonly workflow: string }, { now }) {
    const { journal, tenant, workflow } = p;
    const lease: LeaseRow = { ...blank(now), journal, kind: "run", tenant, run: journal, workflow, token: 0n };
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
    const ours = lease?.token === p.token && lease.nonce === p.nonce && lease.tenant === p.tenant;
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
      next_reactor: p.nextReactor,
      due_at: now + p.inMs,
    });
    return row({ tenant, kind });
  },

  "lease.wake"(t, p: Do<"lease.wake">, { now }) {
    const lease = t.leases.get(p.journal);
    if (lease === undefined || lease.owner !== null || !lease.open) return none;
    t.leases.update(lease, { next_reactor: p.nextReactor, due_at: now + p.inMs });
    return changed(1);
  },

  "lease.pause"(t, p: { journal: number; paused: boolean }) {
    return changed(t.leases.updateAll(present(t.leases.get(p.journal)), { paused: p.paused }));
  },

  "leases.doom": (t, _p: object, { now }) =>
    changed(t.leases.updateAll(t.leases.by.state("held"), { doomed: true, expires_at: now, last_end: "superseded" })),

  "lease.read": (t, p: { journal: number }, times) =>
    rows(present(t.leases.get(p.journal)).map((lease) => named(t, lease, times))),

  "leases.shown": (t, p: { journals: string }, times) =>
    rows((JSON.parse(p.journals) as number[]).map((journal) => named(t, t.leases.get(journal)!, times))),

  "lease.list"(t, p: { tenant: string; held: boolean; limit: number }, times) {
    const found = t.leases.by
      .tenant(p.tenant)
      .filter(({ kind, owner }) => kind !== "store" && (owner !== null || !p.held));
    return rows(page(found, p.limit, (lease) => -lease.journal).map((lease) => named(t, lease, times)));
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
export function blank(now: number): Omit<LeaseRow, "journal" | "kind" | "tenant" | "run" | "workflow" | "token"> {
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
    next_reactor: null,
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
    next_reactor: null,
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
