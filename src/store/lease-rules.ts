import { mayDrive } from "../model/build.ts";
import { TapeError } from "../model/errors.ts";
import type { AcquireRequest, Claimant, LeaseView } from "../model/lease.ts";
import type { SlotState } from "../model/queue.ts";
import type { RecordData, TermEnd, TermReason } from "../model/records.ts";
import type { JournalKind, LeaseRow } from "../model/rows.ts";
import type { RowOf } from "./sql/statements.gen.ts";

/** Who may take a lease, why a term starts and how the previous one ended. Pure, and the same for every store. */

/** Reads of runs leave the checkpoint out, reads of named leases the build, and lists the generation. */
type LeaseColumns = Omit<RowOf<"lease.read">, "checkpoint" | "build" | "begins"> &
  Partial<Pick<RowOf<"lease.read">, "checkpoint" | "build" | "begins">>;
const orNull = <T>(value: unknown): T | null => (value === undefined ? null : (value as T | null));

export function leaseRowOf(row: LeaseColumns): LeaseRow {
  return {
    journal: Number(row.journal),
    kind: row.kind as JournalKind,
    tenant: row.tenant as string,
    run: Number(row.run),
    workflow: row.workflow as string,
    token: BigInt(row.token as string),
    nonce: row.nonce === null ? null : BigInt(row.nonce as string),
    owner: orNull<string>(row.owner),
    label: orNull<string>(row.label),
    reactor: orNull<string>(row.reactor),
    ttlMs: Number(row.ttl_ms),
    expiresAt: Number(row.expires_at),
    acquiredAt: Number(row.acquired_at),
    reason: orNull<TermReason>(row.reason),
    renewals: Number(row.renewals),
    renewedAt: Number(row.renewed_at),
    longestGapMs: Number(row.longest_gap_ms),
    progress: Number(row.progress),
    progressAt: Number(row.progress_at),
    progressNote: orNull<string>(row.progress_note),
    maxStallMs: row.max_stall_ms === null ? null : Number(row.max_stall_ms),
    doomed: Boolean(row.doomed),
    paused: Boolean(row.paused),
    stalled: Boolean(row.stalled),
    notes: Number(row.notes),
    open: Boolean(row.open),
    nextReactor: orNull<string>(row.next_reactor),
    dueAt: Number(row.due_at),
    lastEndReason: orNull<TermEnd>(row.last_end_reason),
    queue: orNull<string>(row.queue),
    slot: orNull<SlotState>(row.slot),
    checkpoint: orNull<string>(row.checkpoint),
    build: orNull<string>(row.build),
    begins: Number(row.begins ?? 1),
  };
}

export function leaseViewOf(row: LeaseColumns): LeaseView {
  return viewOf(leaseRowOf(row), Number(row.now), orNull<string>(row.name));
}

export function viewOf(lease: LeaseRow, now: number, name: string | null): LeaseView {
  const held = lease.owner !== null;
  const { journal, kind, tenant, run, token, owner, label, reactor, ttlMs, reason, renewals, progress } = lease;
  const { progressNote, maxStallMs, paused, nextReactor, queue, slot } = lease;
  const state = !held ? "FREE" : lease.doomed ? "DOOMED" : lease.expiresAt <= now ? "EXPIRED" : "HELD";
  return {
    journal,
    kind,
    tenant,
    run,
    name,
    state,
    token,
    owner,
    label,
    reactor,
    ttlMs,
    remainingMs: state === "HELD" ? Math.max(0, lease.expiresAt - now) : 0,
    heldMs: held ? now - lease.acquiredAt : 0,
    reason,
    renewals,
    longestGapMs: lease.longestGapMs,
    progress,
    progressAgoMs: held ? now - lease.progressAt : 0,
    progressNote,
    maxStallMs,
    paused,
    nextReactor,
    queue: queue || null,
    slot,
    ...(lease.checkpoint === null ? {} : { checkpoint: lease.checkpoint }),
    ...(lease.build === null ? {} : { build: lease.build }),
    ...(lease.begins > 1 && { begins: lease.begins }),
  };
}

/**
 * A request for a lease. `admits`: it comes from the run's queue and brings a slot; `build`: of the process, whose code
 * would drive the run.
 */
export type TakeRequest = Pick<AcquireRequest, "expect" | "claimant" | "reason"> & {
  readonly admits?: boolean;
  readonly build?: string;
};

/** Terms that execute no workflow code: an operator's, and one that ends a run that never started. */
const isWithoutCode = ({ reason }: TakeRequest): boolean => reason === "manual" || reason === "cancellation";

/**
 * Who may take the lease of a run that is pinned to a build, or waits in a queue: a process of that build, the queue
 * itself, together with a slot, and a holder that executes no workflow code. A run with a slot is taken over like any
 * other, in its slot: an expired lease frees nothing, because its holder may still act.
 */
