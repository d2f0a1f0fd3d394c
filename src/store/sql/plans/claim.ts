import { leavesRun, ownReactor, pinOf } from "../../../model/build.ts";
import { TapeError } from "../../../model/errors.ts";
import { makeFence } from "../../../model/fence.ts";
import type { AcquireRequest, AcquireResult, RenewRequest, RenewResult, Term } from "../../../model/lease.ts";
import { encodeBody } from "../../../model/projection.ts";
import type { Credential, RecordData, TermReason } from "../../../model/records.ts";
import type { LeaseRow } from "../../../model/rows.ts";
import type { AuditInfo, FindRequest } from "../../contract/store.ts";
import {
  leaseRowOf,
  leaseViewOf,
  mayOpen,
  mayTake,
  previousTermOf,
  startReasonOf,
  yieldsAfterStall,
} from "../../lease-rules.ts";
import { staleError } from "../../validate/arguments.ts";
import { type Plan, type PlanContext, query, queryRow } from "../plan.ts";
import { whyFenced } from "./append.ts";
import { auditPlan } from "./audit.ts";
import { recordOperatorAction } from "./service.ts";
import { moveSlot } from "./slots.ts";
import { findTarget, openTarget } from "./target.ts";

/**
 * Read, decide, CAS on (owner, token) as read, then the head with a newer snapshot, then the term record: in this
 * order, because a stale holder may have appended until the moment of the CAS.
 */
export function* acquirePlan(context: PlanContext, tenant: string, request: AcquireRequest): Plan<AcquireResult> {
  const unopened = mayOpen(request);
  const found = unopened === undefined ? undefined : yield* findTarget(tenant, request.target);
  if (unopened !== undefined && found === undefined && "name" in request.target) return { ok: false, error: unopened };
  const journal = found ?? (yield* openTarget(context, tenant, request.target));
  const row = yield* queryRow("lease.read", { journal });
  if (row === undefined) throw new TapeError("TAPE_INVARIANT", "the journal has no lease row", { journal });
  const lease = leaseRowOf(row);
  const now = Number(row.now);
  if (isOwn(lease, tenant, request.claimant.owner, request.nonce)) {
    return { ok: true, term: yield* heldTerm(lease) }; // the same attempt, repeated after a lost response
  }
  const refusal = mayTake(lease, now, request);
  if (refusal !== undefined) return { ok: false, error: refusal, holder: leaseViewOf(row) };
  const taken = yield* takeTerm(lease, now, request);
  if (taken !== undefined) return { ok: true, term: taken };
  const current = yield* queryRow("lease.read", { journal });
  return {
    ok: false,
    error: new TapeError("TAPE_LEASE_HELD", "another claimant was faster", { journal, remainingMs: 0 }),
    ...(current === undefined ? {} : { holder: leaseViewOf(current) }),
  };
}

/** Lets a standby check without a transaction whether it may acquire. undefined: worth trying. */
export function* peekPlan(tenant: string, request: AcquireRequest): Plan<AcquireResult | undefined> {
  const journal = yield* findTarget(tenant, request.target);
  const row = journal === undefined ? undefined : yield* queryRow("lease.read", { journal });
  if (row === undefined) return undefined;
  const lease = leaseRowOf(row);
  if (lease.nonce === request.nonce) return undefined;
  const error = mayTake(lease, Number(row.now), request);
  return error === undefined ? undefined : { ok: false, error, holder: leaseViewOf(row) };
}

type TakeOptions = Pick<AcquireRequest, "claimant" | "nonce" | "expect" | "reason" | "by" | "auditReason"> &
  Pick<RecordData<"term.started">, "admitted" | "build">;

