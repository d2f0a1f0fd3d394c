import type { EffectRow, GateRow, TimerRow } from "../../model/rows.ts";
import type { AuditEntry, FeedRecord, RunView } from "../../store/contract.ts";
import type { ValueTransition } from "../../store/values.ts";
import type { Call } from "../kit/runner.ts";
import type { Seen, WorldLedger } from "../kit/world.ts";
import { checkProjection } from "../projection.ts";
import type { Acknowledged } from "./clients.ts";
import type { GuardedStory } from "./guarded.ts";
import type { Handed } from "./lanes.ts";
import type { ManualDeed } from "./operator.ts";
import type { Plan } from "./plan.ts";
import type { Lost } from "./rewinder.ts";
import type { ScheduleStory } from "./schedule-clients.ts";
import { type SeenRenewal, wholeFeed } from "./shared-store.ts";
import { type Bite, type Stage, tenant } from "./stage.ts";
import { unstepped } from "./stepped-clock.ts";
import type { StrangerStory } from "./strangers.ts";
import type { Sweep } from "./sweeper.ts";
import type { ValueOperation } from "./value-clients.ts";

/** What the clients of a simulation know. */
export interface ClientView {
  readonly acknowledged: readonly Acknowledged[];
  /** What keyless signals said. */
  readonly said: readonly { readonly run: string; readonly text: string; readonly acknowledged: boolean }[];
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
  readonly world: readonly Seen[];
  /** Every call of a body, an observer or an inverse. */
  readonly calls: readonly Call[];
  readonly bites: readonly Bite[];
  /** What branches in lanes were handed. */
  readonly handed: readonly Handed[];
  /** Codes with which the store refused somebody, and how often. */
  readonly refusals: ReadonlyMap<string, number>;
  readonly client: ClientView;
  readonly projection: readonly string[];
  readonly orphans: readonly string[];
  readonly deeds: readonly ManualDeed[];
  /** Newest first. */
  readonly audit: readonly AuditEntry[];
  readonly values: readonly ValueOperation[];
  readonly watched: readonly (readonly ValueTransition[])[];
  readonly schedules: readonly ScheduleStory[];
  readonly strangers: readonly StrangerStory[];
  readonly guarded: readonly GuardedStory[];
  readonly sweeps: readonly Sweep[];
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
    feed: (await wholeFeed(store)).map((record) => ({ ...record, at: right(record.at) })),
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
    schedules: play.schedules.stories,
    strangers: play.strangers.stories,
    guarded: play.guarded.stories,
    sweeps: sweeper.sweeps,
    renewals: shared.renewals,
    named: new Map(leases.flatMap(({ kind, journal, name }) => (kind === "name" ? [[journal, name ?? ""]] : []))),
    lost: play.rewinder.lost,
    healedAt,
    settledAt,
    virtualMs: time.now,
    events: time.events,
  };
}
