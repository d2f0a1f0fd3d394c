import { toJson } from "../src/base/codec.ts";
import type { EffectRow, GateRow, TimerRow } from "../src/model/rows.ts";
import { readBlob } from "../src/store/blob-store.ts";
import type {
  AuditEntry,
  Chunk,
  FeedRecord,
  PublishedValue,
  RunView,
  StoredValue,
} from "../src/store/contract/store.ts";
import { blobsIn } from "../src/store/validate/blob-refs.ts";
import type { ValueTransition } from "../src/store/values.ts";
import type { BodyCall } from "../testkit/kit/runner.ts";
import type { WorldLedger, WorldRequest } from "../testkit/kit/world.ts";
import { checkProjection } from "../testkit/projection.ts";
import type { AgendaCheck, Answer } from "./alarm-service.ts";
import type { BookingRow } from "./bookings.ts";
import type { BuildEvidence } from "./build-clients.ts";
import type { AcknowledgedCall, KeylessSignal } from "./clients.ts";
import type { GuardedCall } from "./guarded-clients.ts";
import type { InsideEvent } from "./inside.ts";
import { type LabelList, labelListsOf } from "./label-lists.ts";
import type { LaneResult } from "./lanes.ts";
import { type ByteCount, type KeyHistory, keptOf, type QuotaCheck } from "./neighbours.ts";
import type { ObjectAnswer, ObjectRead } from "./object-clients.ts";
import type { OperatorAction } from "./operator.ts";
import type { Plan } from "./plan.ts";
import type { LimitChange, QueueStart } from "./queue-clients.ts";
import type { RetentionEvidence } from "./retainers.ts";
import type { RewindLoss } from "./rewinder.ts";
import type { ScheduleHistory } from "./schedule-clients.ts";
import type { ShardEvidence } from "./shard-work.ts";
import { type SeenCheckpoint, type SeenRenewal, wholeFeed } from "./shared-store.ts";
import { type FaultHit, type Stage, tenant } from "./stage.ts";
import { unstepped } from "./stepped-clock.ts";
import type { StrangerCall } from "./strangers.ts";
import type { StreamReader } from "./stream-reader.ts";
import type { StreamCall } from "./streaming.ts";
import type { FenceEvent, Sweep } from "./sweeper.ts";
import type { AskResult, CallbackResult } from "./talk-clients.ts";
import { neighbourTenant, retainedTenant } from "./tenants.ts";
import type { TrialCall } from "./trials.ts";
import type { ValueOperation } from "./value-clients.ts";
import type { WalkResult } from "./walkers.ts";
import type { SinkEvidence, WorldSink } from "./world-sink.ts";

/** What the clients of a simulation know. */
export interface ClientView {
  readonly acknowledged: readonly AcknowledgedCall[];
  /** Signals without a key. */
  readonly keylessSignals: readonly Readonly<KeylessSignal>[];
  readonly results: readonly { readonly run: string; readonly status: string; readonly outcome: string }[];
  /** Codes of expected refusals. */
  readonly refusalCodes: ReadonlySet<string>;
  /** Unexpected errors. */
  readonly faults: readonly string[];
}

