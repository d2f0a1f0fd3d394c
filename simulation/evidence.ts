import type { EffectRow, GateRow, TimerRow } from "../src/model/rows.ts";
import type { AuditEntry, FeedRecord, RunView, StoredValue } from "../src/store/contract/store.ts";
import type { ValueTransition } from "../src/store/values.ts";
import type { BodyCall } from "../testkit/kit/runner.ts";
import type { WorldLedger, WorldRequest } from "../testkit/kit/world.ts";
import { checkProjection } from "../testkit/projection.ts";
import type { AcknowledgedCall, KeylessSignal } from "./clients.ts";
import type { GuardedStory } from "./guarded.ts";
import type { Handed } from "./lanes.ts";
import { type KeyHistory, keptOf, type Measured, type QuotaStory } from "./neighbours.ts";
import type { OperatorAction } from "./operator.ts";
import type { Plan } from "./plan.ts";
import type { Lost } from "./rewinder.ts";
import type { ScheduleStory } from "./schedule-clients.ts";
import { type SeenRenewal, wholeFeed } from "./shared-store.ts";
import { type FaultHit, type Stage, tenant } from "./stage.ts";
import { unstepped } from "./stepped-clock.ts";
import type { StrangerStory } from "./strangers.ts";
import type { Knock, Sweep } from "./sweeper.ts";
import { neighbourTenant } from "./tenants.ts";
import type { ValueOperation } from "./value-clients.ts";
import type { WalkStory } from "./walkers.ts";

/** What the clients of a simulation know. */
export interface ClientView {
  readonly acknowledged: readonly AcknowledgedCall[];
  /** What keyless signals said. */
  readonly said: readonly Readonly<KeylessSignal>[];
  readonly results: readonly { readonly run: string; readonly status: string; readonly outcome: string }[];
  /** Codes of refusals that were in order. */
  readonly met: ReadonlySet<string>;
  /** What went wrong on the way. */
  readonly faults: readonly string[];
}

/** Everything that the invariants are judged by, after the end. */
export interface Evidence {
  readonly plan: Plan;
  readonly feed: readonly FeedRecord[];
  readonly runs: readonly RunView[];
  readonly effects: readonly EffectRow[];
  readonly gates: readonly GateRow[];
  readonly timers: readonly TimerRow[];
  readonly budgets: readonly {
    readonly run: string;
    readonly cap: number;
    readonly reserved: number;
    readonly spent: number;
  }[];
  /** What the world carried out. */
  readonly world: readonly WorldRequest[];
  /** Every call of a body, an observer or an inverse. */
  readonly calls: readonly BodyCall[];
  readonly bites: readonly FaultHit[];
  /** What branches in lanes were handed. */
  readonly handed: readonly Handed[];
  /** Codes with which the store refused somebody, and how often. */
  readonly refusals: ReadonlyMap<string, number>;
  readonly client: ClientView;
  readonly projection: readonly string[];
  readonly orphans: readonly string[];
  readonly deeds: readonly OperatorAction[];
  /** Newest first. */
  readonly audit: readonly AuditEntry[];
  readonly values: readonly ValueOperation[];
  readonly watched: readonly (readonly ValueTransition[])[];
  /** What is left of the keys that clients have written. */
  readonly valueLogs: readonly { readonly key: string; readonly found: readonly StoredValue[] }[];
  readonly schedules: readonly ScheduleStory[];
  readonly strangers: readonly StrangerStory[];
  readonly guarded: readonly GuardedStory[];
  readonly quotas: readonly QuotaStory[];
  readonly measured: Measured | undefined;
  readonly keptValues: readonly KeyHistory[];
  readonly walks: readonly WalkStory[];
  readonly sweeps: readonly Sweep[];
  readonly knocks: readonly Knock[];
  readonly renewals: readonly SeenRenewal[];
  /** Named leases by their journals. */
  readonly named: ReadonlyMap<number, string>;
  readonly lost: Lost | undefined;
  /** Wall time from which nothing went wrong, and at which all had come to rest. */
  readonly healedAt: number | undefined;
  readonly settledAt: number | undefined;
  readonly virtualMs: number;
  readonly events: number;
}

