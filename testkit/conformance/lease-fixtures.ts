import { strict as assert } from "node:assert";
import type { ErrorCode } from "../../src/model/errors.ts";
import type {
  AcquireRequest,
  AcquireResult,
  LeaseTarget,
  LeaseView,
  RenewResult,
  Term,
  TermView,
} from "../../src/model/lease.ts";
import type { RecordData, TermEnd } from "../../src/model/records.ts";
import type { AppendResult, FindRequest, Store } from "../../src/store/contract/store.ts";
import { acquired, bigintText, claimant, nonce, record, request, spec, tenant, unique } from "./frame.ts";

/** Fixtures for cases about holders: short and long terms, releases, term summaries. */

/** No case lasts this long: the holder stays live, also on a busy machine with real time. */
export const lasting = { ttlMs: 60_000 } as const;
/** Expired after `pastBrief`. */
export const brief = { ttlMs: 60 } as const;
export const pastBrief = 90;

/** A claim for a new name. */
export function claimForName(more: Partial<AcquireRequest> = {}): AcquireRequest & { target: { name: string } } {
  const target = { name: unique("lease") };
  return { ...request(target, { claimant: claimant(undefined, lasting), ...more }), target };
}

/** Another attempt on the same target, by another claimant by default. */
export function anotherClaim(req: AcquireRequest, more: Partial<AcquireRequest> = {}): AcquireRequest {
  return { ...req, nonce: nonce(), claimant: claimant(undefined, lasting), ...more };
}

export const preempting = { expect: "any", by: "ann", auditReason: "it hangs" } as const;

export async function release(
  store: Store,
  term: Term,
  more: Partial<RecordData<"term.ended">> = {},
  after = term.head,
): Promise<AppendResult> {
  const ended = record("term.ended", { reason: "released", notesTaken: 0, ...more });
  return store.fenced.append(term.fence, { after, records: [ended] });
}

/** Asserts that the claim was refused with this code; returns the view of the current holder. */
export function refusedClaim(code: ErrorCode, result: AcquireResult): LeaseView | undefined {
  assert.ok(!result.ok, `expected ${code}, but a term was granted`);
  assert.equal(result.error.code, code, result.error.message);
  return result.holder;
}

export async function renewOne(store: Store, term: Term, progress = 0, progressNote?: string): Promise<RenewResult> {
  const renewal = { fence: term.fence, progress, ...(progressNote === undefined ? {} : { progressNote }) };
  const verdicts = await store.claim.renew([renewal]);
  assert.equal(verdicts.length, 1);
  return verdicts[0]!;
}

export async function renewed(store: Store, term: Term, progress = 0, progressNote?: string): Promise<void> {
  const verdict = await renewOne(store, term, progress, progressNote);
  if (!verdict.ok) throw verdict.error;
}

export async function notRenewed(code: ErrorCode, store: Store, term: Term, progress = 0): Promise<void> {
  const verdict = await renewOne(store, term, progress);
  assert.ok(!verdict.ok, `expected ${code}, but the lease was renewed`);
  assert.equal(verdict.error.code, code, verdict.error.message);
}

export async function leaseOf(store: Store, target: LeaseTarget): Promise<LeaseView> {
  const view = await store.read.lease(tenant, target);
  assert.ok(view !== undefined, "a lease is never deleted");
  return view;
}

/** A lease's view without the fields that time changes. */
export function withoutTimes(view: LeaseView): Omit<LeaseView, "remainingMs" | "heldMs" | "progressAgoMs"> {
  const { remainingMs: _r, heldMs: _h, progressAgoMs: _p, ...rest } = view;
  return rest;
}

/** The term history in short: token, start reason, end reason. */
export async function termSummary(store: Store, target: LeaseTarget): Promise<[bigint, string, TermEnd | undefined][]> {
  return (await store.read.terms(tenant, target)).map(({ token, startReason, endReason }) => [
    token,
    startReason,
    endReason,
  ]);
}

export async function lastTerm(store: Store, target: LeaseTarget): Promise<TermView> {
  return (await store.read.terms(tenant, target)).at(-1)!;
}

export function findRequest(more: Partial<FindRequest> = {}): FindRequest {
  const who = claimant(undefined, { reactor: "recovery", ...lasting });
  return {
    claimant: who,
    nextReactor: "recovery",
    staleOf: ["agent", "recovery"],
    limit: 100,
    nonce: nonce(),
    ...more,
  };
}

/** Runs without a holder. */
export async function waitingRuns(
  store: Store,
  count: number,
  of = tenant,
): Promise<{ id: string; journal: number }[]> {
  const specs = Array.from({ length: count }, () => spec());
  const verdicts = await store.intake.createRuns(of, specs);
  return verdicts.map((verdict, k) => {
    if (!verdict.ok) throw verdict.error;
    return { id: specs[k]!.id, journal: verdict.journal };
  });
}

/** Runs held from their creation by one owner, all with the same nonce. */
export async function heldRuns(store: Store, count: number, who = claimant()): Promise<(Term & { id: string })[]> {
  const specs = Array.from({ length: count }, () => spec());
  const verdicts = await store.intake.createRuns(tenant, specs, { ...who, nonce: nonce() });
  return verdicts.map((verdict, k) => {
    if (!verdict.ok) throw verdict.error;
    return { ...verdict.term!, id: specs[k]!.id };
  });
}

/** Named leases whose holders have expired. */
export async function briefTerms(store: Store, count: number): Promise<(Term & { name: string; owner: string })[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const who = claimant(undefined, brief);
      const req = claimForName({ claimant: who });
      return { ...(await acquired(store, req)), name: req.target.name, owner: who.owner };
    }),
  );
}

/** Everything about one run that a late call might change. */
export async function snapshotOfRun(store: Store, run: string): Promise<string> {
  const [records, view, terms] = await Promise.all([
    store.read.journal(tenant, { run }),
    store.read.run(tenant, run),
    store.read.terms(tenant, { run }),
  ]);
  return JSON.stringify({ records, view: { ...view, lease: withoutTimes(view!.lease) }, terms }, bigintText);
}