/** Everything the invariants are judged by, collected after the end. */
export interface Evidence {
  readonly plan: Plan;
  readonly feed: readonly FeedRecord[];
  readonly runs: readonly RunView[];
  readonly effects: readonly EffectRow[];
  readonly gates: readonly GateRow[];
  readonly timers: readonly TimerRow[];
  readonly budgets: readonly {
    readonly run: string;
    readonly cap: number | null;
    readonly reserved: number;
    readonly spent: number;
  }[];
  /** Requests that the fake upstream received. */
  readonly world: readonly WorldRequest[];
  /** Every call of an effect, an observer or a compensation. */
  readonly calls: readonly BodyCall[];
  readonly faultHits: readonly FaultHit[];
  /** Results that branches in lanes received. */
  readonly laneResults: readonly LaneResult[];
  /** Calls of steps with retries and time-outs. */
  readonly trialCalls: readonly TrialCall[];
  /** When bodies of queues' runs began and ended. */
  readonly insideEvents: readonly InsideEvent[];
  /** Calls of bodies that stream, and what readers received: one that followed, and one that came late. */
  readonly streams: {
    readonly calls: readonly StreamCall[];
    readonly seen: readonly Chunk[];
    readonly late: readonly Chunk[];
  };
  /** Calls of models, and what workflows received. */
  readonly models: Stage["models"];
  /** What code saw of operations inside scopes, and of scopes. */
  readonly scopeSights: Stage["scopeSights"];
  /** What each drive has read of its journal. */
  readonly wakes: Stage["wakes"];
  /** The texts of all blobs that records refer to, by journal and name. */
  readonly blobs: ReadonlyMap<string, string>;
  readonly queueStarts: readonly QueueStart[];
  readonly limitChanges: readonly LimitChange[];
  /** Results of handlers that clients received, and states of objects that they read. */
  readonly objectAnswers: readonly ObjectAnswer[];
  readonly objectReads: readonly ObjectRead[];
  /** Error codes that the store returned, with counts. */
  readonly refusals: ReadonlyMap<string, number>;
  readonly client: ClientView;
  readonly projection: readonly string[];
  readonly orphans: readonly string[];
  readonly actions: readonly OperatorAction[];
  /** Newest first. */
  readonly audit: readonly AuditEntry[];
  readonly values: readonly ValueOperation[];
  readonly watched: readonly (readonly ValueTransition[])[];
  /** Remaining history of the keys that clients wrote. */
  readonly valueLogs: readonly { readonly key: string; readonly found: readonly StoredValue[] }[];
  readonly schedules: readonly ScheduleHistory[];
  readonly strangers: readonly StrangerCall[];
  readonly guarded: readonly GuardedCall[];
  /** Requests and callbacks of the talker, and what it has published. */
  readonly asks: readonly AskResult[];
  readonly callbackCalls: readonly CallbackResult[];
  readonly published: readonly PublishedValue[];
  /** The lists by each label that a run ever had. */
  readonly labelLists: readonly LabelList[];
  /** Rows of transactional steps and of the callers' own transactions. */
  readonly bookings: readonly BookingRow[];
  readonly quotas: readonly QuotaCheck[];
  readonly measured: ByteCount | undefined;
  readonly keptValues: readonly KeyHistory[];
  readonly walks: readonly WalkResult[];
  readonly sweeps: readonly Sweep[];
  readonly fenceEvents: readonly FenceEvent[];
  readonly renewals: readonly SeenRenewal[];
  /** Checkpoints of sinks and shards that were moved, in order. */
  readonly checkpoints: readonly SeenCheckpoint[];
  readonly sink: SinkEvidence | undefined;
  readonly shards: ShardEvidence | undefined;
  readonly builds: BuildEvidence | undefined;
  readonly sealed: SealedEvidence | undefined;
  readonly retention: RetentionEvidence | undefined;
  /** Names of named leases, by journal. */
  readonly named: ReadonlyMap<number, string>;
  readonly lost: RewindLoss | undefined;
  /** The agenda of a serverless world, every second while something is on it. */
  readonly agendaChecks: readonly AgendaCheck[];
  /** Alarms whose name was taken by one that had been called already. */
  readonly takenAlarms: number;
  /** Answers of replicas in a serverless world, and the calls to its store in ten idle minutes. */
  readonly answers: readonly Answer[];
  readonly callsAtRest: number | undefined;
  /** Wall time of the heal, and of the moment when everything had settled. */
  readonly healedAt: number | undefined;
  readonly settledAt: number | undefined;
  readonly virtualMs: number;
  readonly events: number;
}

/** Of a simulation with a codec: the payloads that it was given, and the rows of the store as text. */
export interface SealedEvidence {
  readonly hidden: ReadonlySet<string>;
  readonly rows: string;
}

