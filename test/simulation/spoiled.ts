import type { EffectArgs } from "../../simulation/effects.ts";
import type { Evidence } from "../../simulation/evidence.ts";
import type { Plan } from "../../simulation/plan.ts";
import type { PlannedRun } from "../../simulation/plan-runs.ts";
import { streamer } from "../../simulation/plan-streams.ts";
import type { Op } from "../../simulation/program.ts";
import type { TrialOp } from "../../simulation/trials.ts";
import type { EffectRow } from "../../src/model/rows.ts";
import type { FeedRecord } from "../../src/store/contract/store.ts";
import { calm } from "./calm.ts";
import { eventfulObjects } from "./spoiled-objects.ts";
import { eventfulQueues, spoiledQueues } from "./spoiled-queues.ts";
import { eventfulRetention } from "./spoiled-retention.ts";
import { eventfulSink } from "./spoiled-sinks.ts";

const run = (id: string, ops: readonly Op[], more: Partial<PlannedRun> = {}): PlannedRun => ({
  id,
  workflow: "once",
  program: { ops, attempts: 1 },
  atMs: 10,
  cancelAtMs: undefined,
  usd: undefined,
  again: undefined,
  ...more,
});

const call = (effect: string, id: string, more: Partial<EffectArgs> = {}): Op => ({
  op: "effect",
  effect,
  args: {
    id,
    businessKey: id,
    faults: [],
    compensateFaults: [],
    unresponsive: false,
    observations: [],
    travelMs: 20,
    answerMs: 40,
    ...more,
  },
  caught: true,
});

export const trial = (name: string, more: Partial<TrialOp>): Op => ({
  op: "trial",
  name,
  fails: 0,
  hangs: 0,
  hangMs: 0,
  timeoutMs: undefined,
  attempts: 3,
  baseMs: 10,
  wedgeMs: undefined,
  ...more,
});

/** A world in which every invariant about runs and effects has something to judge. */
export const eventful: Plan = {
  ...calm,
  remote: [false, false],
  runs: [
    run("compensated", [call("compensable.inline", "a"), call("compensable.idempotent", "b"), { op: "fail" }]),
    run("in doubt", [call("observed.inline", "c", { faults: ["lost"] })]),
    run("not sent", [call("observed.outbox", "d", { faults: ["not_sent"] })], { atMs: 20_000 }),
    run("tried", [call("idempotent.inline", "e", { faults: ["lost", "lost"] })]),
    run("careless", [call("compensable.careless", "f", { faults: ["twice"] })]),
    run("stuck", [call("blind.inline", "g", { faults: ["lost"] })]),
    run("parent", [{ op: "child", ops: [{ op: "step", fails: false }], awaited: true }]),
    run("spender", [{ op: "spend", usd: 4, cost: 2, ms: 900 }], { usd: 10 }),
    run("cancelled", [{ op: "sleep", ms: 30_000 }], { cancelAtMs: 3_000 }),
    run("gated", [
      { op: "gate", name: "left" },
      { op: "gate", name: "left" },
    ]),
    run("taken", [{ op: "guarded" }]),
    run("booked", [
      { op: "transaction", id: "seat", fails: false },
      { op: "label", value: 1 },
    ]),
    run(streamer, [{ op: "stream", name: "stream 1", chunks: 3, gapMs: 20, decides: false }], { atMs: 27_000 }),
    run("trials", [trial("trial 0", { fails: 1, timeoutMs: 900 })], { workflow: "limited", atMs: 18_000 }),
    run("wedged", [trial("trial 1", { wedgeMs: 60_000 })], { workflow: "limited", atMs: 22_000 }),
    run("endless", [trial("trial 2", { endless: true })], { workflow: "limited", atMs: 24_000 }),
  ],
  signals: [
    { run: "gated", gate: "left", atMs: 4_000, key: "first" },
    { run: "gated", gate: "left", atMs: 4_500, key: "second" },
  ],
  actions: [{ atMs: 2_000, what: "take over", run: "taken" }],
  guarded: [],
  callers: [
    { id: "caller-kept", atMs: 500, commits: true },
    { id: "caller-lost", atMs: 600, commits: false },
  ],
  schedules: [],
  // Its runs are taken over after expiry; "not sent" starts after that.
  faults: [{ replica: 0, at: "append", n: 9, edge: "after", kind: "crash", forMs: 4_000 }],
  healAtMs: 30_000,
  queues: eventfulQueues,
  objects: eventfulObjects,
  retention: eventfulRetention,
  sink: eventfulSink,
};

type Spoil = (world: Evidence) => Evidence;
type Kind = FeedRecord["kind"];
type Of<K extends Kind> = Extract<FeedRecord, { kind: K }>;

const found = <T>(one: T | undefined): T => {
  if (one === undefined) throw new Error("the world has nothing to spoil");
  return one;
};

