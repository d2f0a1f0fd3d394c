import type { RunStatus } from "../../model/machines.ts";
import { runMachine } from "../../model/machines.ts";
import { statusOf } from "../decode-rows.ts";
import type { QueryResult, Row } from "../sql/plan.ts";
import { chainsOf, unsettled } from "./effects.ts";
import { limited } from "./quotas.ts";
import {
  changed,
  compare,
  type Do,
  listed,
  none,
  page,
  passes,
  row,
  rows,
  type Statements,
  type Times,
} from "./statement.ts";
import { keyOf } from "./table.ts";
import type { RunRow, Tables } from "./tables.ts";

/** What every list of runs can be narrowed by; a statement may know less, as it does in SQL. */
export interface Few {
  readonly tenant: string;
  readonly workflow: string | null;
  readonly labelKey: string | null;
  readonly labelValue: string | null;
  readonly status: string | null;
  readonly startedSince?: number | null;
  readonly startedUntil?: number | null;
  readonly endedSince?: number | null;
  readonly endedUntil?: number | null;
  readonly doubt?: boolean;
  readonly limit: number;
}

export type Newest = Omit<Few, "status"> & { readonly before: number };

export interface Range {
  readonly since: number;
  readonly through: number;
  readonly before: number;
  readonly edge: number;
}

const inDoubt: readonly string[] = ["UNKNOWN", "STUCK"];
const openActs: readonly string[] = ["PENDING", "DISPATCHED", "UNKNOWN", "STUCK"];
const final: readonly string[] = runMachine.final;

function createRun(t: Tables, p: Do<"run.create"> & { readonly admitted?: boolean }, { at }: Times): QueryResult {
  const parent = p.parent === null ? undefined : t.runs.get(p.parent);
  const tenant = p.tenant ?? parent!.tenant;
  const { journal, id, workflow, version } = p;
  const key = keyOf(tenant, id);
  if (t.tombstones.get(key) !== undefined || t.runs.by.id(key).length > 0) return none;
  if (parent !== undefined && (parent.phase !== "LIVE" || parent.tenant !== tenant)) return none;
  const { admitted = true } = p;
  if (!admitted && limited(t, tenant, ({ runs, bytes }) => runs ?? bytes)) return none;
  t.runs.insert({
    counted: parent === undefined ? p.admitted === true : parent.counted,
    journal,
    tenant,
    id,
    workflow,
    version,
    phase: "LIVE",
    cause: null,
    stuck_from: null,
    input_hash: p.inputHash,
    labels: p.labels,
    outcome: null,
    parent: p.parent,
    parent_pos: p.parentPos,
    root: parent?.root ?? journal,
    created_at: at,
    ended_at: null,
  });
  return changed(1);
}