/** Everybody who took part, as far as they are asked afterwards. */
export interface Witnesses extends Pick<ClientView, "results" | "faults">, Pick<Evidence, "healedAt" | "settledAt"> {
  readonly clients: Pick<ClientView, "acknowledged" | "said" | "met">;
  readonly operator: Pick<Evidence, "deeds">;
  readonly values: { readonly history: Evidence["values"]; readonly watched: Evidence["watched"] };
  readonly schedules: { readonly stories: Evidence["schedules"] };
  readonly strangers: { readonly stories: Evidence["strangers"] };
  readonly guarded: { readonly stories: Evidence["guarded"] };
  readonly neighbours: {
    readonly stories: Evidence["quotas"];
    readonly histories: Evidence["keptValues"];
    readonly measured: Evidence["measured"];
  };
  readonly walkers: { readonly stories: Evidence["walks"] };
  readonly rewinder: Pick<Evidence, "lost">;
}

export async function gather(stage: Stage, ledger: WorldLedger, play: Witnesses): Promise<Evidence> {
  const { plan, shared, lookout, time, calls, bites, handed, refusals, sweeper } = stage;
  const { store } = shared;
  const { runs, effects, timers, leases } = await lookout.look();
  const budgets: Evidence["budgets"][number][] = [];
  for (const { id, parent } of runs) {
    if (parent !== null) continue; // a child spends what its root has
    budgets.push(...(await store.read.budgets(tenant, id)).map((row) => ({ ...row, run: id })));
  }
  const { acknowledged, said, met } = play.clients;
  const { results, faults, healedAt, settledAt } = play;
  const right = unstepped(plan.wallStep);
  return {
    plan,
    feed: (await feedOf(stage)).map((record) => ({ ...record, at: right(record.at) })),
    runs,
    effects,
    gates: await store.read.gates(tenant),
    timers,
    budgets,
    world: ledger.seen,
    calls,
    bites,
    handed,
    refusals,
    client: { acknowledged, said, met, results, faults },
    projection: await checkProjection(store, [tenant]),
    orphans: await lookout.orphans(),
    deeds: play.operator.deeds,
    audit: play.operator.deeds.length === 0 ? [] : await store.read.audit(tenant),
    values: play.values.history,
    watched: play.values.watched,
    valueLogs: await valueLogs(stage),
    schedules: play.schedules.stories,
    strangers: play.strangers.stories,
    guarded: play.guarded.stories,
    quotas: play.neighbours.stories,
    measured: play.neighbours.measured,
    keptValues: play.neighbours.histories,
    walks: play.walkers.stories,
    sweeps: sweeper.sweeps,
    knocks: sweeper.knocks,
    renewals: shared.renewals,
    named: new Map(leases.flatMap(({ kind, journal, name }) => (kind === "name" ? [[journal, name ?? ""]] : []))),
    lost: play.rewinder.lost,
    healedAt,
    settledAt,
    virtualMs: time.now,
    events: time.events,
  };
}

/** Without what the neighbours wrote: they are judged by what they were told. */
async function feedOf({ plan, shared: { store } }: Stage): Promise<FeedRecord[]> {
  const feed = await wholeFeed(store);
  if (plan.neighbours.deeds.length === 0) return feed;
  const theirs = new Set((await store.read.leases(neighbourTenant)).map(({ journal }) => journal));
  return feed.filter(({ journal }) => !theirs.has(journal));
}

function valueLogs({ plan, shared: { store } }: Stage): Promise<Evidence["valueLogs"][number][]> {
  const keys = [...new Set(plan.values.map(({ key }) => key))];
  return Promise.all(keys.map(async (key) => ({ key, found: await keptOf(store, tenant, key) })));
}
