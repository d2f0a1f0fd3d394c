import type { FeedRecord } from "../../src/store/contract/store.ts";
import type { Evidence } from "../evidence.ts";
import { recordsOf } from "./journal.ts";
import { each, exempt, type Invariant } from "./judge.ts";

/**
 * A term that starts before the previous one expired is an operator's decision, and names the operator and the reason.
 */
export const takeoversHaveReasons: Invariant = ({ feed }) =>
  each(feed, (record) => {
    if (record.kind !== "term.started" || record.data.reason !== "manual") return exempt;
    const { by, auditReason, owner } = record.data;
    return by !== undefined && auditReason !== undefined
      ? []
      : [`journal ${record.journal}: ${owner} took token ${record.token} before expiry, without an operator's request`];
  });

/** Only the current term is renewed: not after it was replaced, and not after it was released. */
export const onlyCurrentTermRenews: Invariant = (evidence) =>
  each(evidence.renewals, ({ ok, journal, token, at }) => {
    if (!ok) return exempt;
    const over = (r: FeedRecord): boolean => r.token > token || (r.token === token && endsTerm(r));
    return recordsOf(evidence, journal).some((record) => over(record) && record.at < Math.floor(at))
      ? [`journal ${journal} was renewed under ${token}, whose term had ended`]
      : [];
  });

const endsTerm = ({ kind }: FeedRecord): boolean => kind === "term.ended" || kind === "run.ended";

/** A takeover after expiry waits a full TTL from the grant or the last renewal. */
export const takeoversWaitForExpiry: Invariant = (evidence) =>
  each(evidence.feed, (record) => {
    if (record.kind !== "term.started" || record.data.previous === undefined) return exempt;
    const { reason, previous, owner } = record.data;
    const early = reason === "manual" || reason === "stalled" || previous.endReason === "superseded";
    const before = early ? undefined : grantOf(evidence, record.journal, BigInt(previous.token));
    if (before === undefined) return exempt;
    const renewed = evidence.renewals.findLast(
      ({ ok, journal, token, at }) =>
        ok && journal === record.journal && token === BigInt(previous.token) && at <= record.at,
    );
    const until = Math.floor(Math.max(before.at, renewed?.at ?? 0)) + before.ttlMs;
    return record.at >= until
      ? []
      : [`journal ${record.journal}: ${owner} took over ${until - record.at} ms before expiry`];
  });

interface Grant {
  readonly at: number;
  readonly ttlMs: number;
}

/** When the term of this token started, and its TTL. */
function grantOf(evidence: Evidence, journal: number, token: bigint): Grant | undefined {
  const records = recordsOf(evidence, journal);
  for (const record of records) {
    if (record.kind === "term.started" && record.token === token) return { at: record.at, ttlMs: record.data.ttlMs };
  }
  const [first] = records;
  const holder = first?.kind === "run.created" ? first.data.holder : undefined;
  const isFirst = records.every((record) => record.kind !== "term.started" || record.token > token);
  return holder === undefined || !isFirst ? undefined : { at: first!.at, ttlMs: holder.ttlMs };
}