export function mayHandOut(
  lease: Pick<LeaseRow, "journal" | "queue" | "slot" | "build">,
  request: TakeRequest,
): TapeError | undefined {
  const { journal, queue, slot, build } = lease;
  if (!mayDrive(build, request.build) && !isWithoutCode(request)) {
    const message = `the run is pinned to build ${build}, and the claimant has ${request.build ?? "none"}`;
    return new TapeError("TAPE_RUN_PINNED", message, { journal, build });
  }
  if (slot === null || slot === "HELD" || request.reason === "manual") return undefined;
  if (request.admits === true && slot === "QUEUED") return undefined;
  const message = `the run has no slot of ${queue ? `queue ${queue}` : "any queue"}: it is ${slot}`;
  return new TapeError("TAPE_LEASE_HELD", message, { journal, queue, slot, remainingMs: 0 });
}

/**
 * A run that stalled in one process should continue in another, if there is one: the cause may be in the process. An idle
 * process polls every five seconds.
 */
export const stallYieldMs = 10_000;

/**
 * Whether the find of a process leaves this lease to others, because the run has just stalled there. The store decides:
 * a find may be on its way while its process learns that it has lost the run.
 */
export const yieldsAfterStall = (
  { kind, stalled, owner, expiresAt }: Pick<LeaseRow, "kind" | "stalled" | "owner" | "expiresAt">,
  now: number,
  claimant: Pick<Claimant, "owner">,
): boolean => kind === "run" && stalled && owner === claimant.owner && now - expiresAt < stallYieldMs;

/** Why this request may not take the lease now; undefined: it may. */
export function mayTake(lease: LeaseRow, now: number, request: TakeRequest): TapeError | undefined {
  const { journal, owner, token } = lease;
  if (lease.paused) return new TapeError("TAPE_LEASE_PAUSED", "an operator paused this lease", { journal });
  if (lease.kind === "run" && !lease.open) {
    return new TapeError("TAPE_RUN_ENDED", "the run has its final outcome and is not driven again", { journal });
  }
  const queued = mayHandOut(lease, request);
  if (queued !== undefined) return queued;
  const { expect } = request;
  if (expect === "any") return undefined;
  const expired = owner !== null && (lease.expiresAt <= now || lease.doomed);
  if (typeof expect === "object") {
    if (owner === expect.owner && token === expect.token && (owner === null || expired)) return undefined;
  } else {
    if (owner === null && expect !== "expired") return undefined;
    if (expired && expect !== "free") return undefined;
  }
  const remainingMs = owner === null ? 0 : Math.max(0, lease.expiresAt - now);
  const message =
    owner === null
      ? `the lease is free (token ${token})`
      : `held by ${lease.label ?? owner} under token ${token} for another ${Math.round(remainingMs)} ms`;
  return new TapeError("TAPE_LEASE_HELD", message, {
    journal,
    owner,
    label: lease.label,
    token: String(token),
    remainingMs,
  });
}

/**
 * Why a named lease that does not exist yet does not match the request's expectation; undefined: it does. It counts as
 * free under token 0. A rejected request must not create it.
 */
export function mayOpen({ expect }: Pick<AcquireRequest, "expect">): TapeError | undefined {
  const expected = typeof expect === "object" ? expect.owner === null && expect.token === 0n : expect !== "expired";
  if (expected) return undefined;
  return new TapeError("TAPE_LEASE_HELD", "the lease has never been held", { owner: null, token: "0", remainingMs: 0 });
}

/** Why the next term starts, unless the claimant gives its own reason. */
export function startReasonOf(lease: LeaseRow, now: number): TermReason {
  if (lease.owner !== null) {
    if (lease.stalled) return "stalled";
    if (lease.expiresAt > now) return "manual"; // also if the takeover had to announce itself first
    return lease.kind === "name" ? "timeout" : "recovery";
  }
  if (lease.lastEndReason === null) return "start";
  return lease.kind === "name" ? "release" : "wake";
}

/** How the current holder's term ends because of this takeover. The successor records it. */
export function previousTermOf(
  lease: LeaseRow,
  now: number,
  head: number,
  reason: TermReason,
): RecordData<"term.started">["previous"] | undefined {
  if (lease.owner === null) return undefined;
  const { renewals, longestGapMs, progress, progressNote } = lease;
  return {
    token: String(lease.token),
    endReason: endOf(lease, now, head, reason),
    renewals,
    longestGapMs,
    progress,
    ...(progressNote === null ? {} : { progressNote }),
  };
}

function endOf(lease: LeaseRow, now: number, head: number, reason: TermReason): TermEnd {
  if (lease.stalled) return "stalled";
  if (lease.doomed && lease.lastEndReason === "superseded") return "superseded"; // the store was restored
  if (lease.expiresAt > now) return reason === "cancellation" ? "cancelled" : "manual";
  // Granted with the run, never renewed, nothing written: the response never reached the creator.
  const unused = lease.kind === "run" && lease.reason === "start" && lease.renewals === 0 && head === 1;
  return unused ? "never_confirmed" : "expired";
}
