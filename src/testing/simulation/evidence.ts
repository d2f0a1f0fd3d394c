import type { EffectRow, GateRow, TimerRow } from "../../model/rows.ts";
import type { FeedRecord, RunView, Store } from "../../store/contract.ts";
import type { Call } from "../kit/runner.ts";
import type { Seen, WorldLedger } from "../kit/world.ts";
import { checkProjection } from "../projection.ts";
import type { Plan } from "./plan.ts";
import { type Bite, type Stage, tenant } from "./replica.ts";

/** What the clients of a simulation know. */
export interface ClientView {
  readonly acknowledged: readonly {
    readonly what: "run" | "signal" | "cancel";
    readonly run: string;
    readonly key?: string;
  }[];
  readonly results: readonly { readonly run: string; readonly status: string; readonly outcome: string }[];
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
  readonly refusals: ReadonlySet<string>;
  readonly client: ClientView;
  readonly projection: readonly string[];
  readonly orphans: readonly string[];
  readonly virtualMs: number;
  readonly events: number;
}

export async function gather(stage: Stage, ledger: WorldLedger, client: ClientView): Promise<Evidence> {
  const { plan, store, time, calls, bites, refusals } = stage;
  const feed: FeedRecord[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await store.read.feed(cursor);
    if (page.records.length === 0) break;
    feed.push(...page.records);
    cursor = page.cursor;
  }
  const runs = await allRuns(store);
  const effects: EffectRow[] = [];
  const gates: GateRow[] = [];
  const timers: TimerRow[] = [];
  const budgets: Evidence["budgets"][number][] = [];
  for (const { id } of runs) {
    effects.push(...(await store.read.effects(tenant, { run: id })));
    gates.push(...(await store.read.gates(tenant, { run: id })));
    timers.push(...(await store.read.timers(tenant, { run: id })));
    budgets.push(...(await store.read.budgets(tenant, id)).map((row) => ({ ...row, run: id })));
  }
  const projection = await checkProjection(store, [tenant]);
  const { now: virtualMs, events } = time;
  const world = ledger.seen;
  const last = await orphans(store);
  return {
    plan,
    feed,
    runs,
    effects,
    gates,
    timers,
    budgets,
    world,
    calls,
    bites,
    refusals,
    client,
    projection,
    orphans: last,
    virtualMs,
    events,
  };
}

async function allRuns(store: Store): Promise<RunView[]> {
  const all: RunView[] = [];
  for (;;) {
    const before = all.at(-1)?.journal;
    const page = await store.read.runs(tenant, before === undefined ? {} : { before });
    if (page.length === 0) return all;
    all.push(...page);
  }
}

/** Live runs that nobody will ever look at again: true at every instant, not only at the end. */
export async function orphans(store: Store): Promise<string[]> {
  const runs = await allRuns(store);
  const leases = await store.read.leases(tenant);
  const awaited = new Set<number>();
  const held = new Map(leases.map((lease) => [lease.journal, lease.owner !== null || lease.wants !== null]));
  const live = runs.filter(({ endedAt }) => endedAt === null);
  const gates = new Set((await store.read.gates(tenant, { open: true })).map(({ run }) => run));
  const timers = new Set(
    (await store.read.timers(tenant)).flatMap(({ run, status }) => (status === "SET" ? [run] : [])),
  );
  // An effect that waits for a person is no excuse: its run must say so itself.
  const effects = new Set(
    (await store.read.effects(tenant)).flatMap(({ run, item }) => (item !== null && held.get(item) ? [run] : [])),
  );
  for (const { journal, status, parent, endedAt } of runs) {
    const effect = effects.has(journal);
    // What a completed child owes is the business of those above it.
    for (let above = effect ? parent : null; above !== null; ) {
      awaited.add(above);
      above = runs.find((one) => one.journal === above)?.parent ?? null;
    }
    if (endedAt !== null) continue;
    const wait = gates.has(journal) || timers.has(journal) || effect;
    if (status === "STUCK" || held.get(journal) || wait) awaited.add(journal);
  }
  // A run that waits for a child is well if the child is.
  for (let changed = true; changed; ) {
    changed = false;
    for (const { journal, parent } of live) {
      if (!awaited.has(journal) || parent === null || awaited.has(parent)) continue;
      awaited.add(parent);
      changed = true;
    }
  }
  return live
    .filter(({ journal }) => !awaited.has(journal))
    .map(({ id, status }) => `${id} is ${status} and forgotten`);
}