const journalOf = ({ runs }: Evidence, id: string): number => found(runs.find((one) => one.id === id)).journal;

/** The same world with the first matching record replaced. */
function replace<K extends Kind>(
  world: Evidence,
  kind: K,
  fits: (record: Of<K>) => boolean,
  by: (record: Of<K>) => readonly object[],
): Evidence {
  const at = world.feed.findIndex((one) => one.kind === kind && fits(one as Of<K>));
  const others = by(found(world.feed[at]) as Of<K>) as readonly FeedRecord[];
  return { ...world, feed: world.feed.toSpliced(at, 1, ...others) };
}

function changeEffect(world: Evidence, fits: (effect: EffectRow) => boolean, change: Partial<EffectRow>): Evidence {
  const at = world.effects.findIndex(fits);
  return { ...world, effects: world.effects.with(at, { ...found(world.effects[at]), ...change }) };
}

const twice = <T>(one: T): T[] => [one, one];
const any = (): boolean => true;
const isOf = (world: Evidence, id: string) => {
  const journal = journalOf(world, id);
  return (one: { readonly journal: number }): boolean => one.journal === journal;
};

/** The upstream applied an effect of these semantics once more. */
const appliedAgain = (world: Evidence, semantics: EffectRow["semantics"]): Evidence => {
  const keys = new Set(world.effects.filter((one) => one.semantics === semantics).map(({ key }) => key));
  return { ...world, world: [...world.world, found(world.world.find(({ key, applied }) => applied && keys.has(key)))] };
};

