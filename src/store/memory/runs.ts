import type { RunStatus } from "../../model/machines.ts";
import { runMachine } from "../../model/machines.ts";
import { statusOf } from "../rows.ts";
import type { Answer, Row } from "../sql/plan.ts";
import { chainsOf, unsettled } from "./effects.ts";
import { changed, type Do, listed, none, page, passes, row, rows, type Statements, type Times } from "./statement.ts";
import { keyOf } from "./table.ts";
import type { RunRow, Tables } from "./tables.ts";

const openActs: readonly string[] = ["PENDING", "DISPATCHED", "UNKNOWN", "STUCK"];
const final: readonly string[] = runMachine.final;

function createRun(t: Tables, p: Do<"run.create">, { at }: Times): Answer {
  const parent = p.parent === null ? undefined : t.runs.get(p.parent);
  const tenant = p.tenant ?? parent!.tenant;
  const { journal, id, workflow, version } = p;
  const key = keyOf(tenant, id);
  if (t.tombstones.get(key) !== undefined || t.runs.by.id(key).length > 0) return none;
  if (parent !== undefined && parent.phase !== "LIVE") return none;
  t.runs.insert({
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

  "run.among": (t, p: { tenant: string; ids: string }) =>
    rows(
      (JSON.parse(p.ids) as string[])
        .flatMap((id) => t.runs.by.id(keyOf(p.tenant, id)))
        .map((run) => withLease(t, run)),
    ),

  "run.list"(
    t,
    p: {
      tenant: string;
      before: number | null;
      workflow: string | null;
      labelKey: string | null;
      labelValue: string | null;
      status: string | null;
      limit: number;
    },
  ) {
    const found = t.runs.by
      .tenant(p.tenant)
      .filter(
        (run) =>
          (p.before === null || run.journal < p.before) &&
          passes(p.workflow, run.workflow) &&
          (p.labelKey === null || labelOf(run, p.labelKey) === p.labelValue) &&
          (p.status === null || listed(p.status, liveStatus(t, run))),
      );
    return rows(page(found, p.limit, (run) => -run.journal).map((run) => withLease(t, run)));
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

  "run.settled"(t, p: Do<"run.settled">) {
    const { journal, armed } = p;
    const open =
      t.effects.by.run(journal).some(({ role, status }) => role === "act" && openActs.includes(status)) ||
      chainsOf(t, journal).some(({ status }) => unsettled.includes(status) || (armed && status === "ARMED")) ||
      t.gates.by.run(journal).some(({ status }) => status === "OPEN") ||
      t.timers.by.run(journal).some(({ status }) => status === "SET") ||
      t.runs.by.parent(journal).some(({ ended_at }) => ended_at === null);
    return open ? none : row({ ok: 1 });
  },
} satisfies Statements;

function withLease(t: Tables, run: RunRow): Row {
  const { notes, owner, wants } = t.leases.get(run.journal)!;
  return { ...run, notes, lease_owner: owner, lease_wants: wants };
}

function liveStatus(t: Tables, run: RunRow): RunStatus {
  const { owner, wants } = t.leases.get(run.journal)!;
  return statusOf(run.phase, owner !== null, wants !== null);
}

function labelOf(run: RunRow, key: string): string | undefined {
  const labels = new Map(Object.entries(JSON.parse(run.labels ?? "{}") as Record<string, string>));
  return labels.get(key);
}
