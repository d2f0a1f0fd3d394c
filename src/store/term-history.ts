import type { LeaseView, TermView } from "../model/lease.ts";
import type { JournalRecord } from "../model/records.ts";

/**
 * The term history, folded from the journal: why each term started and ended. If a holder did not record the end of its
 * term, its successor did, in its own first record. A restored store recorded neither, which reads as superseded.
 */
export function termHistoryOf(records: readonly JournalRecord[], lease: LeaseView): TermView[] {
  const terms: TermView[] = [];
  const amend = (token: bigint, more: Partial<TermView>): void => {
    const k = terms.findLastIndex((term) => term.token === token);
    if (k >= 0) terms[k] = { ...terms[k]!, ...more };
  };
  for (const record of records) {
    const { at, token } = record;
    switch (record.kind) {
      case "run.created": {
        if (record.data.holder === undefined) break;
        const { owner, label, reactor } = record.data.holder;
        // Held from its creation: record 1 is written under token 0, the term's own token appears from the next record
        // on.
        terms.push({ owner, label, reactor, ...blank, token: 0n, startedAt: at, startReason: "start" });
        break;
      }
      case "term.started": {
        const { owner, label, reactor, reason, by, auditReason, previous } = record.data;
        if (previous !== undefined) {
          const { token: previousToken, ...figures } = previous;
          adoptFirst(terms, BigInt(previousToken));
          amend(BigInt(previousToken), { ...withoutUndefined(figures), endedAt: at });
        }
        terms.push({
          owner,
          label,
          reactor,
          token,
          startedAt: at,
          startReason: reason,
          ...withoutUndefined({ by, auditReason }),
          ...blank,
        });
        break;
      }
      case "term.ended":
      case "run.ended": {
        const end = record.kind === "term.ended" ? record.data.reason : "released";
        adoptFirst(terms, token);
        amend(token, { endReason: end, endedAt: at, ...withoutUndefined(record.data.term ?? {}) });
        break;
      }
      default:
    }
  }
  return finish(terms, lease);
}

const blank = { renewals: 0, longestGapMs: 0, progress: 0 };

function adoptFirst(terms: TermView[], token: bigint): void {
  const first = terms[0];
  if (first !== undefined && first.token === 0n) terms[0] = { ...first, token };
}

function finish(terms: TermView[], lease: LeaseView): TermView[] {
  const last = terms.length - 1;
  return terms.map((term, k) => {
    if (term.endReason !== undefined) return term;
    if (k === last && lease.owner !== null) {
      const { token, renewals, longestGapMs, progress, progressNote } = lease;
      return {
        ...term,
        token,
        renewals,
        longestGapMs,
        progress,
        ...withoutUndefined({ progressNote: progressNote ?? undefined }),
      };
    }
    return { ...term, endReason: "superseded" };
  });
}

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

function withoutUndefined<T extends object>(value: T): Partial<Defined<T>> {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as Partial<Defined<T>>;
}