/** For each invariant, a change of the eventful world that breaks it. */
export const spoiled: Readonly<Record<string, Spoil>> = {
  streamsAreExact: (world) => ({ ...world, streams: { ...world.streams, late: world.streams.late.slice(1) } }),
  zombiesDoNotStream: ({ streams, ...world }) => {
    const zombie = { ...found(streams.seen.at(-1)), value: "stream 1/99 0" };
    const last = { ...found(streams.seen.at(-1)), offset: zombie.offset + 1 };
    return { ...world, streams: { ...streams, seen: [...streams.seen, zombie, last] } };
  },
  attemptsAreCounted: (world) =>
    replace(world, "step.failed", any, (record) => [{ ...record, data: { ...record.data, attempt: 2 } }]),
  lateResultsAreDropped: (world) => ({
    ...world,
    trialCalls: world.trialCalls.map((call) => ({ ...call, endedAt: call.at + 1_000_000 })),
  }),
  wedgedLoses: (world) =>
    replace(
      world,
      "term.started",
      ({ data }) => data.reason === "stalled",
      (record) => [{ ...record, at: record.at + 1_000_000 }],
    ),
  ...spoiledQueues,
  clientCallsAnswered: (world) => ({ ...world, client: { ...world.client, faults: ["a client was refused"] } }),
  projectionMatches: (world) => ({ ...world, projection: ["a row that no record explains"] }),
  noRunForgotten: (world) => ({ ...world, orphans: ["a run that waits for nothing"] }),
  rowsMatchSteps: (world) => ({ ...world, bookings: [...world.bookings, { run: "booked", booking: "seat" }] }),
  runsMatchRows: (world) => ({ ...world, bookings: world.bookings.filter(({ run }) => run !== "") }),
  seqIsDense: (world) => replace(world, "step.done", any, () => []),
  oneStartOneEnd: (world) => replace(world, "run.ended", any, twice),
  oneResult: (world) => replace(world, "step.done", any, twice),
  resultsAreFinal: (world) => {
    const [first] = world.client.results;
    const results = [...world.client.results, { ...found(first), status: "another" }];
    return { ...world, client: { ...world.client, results } };
  },
  tokensIncrease: (world) =>
    replace(world, "run.ended", isOf(world, "taken"), (end) => [{ ...end, token: end.token - 1n }]),
  noIntentAfterCancel: (world) =>
    replace(world, "notes.taken", isOf(world, "cancelled"), (taken) => [taken, { ...taken, kind: "effect.intended" }]),
  stuckHasReason: (world) =>
    replace(world, "run.stuck", any, (stuck) => [{ ...stuck, data: { ...stuck.data, effects: [] } }]),
  stuckNamesItsEffects: (world) => changeEffect(world, ({ status }) => status === "STUCK", { status: "CONFIRMED" }),
  onlyCurrentTermRenews: (world) => {
    const end = found(world.feed.find(({ kind }) => kind === "run.ended"));
    const late = { journal: end.journal, token: end.token, at: end.at + 1_000, ok: true };
    return { ...world, renewals: [...world.renewals, late] };
  },
  takeoversHaveReasons: (world) =>
    replace(
      world,
      "term.started",
      ({ data }) => data.reason === "manual",
      (term) => [{ ...term, data: { ...term.data, by: undefined } }],
    ),
  takeoversWaitForExpiry: (world) =>
    replace(
      world,
      "term.started",
      ({ data }) => data.previous?.endReason === "expired",
      (term) => [{ ...term, at: term.at - 9_000 }],
    ),
  unknownIsNeverLost: (world) => changeEffect(world, ({ status }) => status === "CONFIRMED", { status: "UNKNOWN" }),
  fencedOwnersStayQuiet: (world) =>
    replace(world, "effect.dispatched", isOf(world, "in doubt"), (sent) => [
      sent,
      { ...sent, token: sent.token + 1n, at: sent.at - 1_000, data: { ...sent.data, attempt: 9 } },
    ]),
  idempotentOnce: (world) => appliedAgain(world, "idempotent"),
  nonIdempotentOnce: (world) => appliedAgain(world, "non_idempotent"),
  intentBeforeCall: (world) => replace(world, "effect.dispatched", any, () => []),
  keysAreStable: (world) => ({
    ...world,
    world: [...world.world, { ...found(world.world[0]), hash: "another request" }],
  }),
  noBlindRetry: (world) =>
    replace(
      world,
      "effect.settled",
      ({ data }) => data.to === "PENDING" && data.reason === "not_sent",
      (settled) => [{ ...settled, data: { ...settled.data, reason: "expired" } }],
    ),
  oneVerdict: (world) => replace(world, "effect.settled", ({ data }) => data.to === "CONFIRMED", twice),
  surplusCompensated: (world) => changeEffect(world, ({ surplus }) => surplus, { status: "PENDING" }),
  retriesBackOff: (world) => ({
    ...world,
    calls: world.calls.flatMap((call) => Array.from({ length: 10 }, () => call)),
  }),
  verdictMatchesWorld: (world) => ({ ...world, world: [] }),
  happenedIsKnown: (world) =>
    changeEffect(world, ({ role, status }) => role === "effect" && status === "CONFIRMED", { status: "WITHDRAWN" }),
  onlyAuthorityWrites: (world) => replace(world, "effect.settled", ({ data }) => data.to === "UNKNOWN", twice),
  businessKeysHold: (world) => {
    const owner = found(world.effects.find(({ role, businessKey }) => role === "effect" && businessKey === "c"));
    return { ...world, effects: [...world.effects, { ...owner, key: "of another run", run: 0 }] };
  },
  keysHaveIntents: (world) => ({ ...world, calls: world.calls.map((call) => ({ ...call, key: "without intent" })) }),
  runIdsAreUnique: (world) => ({ ...world, runs: [...world.runs, found(world.runs[0])] }),
  signalsAreNotSkipped: (world) => {
    const notes = world.feed.filter(
      ({ kind, journal }) => kind === "signal.sent" && journal === journalOf(world, "gated"),
    );
    const second = found(notes[1]).seq;
    return replace(world, "gate.resolved", isOf(world, "gated"), (one) => [
      { ...one, data: { ...one.data, note: second } },
    ]);
  },
  signalsOnceInOrder: (world) =>
    replace(
      world,
      "signal.sent",
      ({ data }) => data.key !== undefined,
      (note) => [note, { ...note, seq: 99 }],
    ),
  repliesMatch: (world) => ({ ...world, asks: world.asks.map((ask) => ({ ...ask, to: "another" })) }),
  oneRequestPerKey: (world) =>
    replace(
      world,
      "signal.sent",
      ({ data }) => data.asks === true,
      (note) => [note, { ...note, seq: 98 }],
    ),
  labelsAreProjected: (world) => ({ ...world, labelLists: world.labelLists.map((list) => ({ ...list, runs: [] })) }),
  publishedIsFenced: (world) => ({ ...world, published: world.published.map((row) => ({ ...row, value: "stale" })) }),
  callbacksOnce: (world) => ({
    ...world,
    callbackCalls: world.callbackCalls.map((call) => ({ ...call, result: "opened" })),
  }),
  budgetsHold: (world) => ({ ...world, budgets: world.budgets.map((budget) => ({ ...budget, cap: 1 })) }),
  endsAsDecided: (world) =>
    replace(
      world,
      "run.decided",
      ({ data }) => data.cause === "failed",
      (decided) => [{ ...decided, data: { ...decided.data, cause: "completed" } }],
    ),
  parentsOutliveChildren: (world) => {
    const child = found(world.runs.find(({ parent }) => parent !== null)).journal;
    return replace(
      world,
      "run.ended",
      ({ journal }) => journal === child,
      () => [],
    );
  },
  newestFirst: (world) => ({ ...world, calls: world.calls.toReversed() }),
  obligationsArmed: (world) => ({ ...world, effects: world.effects.filter(({ role }) => role !== "compensation") }),
  compensatedExactly: (world) =>
    changeEffect(
      world,
      ({ role, status, surplus }) => role === "compensation" && status === "COMPENSATED" && !surplus,
      {
        status: "DISCHARGED",
      },
    ),
};