/** The participants' records that become evidence. */
export interface Witnesses
  extends Pick<ClientView, "results" | "faults">,
    Pick<Evidence, "healedAt" | "settledAt" | "callsAtRest"> {
  readonly clients: Pick<ClientView, "acknowledged" | "keylessSignals" | "refusalCodes">;
  readonly operator: Pick<Evidence, "actions">;
  readonly values: { readonly history: Evidence["values"]; readonly watched: Evidence["watched"] };
  readonly schedules: { readonly histories: Evidence["schedules"] };
  readonly queues: { readonly starts: Evidence["queueStarts"]; readonly changes: Evidence["limitChanges"] };
  readonly objects: { readonly answers: Evidence["objectAnswers"]; readonly reads: Evidence["objectReads"] };
  readonly strangers: { readonly calls: Evidence["strangers"] };
  readonly guarded: { readonly signals: Evidence["guarded"] };
  readonly talk: {
    readonly asks: Evidence["asks"];
    readonly calls: Evidence["callbackCalls"];
    published(): Promise<Evidence["published"]>;
  };
  readonly neighbours: {
    readonly quotaChecks: Evidence["quotas"];
    readonly histories: Evidence["keptValues"];
    readonly measured: Evidence["measured"];
  };
  readonly streamReader: Pick<StreamReader, "rest">;
  readonly walkers: { readonly walks: Evidence["walks"] };
  readonly rewinder: Pick<Evidence, "lost">;
  readonly retainers: { evidence(): Promise<Evidence["retention"]> };
}

export async function collectEvidence(stage: Stage, ledger: WorldLedger, witnesses: Witnesses): Promise<Evidence> {
  const { plan, shared, orphanWatch, time, calls, faultHits, laneResults, refusals, sweeper } = stage;
  const { trialCalls, insideEvents } = stage;
  const { store } = shared;
  const { runs, effects, timers, leases } = await orphanWatch.read();
  const budgets = await budgetsOf(stage, runs);
  const { acknowledged, keylessSignals, refusalCodes } = witnesses.clients;
  const { results, faults, healedAt, settledAt, callsAtRest } = witnesses;
  const right = unstepped(plan.wallStep);
  const feed = await feedOf(stage);
  return {
    plan,
    feed: feed.map((record) => ({ ...record, at: right(record.at) })),
    runs,
    effects,
    gates: await store.read.gates(tenant),
    timers,
    budgets,
    world: ledger.seen,
    calls,
    faultHits,
    laneResults,
    trialCalls,
    insideEvents,
    streams: { calls: stage.streamCalls, ...(await witnesses.streamReader.rest()) },
    ...{ models: stage.models, scopeSights: stage.scopeSights, wakes: stage.wakes },
    blobs: await blobsOf(stage, feed),
    queueStarts: witnesses.queues.starts,
    limitChanges: witnesses.queues.changes,
    objectAnswers: witnesses.objects.answers,
    objectReads: witnesses.objects.reads,
    refusals,
    client: { acknowledged, keylessSignals, refusalCodes, results, faults },
    projection: await checkProjection(store, [tenant]),
    orphans: await orphanWatch.orphans(),
    actions: witnesses.operator.actions,
    audit: witnesses.operator.actions.length === 0 ? [] : await store.read.audit(tenant),
    values: witnesses.values.history,
    watched: witnesses.values.watched,
    valueLogs: await valueLogs(stage),
    schedules: witnesses.schedules.histories,
    strangers: witnesses.strangers.calls,
    guarded: witnesses.guarded.signals,
    asks: witnesses.talk.asks,
    callbackCalls: witnesses.talk.calls,
    published: await witnesses.talk.published(),
    labelLists: await labelListsOf(store, feed),
    bookings: shared.bookings,
    quotas: witnesses.neighbours.quotaChecks,
    measured: witnesses.neighbours.measured,
    keptValues: witnesses.neighbours.histories,
    walks: witnesses.walkers.walks,
    ...{ sweeps: sweeper.sweeps, fenceEvents: sweeper.fenceEvents },
    renewals: shared.renewals,
    checkpoints: shared.checkpoints,
    ...{ shards: stage.shards?.evidence, builds: stage.builds },
    sealed: await sealedEvidence(stage),
    retention: await witnesses.retainers.evidence(),
    sink: stage.sink && (await sinkEvidence(stage.sink, shared)),
    named: new Map(leases.flatMap(({ kind, journal, name }) => (kind === "name" ? [[journal, name ?? ""]] : []))),
    lost: witnesses.rewinder.lost,
    agendaChecks: stage.alarmService?.checks ?? [],
    answers: stage.alarmService?.answers ?? [],
    callsAtRest,
    takenAlarms: stage.alarmService?.tasks.lateConflicts ?? 0,
    ...{ healedAt, settledAt },
    virtualMs: time.now,
    events: time.events,
  };
}