export const runs = {
  "run.create": createRun,
  "run.root": createRun,

  "run.find": (t, p: { tenant: string; id: string }) => rows(t.runs.by.id(keyOf(p.tenant, p.id))),

  "run.parent": (t, p: { journal: number }) => row(t.runs.get(p.journal)),

  "run.get": (t, p: { tenant: string; id: string }) =>
    rows(t.runs.by.id(keyOf(p.tenant, p.id)).map((run) => withLease(t, run))),

  "run.progress": (t, p: { tenant: string; ids: string }) =>
    rows(
      (JSON.parse(p.ids) as string[])
        .flatMap((id) => t.runs.by.id(keyOf(p.tenant, id)))
        .map((run) => withLease(t, run)),
    ),

  "run.phased": (t, p: Newest & { phase: string }) =>
    newest(t, p, ({ phase }) => phase === p.phase && phase !== "LIVE" && phase !== "COMPLETED"),
  "run.held": (t, p: Newest) => newest(t, p, (run) => liveStatus(t, run) === "RUNNING"),
  "run.wanted": (t, p: Newest) => newest(t, p, (run) => liveStatus(t, run) === "RUNNABLE"),

  "run.started": (t, p: Few & Range) =>
    listedRuns(t, ofTenant(t, p), p, ({ created_at, journal }) => inRange(p, created_at, journal), [
      (run) => -run.created_at,
      (run) => -run.journal,
    ]),

  "run.finished": (t, p: Few & Range) =>
    listedRuns(t, ofTenant(t, p), p, ({ ended_at, journal }) => ended_at !== null && inRange(p, ended_at, journal), [
      (run) => -(run.ended_at ?? 0),
      (run) => -run.journal,
    ]),

  "run.by_prefix": (t, p: Few & { least: string; beyond: string }) =>
    listedRuns(t, ofTenant(t, p), p, ({ id }) => compare(id, p.least) >= 0 && compare(id, p.beyond) < 0, [
      (run) => run.id,
    ]),

  "run.in_doubt": (t, p: Few & { before: number }) =>
    listedRuns(t, ofTenant(t, p), { ...p, doubt: true }, ({ journal }) => journal < p.before, [(run) => -run.journal]),

  "run.descendants": (t, p: Few & { root: number; before: number | null }) =>
    listedRuns(
      t,
      ofTenant(t, p).filter(({ root, parent }) => root === p.root && parent !== null),
      p,
      ({ journal }) => p.before === null || journal > p.before,
      [(run) => run.journal],
    ),

  "run.place": (t, p: { tenant: string; journal: number }) => {
    const run = t.runs.get(p.journal);
    return row(run?.tenant === p.tenant ? run : undefined);
  },

  "run.rate"(t, p: { tenant: string; since: number; size: number; buckets: number; limit: number }) {
    const all = t.runs.by.tenant(p.tenant);
    return rows(
      Array.from({ length: p.buckets }, (_, k) => {
        const at = p.since + k * p.size;
        const within = (time: number | null): boolean => time !== null && time >= at && time < at + p.size;
        const started = all.filter(({ created_at }) => within(created_at)).slice(0, p.limit);
        const ended = all.filter(({ ended_at }) => within(ended_at)).slice(0, p.limit);
        const failed = ended.filter(({ cause }) => cause === "failed");
        return { at, started: started.length, ended: ended.length, failed: failed.length };
      }),
    );
  },

  "run.phase"(t, p: Do<"run.phase">, { at }) {
    const run = t.runs.get(p.journal);
    const ends = final.includes(p.to);
    if (run === undefined || !listed(p.from, run.phase) || run.ended_at !== null) return none;
    if (run.phase === "STUCK" && run.stuck_from !== p.to) return none;
    if (run.phase === "ENDING" && p.decided !== null && !listed(p.decided, run.cause!)) return none;
    if (ends && run.parent !== p.parent) return none;
    const decides = run.phase === "LIVE";
    t.runs.update(run, {
      phase: p.to,
      cause: decides ? (p.cause as RunRow["cause"]) : run.cause,
      outcome: decides ? p.outcome : run.outcome,
      stuck_from: p.to === "STUCK" ? run.phase : null,
      ended_at: ends ? at : null,
    });
    return changed(1);
  },

  "run.assert_settled"(t, p: Do<"run.assert_settled">) {
    const { journal, armed } = p;
    const open =
      t.effects.by.run(journal).some(({ role, status }) => role === "effect" && openActs.includes(status)) ||
      chainsOf(t, journal).some(({ status }) => unsettled.includes(status) || (armed && status === "ARMED")) ||
      t.gates.by.run(journal).some(({ status }) => status === "OPEN") ||
      t.timers.by.run(journal).some(({ status }) => status === "SET") ||
      t.runs.by.parent(journal).some(({ ended_at }) => ended_at === null);
    return open ? none : row({ ok: 1 });
  },
} satisfies Statements;

const ofTenant = (t: Tables, { tenant }: Few): readonly RunRow[] => t.runs.by.tenant(tenant);

function inRange({ since, through, before, edge }: Range, time: number, journal: number): boolean {
  return time >= since && time <= through && (time < edge || (time === edge && journal < before));
}

function newest(t: Tables, p: Newest, fits: (run: RunRow) => boolean): QueryResult {
  const few = { ...p, status: null };
  return listedRuns(t, ofTenant(t, few), few, (run) => run.journal < p.before && fits(run), [(run) => -run.journal]);
}

function listedRuns(
  t: Tables,
  among: readonly RunRow[],
  p: Few,
  fits: (run: RunRow) => boolean,
  order: readonly ((run: RunRow) => string | number)[],
): QueryResult {
  const { startedSince = null, startedUntil = null, endedSince = null, endedUntil = null, doubt = false } = p;
  const found = among.filter(
    (run) =>
      fits(run) &&
      passes(p.workflow, run.workflow) &&
      (p.labelKey === null || labelOf(run, p.labelKey) === p.labelValue) &&
      (p.status === null || listed(p.status, liveStatus(t, run))) &&
      (startedSince === null || run.created_at >= startedSince) &&
      (startedUntil === null || run.created_at < startedUntil) &&
      (endedSince === null || (run.ended_at !== null && run.ended_at >= endedSince)) &&
      (endedUntil === null || (run.ended_at !== null && run.ended_at < endedUntil)) &&
      (!doubt || t.effects.by.run(run.journal).some(({ status }) => inDoubt.includes(status))),
  );
  return rows(page(found, p.limit, ...order).map((run) => withLease(t, run)));
}

function withLease(t: Tables, run: RunRow): Row {
  const { notes, owner, next_reactor } = t.leases.get(run.journal)!;
  return { ...run, notes, lease_owner: owner, lease_next_reactor: next_reactor };
}

function liveStatus(t: Tables, run: RunRow): RunStatus {
  const { owner, next_reactor } = t.leases.get(run.journal)!;
  return statusOf(run.phase, owner !== null, next_reactor !== null);
}

function labelOf(run: RunRow, key: string): string | undefined {
  const labels = new Map(Object.entries(JSON.parse(run.labels ?? "{}") as Record<string, string>));
  return labels.get(key);
}