export function* takeTerm(lease: LeaseRow, now: number, options: TakeOptions): Plan<Term | undefined> {
  const { journal } = lease;
  const { claimant, nonce } = options;
  const reason = options.reason ?? startReasonOf(lease, now);
  const { maxStallMs = null } = claimant;
  const taken = yield* queryRow("lease.take", {
    ...claimant,
    maxStallMs,
    journal,
    token: lease.token,
    previousOwner: lease.owner,
    nonce,
    reason,
  });
  if (taken === undefined) return undefined;
  const token = BigInt(taken.token as string);
  const head = Number((yield* queryRow("journal.head", { journal }))?.head);
  yield* query("record.append", {
    journal,
    seq: head + 1,
    token,
    kind: "term.started",
    body: termStartedBody(lease, now, head, options, reason),
  });
  if (options.build !== undefined) yield* query("lease.pin", { journal, build: options.build });
  const { kind, tenant, run } = lease;
  const fence = makeFence(tenant, journal, token, nonce);
  return {
    fence,
    journal,
    kind,
    tenant,
    run,
    ttlMs: claimant.ttlMs,
    head: head + 1,
    notes: Number(taken.notes),
    reason,
    ...(lease.queue === null ? {} : { queue: lease.queue }),
    // As of the takeover: until then the previous holder may have moved it.
    ...(taken.checkpoint === null ? {} : { checkpoint: taken.checkpoint }),
    ...generationOf(taken),
  };
}

/** Where the current generation of a run begins. Most runs have only one. */
export const generationOf = ({ begins }: { readonly begins: number }): Pick<Term, "begins"> =>
  begins > 1 ? { begins: Number(begins) } : {};

export function termStartedBody(
  lease: LeaseRow,
  now: number,
  head: number,
  options: TakeOptions,
  reason: TermReason,
): string {
  const { owner, label, reactor, ttlMs } = options.claimant;
  const previous = previousTermOf(lease, now, head, reason);
  const data: RecordData<"term.started"> = {
    owner,
    label,
    reactor,
    ttlMs,
    reason,
    ...(options.by === undefined ? {} : { by: options.by }),
    ...(options.auditReason === undefined ? {} : { auditReason: options.auditReason }),
    ...(options.admitted === undefined ? {} : { admitted: options.admitted }),
    ...(options.build === undefined ? {} : { build: options.build }),
    ...(previous === undefined ? {} : { previous }),
  };
  return encodeBody(data);
}

/** The term that an attempt with this nonce was granted, if it is still the current one. */
export function* ownTerm(
  journal: number,
  tenant: string,
  { owner, nonce }: { owner: string; nonce: bigint },
): Plan<Term | undefined> {
  const row = yield* queryRow("lease.read", { journal });
  if (row === undefined) return undefined;
  const lease = leaseRowOf(row);
  return isOwn(lease, tenant, owner, nonce) ? yield* heldTerm(lease) : undefined;
}

/** Whether this very attempt of this tenant holds the lease; undefined: of any tenant. */
function isOwn(lease: LeaseRow, tenant: string | undefined, owner: string, nonce: bigint): boolean {
  return lease.nonce === nonce && lease.owner === owner && !lease.doomed && isOf(lease, tenant);
}

/** Owner and nonce are chosen by the caller: they never replace the tenant. */
const isOf = (lease: LeaseRow, tenant: string | undefined): boolean => tenant === undefined || lease.tenant === tenant;

function* heldTerm(lease: LeaseRow): Plan<Term> {
  const { journal, kind, tenant, run, ttlMs, notes, token, nonce, reason, queue, checkpoint } = lease;
  const head = Number((yield* queryRow("journal.head", { journal }))?.head);
  const fence = makeFence(tenant, journal, token, nonce!);
  const term = { fence, journal, kind, tenant, run, ttlMs, head, notes, reason: reason ?? "start" };
  const more = { ...(queue === null ? {} : { queue }), ...(checkpoint === null ? {} : { checkpoint }) };
  return { ...term, ...more, ...generationOf(lease) };
}

/** A find, and how many more runs of each queue its process drives. */
export interface ClaimRequest extends FindRequest {
  readonly rooms?: Map<string, number>;
}