async function sealedEvidence({ codec, shared: { bare } }: Stage): Promise<SealedEvidence | undefined> {
  if (codec === undefined) return undefined;
  const { read } = bare;
  const rows: unknown[] = (await wholeFeed(bare)).map(({ data }) => data);
  rows.push(await read.schedules(tenant), await read.effects(tenant), await read.gates(tenant));
  rows.push(await read.values(tenant, ""), await read.runs(tenant));
  return { hidden: codec.hidden, rows: rows.map((row) => JSON.stringify(toJson(row), printable)).join("\n") };
}

/** Tokens are bigints; what they stand for is of no interest here. */
const printable = (_key: string, value: unknown): unknown => (typeof value === "bigint" ? String(value) : value);

async function sinkEvidence(sink: WorldSink, { store }: Stage["shared"]): Promise<SinkEvidence> {
  const { plan, arrivals, records, writtenAtRest } = sink;
  return { plan, arrivals, records, writtenAtRest, letters: await sink.lettersOf(store) };
}

/** Without the neighbours' records: neighbours are judged by the responses they got. */
async function feedOf({ plan, shared: { store } }: Stage): Promise<FeedRecord[]> {
  const feed = plan.codec ? await openedFeed(store) : await wholeFeed(store);
  const others = await othersOf(plan, store);
  if (others.length === 0) return feed;
  const theirs = new Set(others);
  return feed.filter(({ journal }) => !theirs.has(journal));
}

/** Journals of tenants that are judged by what their clients know. */
async function othersOf(plan: Plan, { read }: Stage["shared"]["store"]): Promise<number[]> {
  const tenants: string[] = [];
  if (plan.neighbours.actions.length > 0) tenants.push(neighbourTenant);
  if (plan.retention !== undefined) tenants.push(retainedTenant);
  const leases = await Promise.all(tenants.map((of) => read.leases(of)));
  return leases.flat().map(({ journal }) => journal);
}

/** The feed of all tenants is not opened: what belongs to the tenant is replaced by what its own feed has. */
async function openedFeed(store: Stage["shared"]["store"]): Promise<FeedRecord[]> {
  const nameOf = ({ journal, seq, in: where }: FeedRecord): string => `${where} ${journal} ${seq}`;
  const opened = new Map((await wholeFeed(store, tenant)).map((record) => [nameOf(record), record]));
  return (await wholeFeed(store)).map((record) => opened.get(nameOf(record)) ?? record);
}

function valueLogs({ plan, shared: { store } }: Stage): Promise<Evidence["valueLogs"][number][]> {
  const keys = [...new Set(plan.values.map(({ key }) => key))];
  return Promise.all(keys.map(async (key) => ({ key, found: await keptOf(store, tenant, key) })));
}

async function budgetsOf({ shared }: Stage, runs: Evidence["runs"]): Promise<Evidence["budgets"]> {
  const budgets: Evidence["budgets"][number][] = [];
  for (const { id, parent } of runs) {
    if (parent !== null) continue; // a child spends from its root's budget
    budgets.push(...(await shared.store.read.budgets(tenant, id)).map((row) => ({ ...row, run: id })));
  }
  return budgets;
}

async function blobsOf({ shared }: Stage, feed: readonly FeedRecord[]): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const { journal, data } of feed) {
    for (const { blob, bytes } of blobsIn(data)) {
      const text = await readBlob(shared.store.read, tenant, { journal }, { blob, bytes }).catch(() => undefined);
      if (text !== undefined) found.set(`${journal} ${blob}`, text);
    }
  }
  return found;
}
