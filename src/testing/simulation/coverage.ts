import type { FeedRecord } from "../../store/contract.ts";
import type { Evidence } from "./evidence.ts";

type Mark = (evidence: Evidence) => boolean;

const some =
  (test: (record: FeedRecord) => boolean): Mark =>
  ({ feed }) =>
    feed.some(test);
const settled = (to: string, reason: string): Mark =>
  some(
    (r) =>
      (r.kind === "effect.settled" || r.kind === "obligation.settled") && r.data.to === to && r.data.reason === reason,
  );
const ended =
  (status: string): Mark =>
  ({ runs }) =>
    runs.some((run) => run.status === status);
const refused =
  (code: string): Mark =>
  ({ refusals }) =>
    refusals.has(code);

/** Fault kinds: each must have bitten before and after each kind of call. */
const kinds: readonly (readonly [string, string])[] = [
  ...["append", "claim", "intake", "read", "act"].flatMap((at) => [["crash", at] as const, ["pause", at] as const]),
  ...["append", "claim", "intake", "read"].map((at) => ["fail", at] as const),
];
const bitten: [string, Mark][] = kinds.flatMap(([strike, at]) =>
  ["before", "after"].map((edge): [string, Mark] => [
    `${strike} ${edge} ${at}`,
    ({ bites }) => bites.some(({ fault }) => fault.strike === strike && fault.at === at && fault.edge === edge),
  ]),
);

/** States and turns worth reaching: a suite that never reaches one of them proves nothing about it. */
export const coverageMarks: Readonly<Record<string, Mark>> = {
  ...Object.fromEntries(bitten),
  "dead for ever": ({ bites }) => bites.some(({ fault }) => fault.strike === "crash" && fault.forMs === undefined),
  "takeover in mid-effect, sent again": settled("PENDING", "lease_lost"),
  "takeover in mid-effect, in doubt": settled("UNKNOWN", "lease_lost"),
  "answer lost, in doubt": settled("UNKNOWN", "ack_lost"),
  "doubt settled by a look": settled("CONFIRMED", "observed"),
  "doubt settled by absence": settled("FAILED", "ABSENT"),
  "late answer left as evidence": some((r) => r.in === "inbox" && r.kind === "effect.evidence"),
  "evidence used": settled("CONFIRMED", "evidence"),
  "look inconclusive": some((r) => r.kind === "effect.observed" && r.data.observation === "inconclusive"),
  "doubt that nobody can settle": settled("STUCK", "unobservable"),
  "inverse in doubt": some((r) => r.kind === "obligation.settled" && r.data.to === "UNKNOWN"),
  "inverse sent again": some((r) => r.kind === "obligation.settled" && r.data.to === "PENDING"),
  "stale token refused": refused("TAPE_FENCED"),
  "budget refused": refused("TAPE_BUDGET_EXCEEDED"),
  "business key refused": refused("TAPE_BUSINESS_KEY_TAKEN"),
  "notes raced the parking": refused("TAPE_NOTES_WAIT"),
  "run completed": ended("COMPLETED"),
  "run failed": ended("FAILED"),
  "run cancelled": ended("CANCELLED"),
  "run compensated": ended("COMPENSATED"),
  "run retried": some((r) => r.kind === "run.retried"),
  "run retried after it had cleaned up": some((r) => r.kind === "run.retried" && r.data.from !== undefined),
  "run ended with a decision of its own": some((r) => r.kind === "run.decided"),
  "effect withdrawn": ({ effects }) => effects.some(({ status }) => status === "WITHDRAWN"),
  "cancel raced an act": ({ feed, effects }) =>
    feed.some(
      (r) =>
        r.kind === "cancel.asked" &&
        effects.some(({ run, createdAt, changedAt }) => run === r.journal && createdAt < r.at && changedAt > r.at),
    ),
  "gate answered": some((r) => r.kind === "gate.resolved" && r.data.to === "RECEIVED"),
  "gate timed out": some((r) => r.kind === "gate.resolved" && r.data.to === "TIMED_OUT"),
  "signal before its gate": ({ feed }) =>
    feed.some(
      (r) =>
        r.kind === "gate.resolved" &&
        feed.some(
          (o) => o.in === "inbox" && o.journal === r.journal && o.seq === r.data.note && o.at < openedAt(feed, r),
        ),
    ),
  "five replicas": ({ plan }) => plan.replicas === 5,
  "cut off before it was healed": ({ plan }) => !plan.heals,
  "run stuck on a doubt while live": ({ feed }) =>
    feed.some((r) => r.kind === "run.stuck" && !feed.some((o) => o.kind === "run.decided" && o.journal === r.journal)),
  "run went on after a person's word": some((r) => r.kind === "run.unstuck"),
  "person says that it happened": settled("CONFIRMED", "operator"),
  "person says that it failed": settled("FAILED", "operator"),
  "person has it sent again": settled("PENDING", "operator"),
  "person settles an inverse": settled("COMPENSATED", "operator"),
  "idempotent act that never gets through": settled("STUCK", "exhausted"),
  "duplicate found": settled("CONFIRMED", "duplicate"),
  "surplus act undone": ({ effects }) => effects.some(({ surplus, status }) => surplus && status === "COMPENSATED"),
  "said late that it was not sent": ({ feed }) =>
    feed.some((r) => r.in === "inbox" && r.kind === "effect.evidence" && !r.data.happened),
  "budget closed with its run": some((r) => r.kind === "budget.charged" && r.data.for === undefined),
  "child's obligation undone in the middle of its tree": ({ runs, effects }) =>
    effects.some(({ role, run, root, status }) => {
      const above = runs.find(({ journal }) => journal === runs.find((one) => one.journal === run)?.parent);
      return role === "inverse" && status === "COMPENSATED" && above !== undefined && above.journal !== root;
    }),
  "race won": some((r) => r.kind === "race.won"),
  "child failed": ({ runs }) => runs.some(({ parent, status }) => parent !== null && status !== "COMPLETED"),
  "child's obligation undone by its root": ({ effects }) =>
    effects.some(({ role, run, root, status }) => role === "inverse" && run !== root && status === "COMPENSATED"),
};

const openedAt = (feed: readonly FeedRecord[], resolved: FeedRecord): number => {
  const { pos } = resolved.data as { pos: number };
  const opened = (r: FeedRecord): boolean =>
    r.in === "journal" && r.journal === resolved.journal && r.kind === "gate.opened" && r.data.pos === pos;
  return feed.find(opened)?.at ?? 0;
};

export function marksOf(evidence: Evidence): string[] {
  return Object.entries(coverageMarks).flatMap(([name, mark]) => (mark(evidence) ? [name] : []));
}
