import type { FeedRecord } from "../src/store/contract/store.ts";
import type { Evidence } from "./evidence.ts";
import { reordered } from "./lanes.ts";

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

/** Fault kinds: each must have bitten at each kind of call, and at the writes that matter most both before and after. */
const places = ["append", "claim", "renew", "intake", "read"] as const;
const kinds: readonly (readonly [strike: string, at: string, edges: readonly (string | undefined)[]])[] = [
  ...["append", "claim", "act"].flatMap((at) =>
    ["crash", "pause"].map((strike) => [strike, at, ["before", "after"]] as const),
  ),
  ...["intake", "read"].flatMap((at) => ["crash", "pause"].map((strike) => [strike, at, [undefined]] as const)),
  ...places.map((at) => ["fail", at, at === "renew" || at === "read" ? [undefined] : ["before", "after"]] as const),
  ...places.map((at) => ["hang", at, at === "append" ? ["before", "after"] : [undefined]] as const),
  ["pause", "renew", [undefined]],
  ...places.filter((at) => at !== "renew").map((at) => ["busy", at, [undefined]] as const),
  ["fail", "wire", ["before", "after"]],
  ...["hang", "busy", "double", "late", "gateway"].map((strike) => [strike, "wire", [undefined]] as const),
];
const bitten: [string, Mark][] = kinds.flatMap(([strike, at, edges]) =>
  edges.map((edge): [string, Mark] => [
    `${strike} ${edge ?? "at"} ${at}`,
    ({ bites }) =>
      bites.some(
        ({ fault }) =>
          fault.strike === strike &&
          (fault.at === "ask" ? "wire" : fault.at) === at &&
          (edge === undefined || fault.edge === edge),
      ),
  ]),
);

const deed =
  (what: string): Mark =>
  ({ deeds }) =>
    deeds.some((one) => one.what === what && one.at !== undefined);
const began =
  (reason: string): Mark =>
  ({ feed }) =>
    feed.some((r) => r.kind === "term.started" && r.data.reason === reason);
/** How often the singleton's lease changed hands. */
const sweepers = ({ sweeps }: Evidence): number => new Set(sweeps.map(({ token }) => token)).size;
const stepped =
  (forward: boolean): Mark =>
  ({ plan, virtualMs }) =>
    plan.clocks.some(({ steps }) => steps.some(({ atMs, byMs }) => atMs < virtualMs && byMs > 0 === forward));

