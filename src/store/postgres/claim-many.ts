import { makeFence } from "../../model/fence.ts";
import type { Term } from "../../model/lease.ts";
import type { TermReason } from "../../model/records.ts";
import type { LeaseRow } from "../../model/rows.ts";
import { leaseRowOf, startReasonOf } from "../lease-rules.ts";
import { type Plan, query, queryRows } from "../sql/plan.ts";
import {
  type ClaimRequest,
  claimableAs,
  type Found,
  generationOf,
  pinnedBy,
  termStartedBody,
} from "../sql/plans/claim.ts";
import { joinedTexts, numbersLiteral, textsLiteral } from "./arrays.ts";

interface ClaimCandidate {
  readonly lease: LeaseRow;
  readonly now: number;
  readonly name: string | null;
  readonly reason: TermReason;
  readonly found: Found;
}

/**
 * claimFoundPlan for many journals in one transaction, in the same order: read and decide, the CAS of all, then the
 * heads with a newer snapshot, then the term records. A journal missing from the result was rejected, locked, or
 * already claimed by this very find: it is claimed alone.
 */
export function* claimManyPlan(journals: readonly number[], request: ClaimRequest): Plan<Map<number, Term>> {
  const ordered = [...journals].sort((a, b) => a - b);
  const rows = yield* queryRows("leases.read", { journals: numbersLiteral(ordered) });
  const candidates = new Map<number, ClaimCandidate>();
  for (const row of rows) {
    const lease = leaseRowOf(row);
    const now = Number(row.now);
    const found = claimableAs(lease, now, request);
    if (found === undefined) continue;
    const { name } = row;
    candidates.set(lease.journal, { lease, now, name, found, reason: startReasonOf(lease, now) });
  }
  return candidates.size === 0 ? new Map() : yield* claimAll(candidates, request);
}

function* claimAll(candidates: ReadonlyMap<number, ClaimCandidate>, request: ClaimRequest): Plan<Map<number, Term>> {
  const { claimant, nonce } = request;
  const { maxStallMs = null, owner, label, reactor, ttlMs } = claimant;
  const sorted = [...candidates.values()].sort((a, b) => a.lease.journal - b.lease.journal);
  const rows = yield* queryRows("claim_many", {
    ...{ nonce, owner, label, reactor, ttlMs, maxStallMs },
    journals: numbersLiteral(sorted.map(({ lease }) => lease.journal)),
    tokens: numbersLiteral(sorted.map(({ lease }) => lease.token)),
    previousOwners: textsLiteral(sorted.map(({ lease }) => lease.owner)),
    reasons: textsLiteral(sorted.map(({ reason }) => reason)),
  });
  const claimed = numbersLiteral(rows.map((row) => Number(row.journal)));
  const heads = new Map(
    (yield* queryRows("journal.heads", { journals: claimed })).map((row) => [Number(row.journal), Number(row.head)]),
  );
  const terms = new Map<number, Term>();
  const bodies: string[] = [];
  const pinned: number[] = [];
  for (const row of rows) {
    const journal = Number(row.journal);
    const { lease, now, name, reason, found } = candidates.get(journal)!;
    const { kind, tenant, run, queue } = lease;
    const head = heads.get(journal)!;
    const pin = pinnedBy(lease, request);
    if (pin.build !== undefined) pinned.push(journal);
    bodies.push(termStartedBody(lease, now, head, { claimant, nonce, expect: "free_or_expired", ...pin }, reason));
    const fence = makeFence(tenant, journal, BigInt(row.token as string), nonce);
    const term = { fence, journal, kind, tenant, run, ttlMs, head: head + 1, notes: Number(row.notes), reason };
    const named = { ...(name === null ? {} : { name }), ...(queue === null ? {} : { queue }) };
    terms.set(journal, { ...term, ...found, ...named, ...generationOf(row) });
  }
  if (terms.size === 0) return terms;
  yield* query("records.append", {
    journals: claimed,
    kind: "term.started",
    seqs: numbersLiteral([...terms.values()].map(({ head }) => head)),
    tokens: numbersLiteral([...terms.values()].map(({ fence }) => fence.token)),
    bodies: joinedTexts(bodies),
  });
  if (pinned.length > 0) {
    yield* query("claim_many.pin", { journals: numbersLiteral(pinned), build: request.build!.build });
  }
  return terms;
}
