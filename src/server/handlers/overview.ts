import type { Clock } from "../../base/clock.ts";
import { defined } from "../../base/defined.ts";
import { queueCycles } from "../../engine/queue-cycles.ts";
import { unservedEffects, unservedQueues, unservedWorkflows } from "../../engine/served.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import type { LeaseView } from "../../model/lease.ts";
import type { RunStatus } from "../../model/machines.ts";
import { notFound } from "../../model/not-found.ts";
import { problemsOf } from "../../model/sink-state.ts";
import type { ResponseOf } from "../../protocol/contract.ts";
import type { overview as routes } from "../../protocol/routes/overview.ts";
import type { ReadOps, SinkRow, Store } from "../../store/contract/store.ts";
import { readHolders, withHolders } from "../../store/read-all.ts";
import { actorOf, type HandlersOf, type ServerDeps } from "../handler-types.ts";

/** Counting further would cost more than the number is worth. */
const maxCounted = 100;
const maxLeases = 500;
const maxNames = 500;
const defaultBudgets = 20;
const maxMinutes = 1_440;
const maxBuckets = 240;
const recentMs = 24 * 3_600_000;
/** A holder that renews without progress for this many TTLs is listed. */
const stallTimes = 3;

/** As for the log's `run.hung`. */
const hungMs = 60_000;
/** Holders of slots that are examined for cycles of queues. */
const maxHolders = 50;
/** Longer lists of names are not readable at a glance. */
const maxNamed = 20;

/** A result is cached for this multiple of the time that it took. */
const cacheFactor = 20;
const maxCacheMs = 30_000;

/** Completed runs are left out: they need no attention, and they are the majority. */
const countedStatuses: readonly RunStatus[] = [
  ...(["QUEUED", "RUNNABLE", "RUNNING", "WAITING", "ENDING", "COMPENSATING", "STUCK", "FAILED"] as const),
];
const inDoubt = ["UNKNOWN", "STUCK"];
const owed = ["PENDING", "COMMITTED", "UNKNOWN", "STUCK"];

export function overviewHandlers({ store, operators, clock, random, history }: ServerDeps): HandlersOf<typeof routes> {
  const { read } = store;
  const cachedOverview = cached(clock, (tenant: string) => overviewOf(store, tenant));
  return {
    async census(_call, { tenant }) {
      const { reactors, runs, inDoubt: open, held, feedBlockedMs } = await read.census(tenant);
      return { reactors: [...reactors], runs: [...runs], inDoubt: [...open], held: [...held], feedBlockedMs };
    },
    async overview(_call, { tenant }) {
      void history.watch(tenant).catch(() => {}); // a reader of the overview will want its history
      return cachedOverview(tenant);
    },
    async "overview.history"({ query }, { tenant }) {
      const minutes = within("minutes", query.minutes ?? 60, maxMinutes);
      return history.of(tenant, minutes, within("buckets", query.buckets ?? 60, maxBuckets));
    },
    async "runs.rate"({ query: { since, sizeMs, buckets } }, { tenant }) {
      return { rate: await read.rate(tenant, since, sizeMs, buckets) };
    },
    async "budgets.list"({ query: { limit = defaultBudgets } }, { tenant }) {
      const { budgets, units, more } = await read.spend(tenant, limit);
      return { budgets: [...budgets], units: [...units], more };
    },
    async "journals.names"({ query }, { tenant }) {
      const requested = [...new Set(query.of)];
      if (requested.length > maxNames || requested.some((text) => !/^[1-9]\d{0,14}$/.test(text))) {
        throw new TapeError("TAPE_BAD_INPUT", `query.of: at most ${maxNames} journal numbers`, { field: "of" });
      }
      const found = await Promise.all(requested.map((text) => read.lease(tenant, { journal: Number(text) })));
      return {
        journals: found.flatMap((lease) =>
          lease === undefined || lease.name === null ? [] : [{ journal: lease.journal, name: lease.name }],
        ),
      };
    },
    async "runs.head"({ params: { id } }, { tenant }) {
      const run = await read.run(tenant, id);
      if (run === undefined) throw notFound("run", id);
      return { head: await headOf(read, tenant, run.journal) };
    },
    async "runs.forkPlan"({ params: { id }, query: { at } }, { tenant }) {
      const {
        kept,
        rerun,
        alreadyHappened,
        compensated,
        notCompensated,
        at: point,
      } = await operators.of(tenant).forkPlan(id, at);
      const lists = { kept: [...kept], rerun: [...rerun], alreadyHappened: [...alreadyHappened] };
      return { at: point, ...lists, compensated: [...compensated], notCompensated: [...notCompensated] };
    },
    async "runs.fork"({ params, body }, who) {
      const { id = who.key ?? random.uuid(clock.wall()), by, ...request } = body;
      try {
        return {
          id: await operators.of(who.tenant).fork(params.id, { ...request, id, by: actorOf(who, by), via: who.via }),
        };
      } catch (error) {
        // The response to the first call was lost: the repeated call returns the run that it created.
        const isRepeated = isTapeError(error, "TAPE_RUN_CONFLICT") && who.key !== undefined;
        if (!isRepeated || (await forkedFrom(read, who.tenant, id)) !== params.id) throw error;
        return { id };
      }
    },
  };
}