export function* claimFoundPlan(context: PlanContext, journal: number, request: ClaimRequest): Plan<Term | undefined> {
  const row = yield* queryRow("lease.read", { journal });
  if (row === undefined) return undefined;
  const lease = leaseRowOf(row);
  const now = Number(row.now);
  const { claimant, nonce } = request;
  const name = row.name === null ? {} : { name: String(row.name) };
  if (isOwn(lease, request.tenant, claimant.owner, nonce)) return { ...(yield* heldTerm(lease)), ...name };
  const found = claimableAs(lease, now, request);
  if (found === undefined) {
    const abandoned = lease.slot === "PARKED" && lease.owner !== null && (lease.expiresAt <= now || lease.doomed);
    if (abandoned && isOf(lease, request.tenant)) yield* returnToQueue(context, lease, now, request);
    return undefined;
  }
  const pin = pinnedBy(lease, request);
  const term = yield* takeTerm(lease, now, { claimant, nonce, expect: "free_or_expired", ...pin });
  if (term === undefined) return undefined;
  return { ...term, ...found, ...name };
}

/**
 * A run without a slot whose holder vanished: an operator. What the holder wrote may concern the run, so it returns to
 * its queue. It is not driven here: the term ends with the transaction.
 */
function* returnToQueue(context: PlanContext, lease: LeaseRow, now: number, request: FindRequest): Plan<void> {
  const { claimant, nonce } = request;
  const { journal } = lease;
  const term = yield* takeTerm(lease, now, { claimant, nonce, expect: "free_or_expired" });
  if (term === undefined) return;
  const next = { notesTaken: term.notes, nextReactor: "recovery" };
  const ended: RecordData<"term.ended"> = { reason: "released", ...next };
  const { token } = term.fence;
  yield* query("record.append", { journal, seq: term.head + 1, token, kind: "term.ended", body: encodeBody(ended) });
  yield* moveSlot(context, journal, { of: "released", wanted: true });
  yield* query("lease.release", { journal, ...next, delayMs: 0, endReason: "released", open: true });
}

/** The build that a find pins the run to, if this is its first term there. */
export function pinnedBy({ kind, build, workflow }: LeaseRow, request: FindRequest): { readonly build?: string } {
  const pin = kind === "run" ? pinOf(build, workflow, request.build) : undefined;
  return pin === undefined ? {} : { build: pin };
}

/** What a find returns besides the term. */
export type Found = Pick<Term, "lagMs" | "preloaded" | "takenFrom">;

/** Why a find may claim this lease; undefined: it does not match the request, or it is not available. */
export function claimableAs(lease: LeaseRow, now: number, request: ClaimRequest): Found | undefined {
  const { claimant, nextReactor, staleOf, preload } = request;
  if (!isOf(lease, request.tenant)) return undefined;
  const free = lease.owner === null;
  const { build } = request.build ?? {};
  const reactor = lease.nextReactor === null ? undefined : ownReactor(lease.nextReactor, build);
  const due = free && reactor === nextReactor && lease.dueAt <= now;
  const stale = !free && staleOf.includes(lease.reactor ?? "") && !yieldsAfterStall(lease, now, claimant);
  const early = free && lease.nextReactor === null && preload !== undefined;
  const take = { claimant, expect: "free_or_expired", ...(build !== undefined && { build }) } as const;
  if (!(due || stale || early) || mayTake(lease, now, take) || leavesRun(lease.build, lease.workflow, request.build))
    return undefined;
  if (!takesRoom(lease, request)) return undefined;
  if (early) return { preloaded: early, lagMs: 0 };
  return {
    lagMs: Math.max(0, now - (free ? lease.dueAt : lease.expiresAt)),
    ...(free ? {} : { takenFrom: lease.owner! }),
  };
}

/** A process that drives enough runs of a queue leaves this one to others. */
function takesRoom({ queue }: LeaseRow, { rooms }: ClaimRequest): boolean {
  const room = queue === null ? undefined : rooms?.get(queue);
  if (room === undefined) return true;
  if (room > 0) rooms!.set(queue!, room - 1);
  return room > 0;
}