/** States and turns worth reaching: a suite that never reaches one of them proves nothing about it. */
export const coverageMarks: Readonly<Record<string, Mark>> = {
  ...Object.fromEntries(bitten),
  "a process's clock stepped forward": stepped(true),
  "a process's clock stepped back": stepped(false),
  "a process's clock was wrong": ({ plan }) => plan.clocks.some(({ offMs, drift }) => offMs !== 0 && drift !== 0),
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
  "notes raced the parking": refused("TAPE_NOTES_PENDING"),
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
        r.kind === "cancel.requested" &&
        effects.some(({ run, createdAt, changedAt }) => run === r.journal && createdAt < r.at && changedAt > r.at),
    ),
  "gate answered": some((r) => r.kind === "gate.resolved" && r.data.to === "RECEIVED"),
  "gate timed out": some((r) => r.kind === "gate.resolved" && r.data.to === "TIMED_OUT"),
  "sleep ended by its driver": some((r) => r.kind === "sleep.ended" && r.data.fired === true),
  "sleep ended by a note": some((r) => r.kind === "timer.fired" && r.data.purpose === "sleep"),
  "slept until a moment": some((r) => r.kind === "timer.set" && r.data.until !== undefined),
  "signal before its gate": ({ feed }) =>
    feed.some(
      (r) =>
        r.kind === "gate.resolved" &&
        feed.some(
          (o) => o.in === "inbox" && o.journal === r.journal && o.seq === r.data.note && o.at < openedAt(feed, r),
        ),
    ),
  "a run driven over the wire": ({ plan, runs }) =>
    plan.remote.every((remote) => remote) && runs.some(({ status }) => status === "COMPLETED"),
  "wire and store side by side": ({ plan }) => plan.remote.includes(true) && plan.remote.includes(false),
  "a client's request went wrong on the wire": ({ bites }) => bites.some(({ fault }) => fault.at === "ask"),
  "keyless signal sent": ({ client }) => client.said.some(({ acknowledged }) => acknowledged),
  "started again": ({ plan, client }) =>
    plan.runs.some(({ again }) => again?.other === false) && client.faults.length === 0,
  "started again as something else": ({ client }) => client.met.has("TAPE_RUN_CONFLICT"),
  "went back in time": ({ lost }) => lost !== undefined,
  "went back and forgot a run": ({ lost }) => lost?.feed.some(({ kind }) => kind === "run.created") === true,
  "went back and forgot an act": ({ lost }) => lost?.feed.some(({ kind }) => kind === "effect.dispatched") === true,
  "went back and forgot a term": ({ lost }) => lost?.feed.some(({ kind }) => kind === "term.started") === true,
  "holder met a restored store": ({ lost, refusals }) => lost !== undefined && refusals.has("TAPE_FENCED"),
  "schedule fired": ({ runs }) => runs.filter(({ labels }) => labels.schedule !== undefined).length > 1,
  "schedule paused": ({ schedules }) =>
    schedules.some(({ did }) => did.some(({ what, to }) => what === "resume" && to < Number.POSITIVE_INFINITY)),
  "schedule caught up": ({ runs }) =>
    runs.some(({ id, createdAt, labels }) => labels.schedule !== undefined && createdAt > slotAt(id) + 2_000),
  "singleton changed hands": (evidence) => sweepers(evidence) > 1,
  "singleton taken over after its holder's time": ({ named, feed }) =>
    feed.some((r) => named.has(r.journal) && r.kind === "term.started" && r.data.previous?.end === "expired"),
  "singleton's write refused": ({ sweeps }) => sweeps.some(({ what }) => what === "refused"),
  "operator took over a run": deed("take over"),
  "operator redrove a run": deed("redrive"),
  "operator forked a run": deed("fork"),
  "operator paused the singleton": deed("pause the singleton"),
  "operator took the singleton": deed("take the singleton"),
  "term begun by a person": began("manual"),
  "value written": ({ values }) => values.some(({ input, output }) => input.op === "put" && output !== undefined),
  "value's writers raced": ({ values }) => values.some(({ output }) => output === "conflict"),
  "value deleted": ({ values }) =>
    values.some(({ input, output }) => input.op === "delete" && output !== undefined && output !== "conflict"),
  "value write whose answer was lost": ({ values }) =>
    values.some(({ input, ret }) => input.op !== "read" && ret === Number.POSITIVE_INFINITY),
  "value watched": ({ watched }) => watched.some((seen) => seen.length > 1),
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
      return role === "compensation" && status === "COMPENSATED" && above !== undefined && above.journal !== root;
    }),
  "a stranger came with a present holder's fence": ({ strangers }) =>
    strangers.some(({ what, current }) => current && /append|park|renew|acquire/.test(what)),
  "a stranger was refused": ({ strangers }) => strangers.some(({ got }) => got !== "nothing"),
  "a stranger saw nothing": ({ strangers }) => strangers.some(({ got }) => got === "nothing"),
  "quota refused a run": ({ quotas }) => quotas.some(({ refused }) => refused.includes("runs")),
  "quota refused a schedule": ({ quotas }) => quotas.some(({ refused }) => refused.includes("schedules")),
  "quota refused for its bytes": ({ quotas }) => quotas.some(({ refused }) => refused.includes("bytes")),
  "children beyond a quota": ({ quotas }) =>
    quotas.some(({ what, open, limits }) => what === "child" && limits.runs !== null && open > limits.runs),
  "bytes of a quota pruned": ({ quotas }) =>
    quotas.some(({ what, used }, k) => what === "prune" && (used.bytes ?? 0) < (quotas[k - 1]?.used.bytes ?? 0)),
  "list changed while it was read": ({ walks }) =>
    walks.some(({ seen, rows, before, after }) => seen.length > rows && before.join() !== after.join()),
  "deletion erased one key of two": ({ keptValues }) =>
    keptValues.length > 1 && new Set(keptValues.map(({ expected }) => expected[0]?.deleted)).size > 1,
  "door refused an old token": ({ knocks }) => knocks.some(({ what }) => what === "refused"),
  "door kept a newer token waiting": ({ knocks }) =>
    knocks.some((one, k) => one.what === "came" && isInside(knocks.slice(0, k), one.token)),
  "door's guard table failed": ({ knocks }) => knocks.some(({ what }) => what === "failed"),
  "not an approver": ({ guarded }) => guarded.some(({ told }) => told === "TAPE_NOT_APPROVER"),
  "approver answered": some((r) => r.in === "inbox" && r.kind === "signal.sent" && r.data.approves !== undefined),
  "signal that did not fit its gate": some((r) => r.kind === "signal.refused"),
  "cancelled before it began": ({ runs }) => runs.some(({ id, status }) => id === "unbegun" && status === "CANCELLED"),
  "audit with several entries": ({ audit }) => audit.length > 2,
  "fork of what was undone refused": ({ deeds }) => deeds.some((one) => one.refused === "TAPE_BAD_FORK_POINT"),
  "fork that named nothing undone": deed("fork unnamed"),
  "store's clock set while runs slept": ({ plan, feed, virtualMs }) =>
    plan.wallStep !== undefined && virtualMs > plan.wallStep.atMs && feed.some(({ kind }) => kind === "timer.set"),
  "lanes side by side": some((r) => r.kind === "lane.opened" && r.data.lane > 1),
  "lane's answer from an earlier execution": ({ handed }) => handed.some(({ called }) => !called),
  "lanes asked in another order": ({ handed }) => reordered(handed),
  "race won": some((r) => r.kind === "race.won"),
  "child failed": ({ runs }) => runs.some(({ parent, status }) => parent !== null && status !== "COMPLETED"),
  "child's obligation undone by its root": ({ effects }) =>
    effects.some(({ role, run, root, status }) => role === "compensation" && run !== root && status === "COMPENSATED"),
};

/** Somebody with an older token was let in and has not left. */
function isInside(knocks: Evidence["knocks"], token: bigint): boolean {
  const count = (of: string): number => knocks.filter((one) => one.what === of && one.token < token).length;
  return count("in") > count("out");
}

const slotAt = (id: string): number => Date.parse(id.slice(id.indexOf("@") + 1));

const openedAt = (feed: readonly FeedRecord[], resolved: FeedRecord): number => {
  const { pos } = resolved.data as { pos: number };
  const opened = (r: FeedRecord): boolean =>
    r.in === "journal" && r.journal === resolved.journal && r.kind === "gate.opened" && r.data.pos === pos;
  return feed.find(opened)?.at ?? 0;
};

export function marksOf(evidence: Evidence): string[] {
  return Object.entries(coverageMarks).flatMap(([name, mark]) => (mark(evidence) ? [name] : []));
}
