import { sinkLease } from "../src/model/dead-letter.ts";
import { isTapeError } from "../src/model/errors.ts";
import type { FeedRecord } from "../src/store/contract/store.ts";
import { generationMarks } from "./coverage-generations.ts";
import type { Evidence } from "./evidence.ts";
import { isStuckByStalls } from "./invariants/journal.ts";
import { type RosterRun, rosterRuns } from "./invariants/objects.ts";
import { replayedElsewhere } from "./invariants/scopes.ts";
import { reordered } from "./lanes.ts";
import { isNested } from "./scope-work.ts";
import { shardedName } from "./shard-work.ts";
import type { ArchiveEvent } from "./world-archive.ts";
import { sinkName } from "./world-sink.ts";

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

const archived =
  (what: ArchiveEvent): Mark =>
  ({ retention }) =>
    retention?.archive.includes(what) === true;

/** Every kind of fault must hit every kind of call. At the most important writes it must hit both before and after. */
const places = ["append", "claim", "renew", "intake", "read"] as const;
const kinds: readonly (readonly [kind: string, at: string, edges: readonly (string | undefined)[]])[] = [
  ...["append", "claim", "effect"].flatMap((at) =>
    ["crash", "pause"].map((kind) => [kind, at, ["before", "after"]] as const),
  ),
  ...["intake", "read"].flatMap((at) => ["crash", "pause"].map((kind) => [kind, at, [undefined]] as const)),
  ...places.map((at) => ["fail", at, at === "renew" || at === "read" ? [undefined] : ["before", "after"]] as const),
  ...places.map((at) => ["hang", at, at === "append" ? ["before", "after"] : [undefined]] as const),
  ["pause", "renew", [undefined]],
  ...places.filter((at) => at !== "renew").map((at) => ["busy", at, [undefined]] as const),
  ["fail", "wire", ["before", "after"]],
  ...["hang", "busy", "double", "late", "gateway"].map((kind) => [kind, "wire", [undefined]] as const),
];
const faultMarks: [string, Mark][] = kinds.flatMap(([kind, at, edges]) =>
  edges.map((edge): [string, Mark] => [
    `${kind} ${edge ?? "at"} ${at}`,
    ({ faultHits }) =>
      faultHits.some(
        ({ fault }) =>
          fault.kind === kind &&
          (fault.at === "client" ? "wire" : fault.at) === at &&
          (edge === undefined || fault.edge === edge),
      ),
  ]),
);

const action =
  (what: string): Mark =>
  ({ actions }) =>
    actions.some((one) => one.what === what && one.at !== undefined);
const started =
  (reason: string): Mark =>
  ({ feed }) =>
    feed.some((r) => r.kind === "term.started" && r.data.reason === reason);
/** How many terms the singleton's lease had. */
const sweepers = ({ sweeps }: Evidence): number => new Set(sweeps.map(({ token }) => token)).size;
const stepped =
  (forward: boolean): Mark =>
  ({ plan, virtualMs }) =>
    plan.clocks.some(({ steps }) => steps.some(({ atMs, byMs }) => atMs < virtualMs && byMs > 0 === forward));

/** A run of a handler for which this holds. */
const handler =
  (test: (run: RosterRun, all: readonly RosterRun[], evidence: Evidence) => boolean): Mark =>
  (evidence) => {
    const all = rosterRuns(evidence);
    return all.some((run) => test(run, all, evidence));
  };

