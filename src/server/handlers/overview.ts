import type { Clock } from "../../base/clock.ts";
import { unservedEffects, unservedWorkflows } from "../../engine/served.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import type { LeaseView } from "../../model/lease.ts";
import type { RunStatus } from "../../model/machines.ts";
import { notFound } from "../../model/not-found.ts";
import type { ResponseOf } from "../../protocol/contract.ts";
import type { overview as routes } from "../../protocol/routes/overview.ts";
import type { ReadOps, Store } from "../../store/contract/store.ts";
import { actorOf, type HandlersOf, type ServerDeps } from "../handler-types.ts";

/** Counting further would cost more than anybody learns from it. */
const maxCounted = 100;
const maxLeases = 500;
const maxNames = 500;
const defaultBudgets = 20;
const maxMinutes = 1_440;
const maxBuckets = 240;
const recentMs = 24 * 3_600_000;
/** A holder that renews but has got nowhere for so many times its lease is worth a look. */
const stallTimes = 3;

/** As for the log's `run.hung`. */
const hungMs = 60_000;
/** More names than this nobody reads at a glance. */
const maxNamed = 20;

/** What it cost times this is how long an answer is kept. */
const keptTimes = 20;
const maxCacheMs = 30_000;

/** Those that ended well are nobody's business at a glance, and are most of all. */
const countedStatuses: readonly RunStatus[] = [
  ...(["RUNNABLE", "RUNNING", "WAITING", "ENDING", "COMPENSATING", "STUCK", "FAILED"] as const),
];
const inDoubt = ["UNKNOWN", "STUCK"];
const owed = ["PENDING", "COMMITTED", "UNKNOWN", "STUCK"];

export function overviewHandlers({ store, operators, clock, random, history }: ServerDeps): HandlersOf<typeof routes> {
  const { read } = store;
  const sparing = cached(clock, (tenant: string) => overviewOf(store, tenant));
  return {
    async overview(_call, { tenant }) {
      void history.watch(tenant).catch(() => {}); // whoever sees the figures will want to see how they came about
      return sparing(tenant);
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
      const wanted = [...new Set(query.of)];
      if (wanted.length > maxNames || wanted.some((text) => !/^[1-9]\d{0,14}$/.test(text))) {
        throw new TapeError("TAPE_BAD_INPUT", `query.of: at most ${maxNames} numbers of journals`, { field: "of" });
      }
      const found = await Promise.all(wanted.map((text) => read.lease(tenant, { journal: Number(text) })));
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
        // The answer to the first call was lost: what it made is what the second asks for.
        const again = isTapeError(error, "TAPE_RUN_CONFLICT") && who.key !== undefined;
        if (!again || (await forkedFrom(read, who.tenant, id)) !== params.id) throw error;
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
  const [lists, failed, doubts, obligations, gates, leases, unserved, effects] = await Promise.all([
    Promise.all(countedStatuses.map(byStatus)),
    read.runs(tenant, { status: ["FAILED"], endedSince: Math.floor(now - recentMs), limit }),
    read.effects(tenant, { role: "effect", status: inDoubt, limit }),
    read.effects(tenant, { role: "compensation", status: owed, limit }),
    read.gates(tenant, { open: true, limit }),
    read.leases(tenant, { held: true, limit: maxLeases }),
    unservedWorkflows(store, tenant),
    unservedEffects(store, tenant),
  ]);
  return {
    now,
    runs: countedStatuses.map((status, k) => ({ status, ...counted(lists[k]!) })),
    failedRecently: counted(failed),
    inDoubt: counted(doubts),
    obligations: counted(obligations),
    gates: counted(gates),
    leases: {
      held: leases.filter(({ state }) => state === "HELD").length,
      expired: leases.filter(({ state }) => state !== "HELD").length,
      stalling: leases.filter(isStalling).length,
      more: leases.length === maxLeases,
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
    unserved: unserved.slice(0, maxNamed).map(withoutNothing),
    unservedEffects: effects.slice(0, maxNamed).map(withoutNothing),
  };
}

/**
 * Every open page asks for the figures, and counting goes through many rows: one answer serves all who ask meanwhile, and
 * is kept for a multiple of what it cost, so that no number of pages keeps the store busy with it.
 */
function cached<T>(clock: Clock, look: (tenant: string) => Promise<T>): (tenant: string) => Promise<T> {
  const kept = new Map<string, { readonly answer: Promise<T>; until: number }>();
  return (tenant) => {
    const before = kept.get(tenant);
    const began = clock.mono();
    if (before !== undefined && began < before.until) return before.answer;
    const one = { answer: look(tenant), until: Number.POSITIVE_INFINITY };
    kept.set(tenant, one);
    one.answer.then(
      () => {
        one.until = clock.mono() + Math.min(maxCacheMs, keptTimes * (clock.mono() - began));
      },
      () => kept.delete(tenant),
    );
    return one.answer;
  };
}

function within(field: string, value: number, most: number): number {
  if (value >= 1 && value <= most) return value;
  throw new TapeError("TAPE_BAD_INPUT", `query.${field}: from 1 to ${most}`, { field });
}

function counted(found: readonly unknown[]): { count: number; more: boolean } {
  return { count: Math.min(found.length, maxCounted), more: found.length > maxCounted };
}

/** A run that is held, renewed and silent for longer: its body may be at work, or may never end. */
function mayHang({ kind, state, progressAgoMs, ttlMs }: LeaseView): boolean {
  return kind === "run" && state === "HELD" && progressAgoMs > Math.max(hungMs, stallTimes * ttlMs);
}

function withoutNothing<T extends { readonly suggestion: string | undefined }>({ suggestion, ...rest }: T) {
  return suggestion === undefined ? rest : { ...rest, suggestion };
}

function isStalling({ state, progressAgoMs, ttlMs, maxStallMs }: LeaseView): boolean {
  return state === "HELD" && progressAgoMs > (maxStallMs ?? stallTimes * ttlMs);
}

async function forkedFrom(read: ReadOps, tenant: string, run: string): Promise<string | undefined> {
  const [first] = await read.journal(tenant, { run }, { limit: 1 });
  return first?.kind === "run.created" ? first.data.forkedFrom : undefined;
}

/** Along a journal seq is dense from 1: doubling and halving find the last one in few looks at the key. */
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