export function* renewPlan(renewal: RenewRequest): Plan<RenewResult> {
  const { fence, progress, progressAgoMs = 0, progressNote = null } = renewal;
  const row = yield* queryRow("lease.renew", { ...fence, progress, progressAgoMs, progressNote });
  if (row !== undefined) return { ok: true, notes: Number(row.notes), ttlMs: Number(row.ttl_ms) };
  return yield* lostPlan(renewal);
}

/** Why a renewal was rejected: stalled, or no longer held. */
export function* lostPlan(renewal: RenewRequest): Plan<RenewResult> {
  const { fence, progress } = renewal;
  const { journal } = fence;
  const stalled = yield* queryRow("lease.stall", { ...fence, progress });
  if (stalled !== undefined) {
    const error = new TapeError("TAPE_LEASE_STALLED", "renewed without progress for longer than maxStall", { journal });
    return { ok: false, error };
  }
  return { ok: false, error: staleError(fence, yield* whyFenced(fence)) };
}

/** Pausing first takes the lease over, so that a live holder is fenced, and records it in the journal. */
export function* pausePlan(
  context: PlanContext,
  tenant: string,
  name: string,
  paused: boolean,
  audit: { by: string; auditReason: string; nonce: bigint; via: Credential | undefined },
): Plan<void> {
  const journal = yield* openTarget(context, tenant, { name });
  const row = yield* queryRow("lease.read", { journal });
  const lease = leaseRowOf(row!);
  if (lease.paused === paused) return; // already done: a repeated resume must not evict the current holder
  if (!paused) yield* query("lease.pause", { journal, paused });
  const { by, auditReason, nonce, via } = audit;
  const claimant = { owner: by, label: by, reactor: "operator", ttlMs: 1_000 };
  const options = { claimant, nonce, expect: "any", reason: "manual", by, auditReason } as const;
  const term = yield* takeTerm(lease, Number(row!.now), options);
  if (term === undefined) throw new TapeError("TAPE_LEASE_HELD", "another claimant was faster; retry", { name });
  const { token } = term.fence;
  const action = paused ? "lease.pause" : "lease.resume";
  const operatorAction: RecordData<"operator.action"> = { by, action, reason: auditReason, ...(via && { via }) };
  const ended: RecordData<"term.ended"> = { reason: "manual", notesTaken: 0 };
  yield* query("record.append", {
    journal,
    seq: term.head + 1,
    token,
    kind: "operator.action",
    body: encodeBody(operatorAction),
  });
  yield* query("record.append", { journal, seq: term.head + 2, token, kind: "term.ended", body: encodeBody(ended) });
  yield* query("lease.release", {
    journal,
    notesTaken: 0,
    nextReactor: null,
    delayMs: 0,
    endReason: "manual",
    open: true,
  });
  if (paused) yield* query("lease.pause", { journal, paused });
  yield* auditPlan({ tenant, journal, subject: name, body: encodeBody(operatorAction) });
  context.wake({ of: "journal", tenant, journal });
}

/** Raises the store epoch and ends every term. `sql` may find that another process has done it already. */
export function* restoredPlan(
  reason: string,
  sql: "meta.restored" | "meta.promoted" = "meta.restored",
  audit?: AuditInfo,
): Plan<{ epoch: number; ended: number } | undefined> {
  const row = yield* queryRow(sql);
  if (row === undefined) return undefined;
  const epoch = Number(row.epoch);
  const { count: ended } = yield* query("leases.doom");
  const data: RecordData<"store.restored"> = { epoch, reason, ended };
  yield* query("store.record", { kind: "store.restored", body: encodeBody(data) });
  if (audit !== undefined)
    yield* recordOperatorAction("store.restored", audit, { tenant: audit.home ?? "", epoch, ended });
  return { epoch, ended };
}