/** States worth reaching: a suite that never reaches one proves nothing about it. */
export const coverageMarks: Readonly<Record<string, Mark>> = {
  ...Object.fromEntries(faultMarks),
  "a process's clock stepped forward": stepped(true),
  "a process's clock stepped back": stepped(false),
  "a process's clock was wrong": ({ plan }) => plan.clocks.some(({ offMs, drift }) => offMs !== 0 && drift !== 0),
  "sender paused after its authorisation": ({ faultHits }) => faultHits.some(({ fault }) => fault.at === "dispatch"),
  "process paused before the commit of a step": ({ faultHits }) =>
    faultHits.some(({ fault }) => fault.at === "commit" && fault.kind === "pause"),
  "response to the commit of a step lost": ({ faultHits }) =>
    faultHits.some(({ fault }) => fault.at === "commit" && fault.kind === "fail"),
  "crash without restart": ({ faultHits }) =>
    faultHits.some(({ fault }) => fault.kind === "crash" && fault.forMs === undefined),
  "takeover during an effect, retried": settled("PENDING", "lease_lost"),
  "takeover during an effect, in doubt": settled("UNKNOWN", "lease_lost"),
  "response lost, in doubt": settled("UNKNOWN", "ack_lost"),
  "in doubt when its run ended": settled("UNKNOWN", "run_ending"),
  "observed: confirmed": settled("CONFIRMED", "observed"),
  "proven absent, sent again": settled("PENDING", "ABSENT"),
  "observed: absent": settled("FAILED", "ABSENT"),
  "late response recorded as evidence": some((r) => r.in === "inbox" && r.kind === "effect.evidence"),
  "evidence used": settled("CONFIRMED", "evidence"),
  "observed: inconclusive": some((r) => r.kind === "effect.observed" && r.data.observation === "inconclusive"),
  "stuck without an observer": settled("STUCK", "unobservable"),
  "compensation in doubt": some((r) => r.kind === "obligation.settled" && r.data.to === "UNKNOWN"),
  "compensation retried": some((r) => r.kind === "obligation.settled" && r.data.to === "PENDING"),
  "stale token refused": refused("TAPE_FENCED"),
  "budget refused": refused("TAPE_BUDGET_EXCEEDED"),
  "business key refused": refused("TAPE_BUSINESS_KEY_TAKEN"),
  "note raced a park": refused("TAPE_NOTES_PENDING"),
  "run completed": ended("COMPLETED"),
  "run failed": ended("FAILED"),
  "run cancelled": ended("CANCELLED"),
  "run compensated": ended("COMPENSATED"),
  "run retried": some((r) => r.kind === "run.retried"),
  "run retried after its cleanup": some((r) => r.kind === "run.retried" && r.data.from !== undefined),
  "run decided before its end": some((r) => r.kind === "run.decided"),
  "effect withdrawn": ({ effects }) => effects.some(({ status }) => status === "WITHDRAWN"),
  "cancel raced an effect": ({ feed, effects }) =>
    feed.some(
      (r) =>
        r.kind === "cancel.requested" &&
        effects.some(({ run, createdAt, changedAt }) => run === r.journal && createdAt < r.at && changedAt > r.at),
    ),
  "gate answered": some((r) => r.kind === "gate.resolved" && r.data.to === "RECEIVED"),
  "gate timed out": some((r) => r.kind === "gate.resolved" && r.data.to === "TIMED_OUT"),
  "sleep ended by its driver": some((r) => r.kind === "sleep.ended" && r.data.fired === true),
  "sleep ended by a note": some((r) => r.kind === "timer.fired" && r.data.purpose === "sleep"),
  "slept until a date": some((r) => r.kind === "timer.set" && r.data.until !== undefined),
  "signal before its gate": ({ feed }) =>
    feed.some(
      (r) =>
        r.kind === "gate.resolved" &&
        feed.some(
          (o) => o.in === "inbox" && o.journal === r.journal && o.seq === r.data.note && o.at < openedAt(feed, r),
        ),
    ),
  "run driven over the wire": ({ plan, runs }) =>
    plan.remote.every((remote) => remote) && runs.some(({ status }) => status === "COMPLETED"),
  "remote and local replicas together": ({ plan }) => plan.remote.includes(true) && plan.remote.includes(false),
  "client request failed on the wire": ({ faultHits }) => faultHits.some(({ fault }) => fault.at === "client"),
  "keyless signal sent": ({ client }) => client.keylessSignals.some(({ acknowledged }) => acknowledged),
  "started again": ({ plan, client }) =>
    plan.runs.some(({ again }) => again?.other === false) && client.faults.length === 0,
  "started again with another input": ({ client }) => client.refusalCodes.has("TAPE_RUN_CONFLICT"),
  "store went back": ({ lost }) => lost !== undefined,
  "store went back and lost a run": ({ lost }) => lost?.feed.some(({ kind }) => kind === "run.created") === true,
  "store went back and lost a dispatch": ({ lost }) =>
    lost?.feed.some(({ kind }) => kind === "effect.dispatched") === true,
  "store went back and lost a term": ({ lost }) => lost?.feed.some(({ kind }) => kind === "term.started") === true,
  "holder refused by a restored store": ({ lost, refusals }) => lost !== undefined && refusals.has("TAPE_FENCED"),
  "schedule fired": ({ runs }) => runs.filter(({ labels }) => labels.schedule !== undefined).length > 1,
  "schedule paused": ({ schedules }) =>
    schedules.some(({ did }) => did.some(({ what, to }) => what === "resume" && to < Number.POSITIVE_INFINITY)),
  "schedule caught up": ({ runs }) =>
    runs.some(({ id, createdAt, labels }) => labels.schedule !== undefined && createdAt > slotAt(id) + 2_000),
  "singleton changed hands": (evidence) => sweepers(evidence) > 1,
  "singleton taken over after expiry": ({ named, feed }) =>
    feed.some((r) => named.has(r.journal) && r.kind === "term.started" && r.data.previous?.endReason === "expired"),
  "singleton's write refused": ({ sweeps }) => sweeps.some(({ what }) => what === "refused"),
  "operator took over a run": action("take over"),
  "operator redrove a run": action("redrive"),
  "operator forked a run": action("fork"),
  "operator paused the singleton": action("pause the singleton"),
  "operator took over the singleton": action("take the singleton"),
  "term started by an operator": started("manual"),
  "value written": ({ values }) => values.some(({ input, output }) => input.op === "put" && output !== undefined),
  "value writers raced": ({ values }) => values.some(({ output }) => output === "conflict"),
  "value deleted": ({ values }) =>
    values.some(({ input, output }) => input.op === "delete" && output !== undefined && output !== "conflict"),
  "value write with a lost response": ({ values }) =>
    values.some(({ input, ret }) => input.op !== "read" && ret === Number.POSITIVE_INFINITY),
  "value watched": ({ watched }) => watched.some((seen) => seen.length > 1),
  "five replicas": ({ plan }) => plan.replicas === 5,
  "cut off before healing": ({ plan }) => !plan.heals,
  "run stuck on an effect before its end": ({ feed }) =>
    feed.some((r) => r.kind === "run.stuck" && !feed.some((o) => o.kind === "run.decided" && o.journal === r.journal)),
  "run unstuck by an operator": some((r) => r.kind === "run.unstuck"),
  "operator resolved as confirmed": settled("CONFIRMED", "operator"),
  "operator resolved as failed": settled("FAILED", "operator"),
  "operator resolved as retry": settled("PENDING", "operator"),
  "operator resolved a compensation": settled("COMPENSATED", "operator"),
  "idempotent effect out of attempts": settled("STUCK", "exhausted"),
  "duplicate observed": settled("CONFIRMED", "duplicate"),
  "surplus compensated": ({ effects }) => effects.some(({ surplus, status }) => surplus && status === "COMPENSATED"),
  "late evidence of a send that failed": ({ feed }) =>
    feed.some((r) => r.in === "inbox" && r.kind === "effect.evidence" && !r.data.happened),
  "budget closed at the end of a run": some((r) => r.kind === "budget.charged" && r.data.reservation === undefined),
  "child's obligation compensated by its parent": ({ runs, effects }) =>
    effects.some(({ role, run, root, status }) => {
      const above = runs.find(({ journal }) => journal === runs.find((one) => one.journal === run)?.parent);
      return role === "compensation" && status === "COMPENSATED" && above !== undefined && above.journal !== root;
    }),
  "stranger used a current holder's fence": ({ strangers }) =>
    strangers.some(({ what, current }) => current && /append|park|renew|acquire/.test(what)),
  "stranger refused": ({ strangers }) => strangers.some(({ got }) => got !== "nothing"),
  "stranger saw nothing": ({ strangers }) => strangers.some(({ got }) => got === "nothing"),
  "quota refused a run": ({ quotas }) => quotas.some(({ refused }) => refused.includes("runs")),
  "quota refused a schedule": ({ quotas }) => quotas.some(({ refused }) => refused.includes("schedules")),
  "quota refused bytes": ({ quotas }) => quotas.some(({ refused }) => refused.includes("bytes")),
  "children beyond a quota": ({ quotas }) =>
    quotas.some(({ what, open, limits }) => what === "child" && limits.runs !== null && open > limits.runs),
  "prune freed quota bytes": ({ quotas }) =>
    quotas.some(({ what, used }, k) => what === "prune" && (used.bytes ?? 0) < (quotas[k - 1]?.used.bytes ?? 0)),
  "list changed between pages": ({ walks }) =>
    walks.some(({ seen, rows, before, after }) => seen.length > rows && before.join() !== after.join()),
  "deletion erased one key of two": ({ keptValues }) =>
    keptValues.length > 1 && new Set(keptValues.map(({ expected }) => expected[0]?.deleted)).size > 1,
  "request fence refused an old token": ({ fenceEvents }) => fenceEvents.some(({ what }) => what === "refused"),
  "request fence made a newer token wait": ({ fenceEvents }) =>
    fenceEvents.some((one, k) => one.what === "arrived" && isInside(fenceEvents.slice(0, k), one.token)),
  "guard table failed": ({ fenceEvents }) => fenceEvents.some(({ what }) => what === "failed"),
  "signal from a non-approver": ({ guarded }) => guarded.some(({ result }) => result === "TAPE_NOT_APPROVER"),
  "approver answered": some((r) => r.in === "inbox" && r.kind === "signal.sent" && r.data.approves !== undefined),
  "signal that did not match its gate": some((r) => r.kind === "signal.refused"),
  "cancelled before its first term": ({ runs }) =>
    runs.some(({ id, status }) => id === "unstarted" && status === "CANCELLED"),
  "audit with several entries": ({ audit }) => audit.length > 2,
  "fork of a compensated effect refused": ({ actions }) => actions.some((one) => one.refused === "TAPE_BAD_FORK_POINT"),
  "fork without compensated effects": action("fork unnamed"),
  "store's clock set while runs slept": ({ plan, feed, virtualMs }) =>
    plan.wallStep !== undefined && virtualMs > plan.wallStep.atMs && feed.some(({ kind }) => kind === "timer.set"),
  "step committed with its rows": some((r) => r.kind === "step.done" && r.data.transaction === true),
  "caller's transaction committed": ({ bookings }) => bookings.some(({ run }) => run === ""),
  "step retried": some((r) => r.kind === "step.failed" && r.data.timer !== true),
  "step retried after a timer": some((r) => r.kind === "step.failed" && r.data.timer === true),
  "step timed out": some((r) => r.kind === "step.failed" && isTapeError(r.data.error, "TAPE_TIMEOUT")),
  "step retried in another process": ({ trialCalls }) =>
    trialCalls.some(({ run, trial, process }) =>
      trialCalls.some((one) => one.run === run && one.trial.name === trial.name && one.process !== process),
    ),
  "outage outlasted": some((r) => r.kind === "step.failed" && (r.data.outage?.ms ?? 0) > 20_000),
  "run stuck after an outage": some((r) => r.kind === "step.failed" && r.data.outage?.gaveUp === true),
  "blob recorded": ({ blobs }) => blobs.size > 0,
  "call lost and presumed": some((r) => r.kind === "budget.presumed"),
  "stream rewound": ({ streams }) => streams.seen.some((chunk) => "rewound" in chunk),
  "chunks refused or lost": ({ faultHits }) => faultHits.some(({ fault }) => fault.at === "chunks"),
  "streams side by side": ({ streams }) => new Set(streams.seen.map(({ part }) => part)).size > 2,
  "payloads encrypted with two keys": ({ sealed }) =>
    ["old", "new"].every((key) => sealed?.rows.includes(`"key":"${key}"`)),
  "process wedged": ({ trialCalls }) => trialCalls.some(({ trial }) => trial.wedgeMs !== undefined),
  "term taken from a stalled holder": started("stalled"),
  "run stuck after three stalls": some(isStuckByStalls),
  "lanes side by side": some((r) => r.kind === "lane.opened" && r.data.lane > 1),
  "lane result replayed": ({ laneResults }) => laneResults.some(({ called }) => !called),
  "lanes replayed in another order": ({ laneResults }) => reordered(laneResults),
  "label changed": some((r) => r.kind === "labels.set" && r.data.unset.length > 0),
  "value published": ({ published }) => published.length > 0,
  "request answered": ({ asks }) => asks.some(({ to, code }) => to !== undefined && code === undefined),
  "request rejected": ({ asks }) => asks.some(({ code }) => code === "TAPE_ASK_REJECTED"),
  "same key asked twice": ({ asks }) =>
    asks.some(({ key, to, from, answered }) => to === key && answered !== undefined && answered !== from),
  "run ended without a reply": ({ asks }) => asks.some(({ code }) => code === "TAPE_RUN_ENDED"),
  "callback received": ({ callbackCalls }) => callbackCalls.some(({ result }) => result === "opened"),
  "callback called again": ({ callbackCalls }) => callbackCalls.some(({ result }) => result === "duplicate"),
  "callback refused": ({ callbackCalls }) => callbackCalls.some(({ wrong }) => wrong === "position"),
  "slot kept through a takeover": ({ feed }) =>
    feed.some((r) => r.kind === "term.started" && r.data.reason === "recovery" && isQueued(feed, r.journal)),
  "run returned to its queue": ({ feed }) =>
    feed.some(
      (r, k) =>
        admits(r) && feed.slice(0, k).some((one) => one.journal === r.journal && one.in === "journal" && admits(one)),
    ),
  "waiting run held by an operator": ({ feed }) =>
    feed.some((r) => r.kind === "term.started" && r.data.reason === "manual" && isQueued(feed, r.journal)),
  "queue served over the wire": ({ plan, feed }) => plan.remote.includes(true) && feed.some(admits),
  "store went back and lost an admission": ({ lost }) => lost?.feed.some(admits) === true,
  "run expired in its queue": some((r) => r.kind === "timer.fired" && r.data.purpose === "expire"),
  "debounced start moved": some((r) => r.kind === "start.moved"),
  "unique start joined": ({ queueStarts }) =>
    queueStarts.some(({ run, planned }) => planned.unique && run !== planned.id),
  "limit of a queue changed": ({ limitChanges }) => limitChanges.some(({ to }) => to < Number.POSITIVE_INFINITY),
  "object called by a run": handler(({ parent }, all) => parent !== null && all.every((one) => one.journal !== parent)),
  "handler called another key": handler(({ parent }, all) => all.some((one) => one.journal === parent)),
  "handler called its own key": refused("TAPE_QUEUE_NESTED"),
  "handler failed after a change": handler(
    ({ status, work }) => status === "FAILED" && work.tasks.some((task) => task.do === "set"),
  ),
  "handler cancelled": handler(({ status }) => status === "CANCELLED"),
  "handler taken over": handler(({ journal }, _all, { feed }) =>
    feed.some((r) => r.journal === journal && r.kind === "term.started" && r.data.reason === "recovery"),
  ),
  "key kept by a sleeping handler": handler(({ journal, key, to }, all, { feed }) => {
    const asleep = feed.find((r) => r.journal === journal && r.kind === "timer.set")?.at;
    return asleep !== undefined && all.some((one) => one.key === key && one.from > asleep && one.from < to);
  }),
  "state read without a handler": ({ objectReads }) => objectReads.some(({ state }) => state.length > 0),
  "found by an alarm alone": ({ plan, runs }) =>
    plan.serverless?.wakeLoss === 1 && runs.some(({ status }) => status === "COMPLETED"),
  "taken over without loops": ({ plan, feed }) =>
    plan.serverless !== undefined && feed.some((r) => r.kind === "term.started" && r.data.reason === "recovery"),
  "name of a called alarm taken": ({ takenAlarms }) => takenAlarms > 0,
  "alarm called before anything was due": ({ answers }) => answers.some(({ early }) => early),
  "wake-up found nothing to do": ({ answers }) => answers.some(({ to, found }) => to === "wake-up" && found === 0),
  "request over before its runs": ({ plan, feed }) =>
    plan.serverless !== undefined && feed.some((r) => r.kind === "term.ended" && r.data.reason === "drained"),
  "event sent after its successor's": ({ sink }) =>
    sink?.arrivals.some(({ token }, k) => sink.arrivals.slice(0, k).some((one) => one.token > token)) === true,
  "dead letter stored again by a successor": ({ sink }) =>
    sink?.letters.some(({ event }) => {
      const refused = sink.arrivals.filter(({ id, what }) => id === event && what === "refused");
      const byToken = [...Map.groupBy(refused, ({ token }) => token).values()];
      return byToken.length > 1 && byToken[0]!.length >= 3;
    }) === true,
  "sink from now on taken over": ({ sink, named, checkpoints }) =>
    sink?.plan.from === "now" &&
    new Set(checkpoints.filter(({ journal }) => named.get(journal) === sinkLease(sinkName)).map(({ token }) => token))
      .size > 1,
  "shard shed for another replica": ({ shards }) => (shards?.sheds ?? 0) > 0,
  "shard shed while its holder was paused": ({ shards }) =>
    shards?.shedInPause.some(({ process, shard }) =>
      shards.events.some((one) => one.what === "start" && one.shard === shard && one.process !== process),
    ) === true,
  "shard taken over after expiry": ({ shards, named, feed }) =>
    shards !== undefined &&
    feed.some(
      (r) =>
        named.get(r.journal)?.startsWith(shardedName) === true &&
        r.kind === "term.started" &&
        r.data.previous?.endReason === "expired",
    ),
  "archive refused a file": archived("refused"),
  "archive lost a file": archived("lost"),
  "archive denied a file that it has": archived("denied"),
  "file of a crashed sweeper removed": archived("removed"),
  "sweeper replaced between two files": ({ retention }) =>
    new Set(retention?.prunes.map(({ token }) => token)).size > 1,
  "sweeper interrupted between archive and store": ({ retention }) =>
    retention?.hits.some(({ at, edge }) => at === "retention.prune" || (at === "archive" && edge === "after")) === true,
  "run erased in parts": ({ retention }) => retention?.erasures.some(({ parts, done }) => done && parts > 1) === true,
  "erasure repeated after a crash": ({ retention }) => retention?.erasures.some(({ repeated }) => repeated) === true,
  "pinned run taken over": ({ feed, runs }) =>
    feed.some((r) => r.kind === "term.started" && r.data.reason === "recovery" && isPinned(runs, r.journal)),
  "pinned run outlived the processes of its build": ({ builds, runs }) =>
    builds?.outages.some((outage) =>
      builds.terms.some(({ journal, build, at }) => {
        const run = runs.find((one) => one.journal === journal);
        return build === outage.build && at >= outage.to && run?.workflow === "pinned" && run.createdAt < outage.from;
      }),
    ) === true,
  "run moved to another build": some(
    (r) => r.kind === "run.pinned" && r.data.trial === undefined && r.data.refused === undefined,
  ),
  "move refused by the code": some((r) => r.kind === "run.pinned" && r.data.refused !== undefined),
  "new run left to the current build": ({ feed, plan }) =>
    plan.builds?.current !== undefined &&
    feed.some((r) => r.kind === "run.created" && r.data.workflow === "pinned" && r.data.build === undefined),
  "scope timed out": some((r) => r.kind === "scope.closed" && r.data.reason === "timeout"),
  "scope cancelled by its code": some((r) => r.kind === "scope.closed" && r.data.reason === "cancelled"),
  "scope ended inside another": ({ feed, scopeSights }) =>
    scopeSights.length > 0 && feed.some((r) => r.kind === "scope.closed" && isNested(feed, r.journal, r.data.of)),
  "scope replayed by another process": ({ scopeSights }) => replayedElsewhere(scopeSights),
  "effect refused by its scope after it was sent": ({ scopeSights }) =>
    scopeSights.some(({ effect }) => effect?.sent === true),
  "effect withdrawn with its scope": some((r) => r.kind === "effect.withdrawn"),
  "saga compensated": some((r) => r.kind === "saga.compensated"),
  "saga compensated what a child did": some((r) => r.kind === "children.due"),
  "detached run started": some((r) => r.kind === "run.created" && r.data.startedBy !== undefined),
  ...generationMarks,
  "race won": some((r) => r.kind === "race.won"),
  "child failed": ({ runs }) => runs.some(({ parent, status }) => parent !== null && status !== "COMPLETED"),
  "child's obligation compensated by its root": ({ effects }) =>
    effects.some(({ role, run, root, status }) => role === "compensation" && run !== root && status === "COMPENSATED"),
};

const isPinned = (runs: Evidence["runs"], journal: number): boolean =>
  runs.some((run) => run.journal === journal && run.workflow === "pinned");
const admits = (r: FeedRecord): boolean => r.kind === "term.started" && r.data.admitted !== undefined;
const isQueued = (feed: readonly FeedRecord[], journal: number): boolean =>
  feed.some((r) => r.journal === journal && r.kind === "run.created" && r.data.queue !== undefined);

/** An older token was admitted and its work is not done. */
function isInside(fenceEvents: Evidence["fenceEvents"], token: bigint): boolean {
  const count = (of: string): number => fenceEvents.filter((one) => one.what === of && one.token < token).length;
  return count("admitted") > count("done");
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