async function overviewOf(store: Pick<Store, "read">, tenant: string): Promise<ResponseOf<"overview">> {
  const { read } = store;
  const limit = maxCounted + 1;
  const byStatus = (status: RunStatus) => read.runs(tenant, { status: [status], limit });
  const now = await read.now();
  const [lists, failed, effectsInDoubt, obligations, gates, holders, some, unserved, effects, queues, cycles, sinks] =
    await Promise.all([
      Promise.all(countedStatuses.map(byStatus)),
      read.runs(tenant, { status: ["FAILED"], endedSince: Math.floor(now - recentMs), limit }),
      read.effects(tenant, { role: "effect", status: inDoubt, limit }),
      read.effects(tenant, { role: "compensation", status: owed, limit }),
      read.gates(tenant, { open: true, limit }),
      readHolders(read, tenant),
      read.leases(tenant, { held: true, limit: maxLeases }),
      unservedWorkflows(store, tenant),
      unservedEffects(store, tenant),
      unservedQueues(store, tenant),
      queueCycles(store, tenant, maxHolders),
      read.sinks(tenant),
    ]);
  const leases = withHolders(holders, some);
  return {
    now,
    runs: countedStatuses.map((status, k) => ({ status, ...counted(lists[k]!) })),
    failedRecently: counted(failed),
    inDoubt: counted(effectsInDoubt),
    obligations: counted(obligations),
    gates: counted(gates),
    leases: {
      held: leases.filter(({ state }) => state === "HELD").length,
      expired: leases.filter(({ state }) => state !== "HELD").length,
      stalling: leases.filter(isStalling).length,
      more: some.length === maxLeases,
    },
    hung: leases
      .filter(mayHang)
      .toSorted((a, b) => b.progressAgoMs - a.progressAgoMs)
      .slice(0, maxNamed)
      .map(({ name, journal, progressAgoMs, label }) => ({
        run: name ?? String(journal),
        forMs: progressAgoMs,
        owner: label,
      })),
    unserved: unserved
      .slice(0, maxNamed)
      .map(({ build, ...one }) => ({ ...withoutUndefined(one), ...defined({ build }) })),
    unservedEffects: effects.slice(0, maxNamed).map(withoutUndefined),
    unservedQueues: queues.slice(0, maxNamed).map(withoutUndefined),
    queueCycles: cycles.slice(0, maxNamed).map((steps) => ({ steps })),
    sinks: sinks.flatMap(withProblems).slice(0, maxNamed),
  };
}

/**
 * Every open dashboard requests the overview, and counting reads many rows. Concurrent calls share one result, which is
 * cached for a multiple of the time that it took, so that no number of dashboards keeps the store busy.
 */
function cached<T>(clock: Clock, read: (tenant: string) => Promise<T>): (tenant: string) => Promise<T> {
  const cache = new Map<string, { readonly result: Promise<T>; until: number }>();
  return (tenant) => {
    const before = cache.get(tenant);
    const startedAt = clock.mono();
    if (before !== undefined && startedAt < before.until) return before.result;
    const entry = { result: read(tenant), until: Number.POSITIVE_INFINITY };
    cache.set(tenant, entry);
    entry.result.then(
      () => {
        entry.until = clock.mono() + Math.min(maxCacheMs, cacheFactor * (clock.mono() - startedAt));
      },
      () => cache.delete(tenant),
    );
    return entry.result;
  };
}

function within(field: string, value: number, max: number): number {
  if (value >= 1 && value <= max) return value;
  throw new TapeError("TAPE_BAD_INPUT", `query.${field}: from 1 to ${max}`, { field });
}

function counted(found: readonly unknown[]): { count: number; more: boolean } {
  return { count: Math.min(found.length, maxCounted), more: found.length > maxCounted };
}

/** A held and renewed run without progress for long: its body may be busy, or may never end. */
function mayHang({ kind, state, progressAgoMs, ttlMs }: LeaseView): boolean {
  return kind === "run" && state === "HELD" && progressAgoMs > Math.max(hungMs, stallTimes * ttlMs);
}

function withoutUndefined<T extends { readonly suggestion: string | undefined }>({ suggestion, ...rest }: T) {
  return suggestion === undefined ? rest : { ...rest, suggestion };
}

/** A sink that needs an operator, and why. */
function withProblems(row: SinkRow): ResponseOf<"overview">["sinks"] {
  const problems = problemsOf(row);
  if (problems.length === 0) return [];
  const { sink, lagMs, openLetters, keptRuns, paused, lease } = row;
  const note = paused === undefined ? lease.progressNote : `${paused.by}: ${paused.reason}`;
  return [{ sink, problems, lagMs, openLetters, keptRuns, ...(note !== null && { note }) }];
}

function isStalling({ state, progressAgoMs, ttlMs, maxStallMs }: LeaseView): boolean {
  return state === "HELD" && progressAgoMs > (maxStallMs ?? stallTimes * ttlMs);
}

async function forkedFrom(read: ReadOps, tenant: string, run: string): Promise<string | undefined> {
  const [first] = await read.journal(tenant, { run }, { limit: 1 });
  return first?.kind === "run.created" ? first.data.forkedFrom : undefined;
}

/** The seq of a journal is dense from 1: doubling and halving find the last one in few reads by key. */
async function headOf(read: ReadOps, tenant: string, journal: number): Promise<number> {
  const exists = async (seq: number): Promise<boolean> =>
    (await read.journal(tenant, { journal }, { from: seq, limit: 1 })).length > 0;
  let [low, high] = [0, 1];
  while (await exists(high)) [low, high] = [high, high * 2];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (await exists(middle)) low = middle;
    else high = middle;
  }
  return low;
}
