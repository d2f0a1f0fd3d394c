import { defined } from "../base/defined.ts";
import { cutOf, withinBoth } from "../engine/context/lanes.ts";
import {
  expandKeptRecords,
  readJournal,
  withoutCancellationCharges,
  writeKeptRecords,
} from "../engine/drive/kept-records.ts";
import { createdBy } from "../engine/replay/start-notes.ts";
import { readClocks } from "../lease/belief.ts";
import { starterOf } from "../model/approvers.ts";
import { TapeError } from "../model/errors.ts";
import { changedLabels, type Labels } from "../model/labels.ts";
import { notFound } from "../model/not-found.ts";
import { erasedError } from "../model/payloads.ts";
import { laneOf } from "../model/record-context.ts";
import type { JournalRecord, NewRecord, RecordData } from "../model/records.ts";
import type { EffectRow } from "../model/rows.ts";
import type { AuditInfo, RunSpec, RunView, Store } from "../store/contract/store.ts";
import { readGroups } from "../store/read-all.ts";
import { type ForkInput, type ForkPlan, forkPlan } from "./fork-plan.ts";
import type { OperatorDeps } from "./manual-lease.ts";

/** Where a run is forked, which effects may be repeated, and who requests it. */
export interface ForkRequest extends AuditInfo {
  /** Operations before this position are kept. Default: all up to the first that is not done or has failed. */
  readonly at?: number;
  /** The new run's id. Default: a fresh one. */
  readonly id?: string;
  /** Positions of effects that have happened and may happen again. */
  readonly repeat?: readonly number[];
  /** Positions of effects to keep although the source run has compensated them, or still may. */
  readonly keepCompensated?: readonly number[];
  /** The new run's input, for instance with an edited message. Default: that of the source run. */
  readonly input?: unknown;
}

/** What a fork at this position would keep, run again and repeat upstream. Reads only. */
export async function planFork(deps: OperatorDeps, run: string, at?: number): Promise<ForkPlan> {
  return forkPlan(await source(deps.store, deps.tenant, run), at);
}

/**
 * Creates a run that continues from a position of another one. Earlier operations are kept; the rest runs again with
 * the current code. The source run and its obligations are left unchanged.
 */
export async function fork(deps: OperatorDeps, run: string, request: ForkRequest): Promise<string> {
  const { store, keeper, tenant, clock, random } = deps;
  const from = await source(store, tenant, run);
  const plan = forkPlan(from, request.at);
  const missing = plan.alreadyHappened.filter(({ pos, repeatable }) => !repeatable && !request.repeat?.includes(pos));
  if (missing.length > 0) {
    const names = missing.map(({ pos, name }) => `${name} at ${pos}`).join(", ");
    const positions = missing.map(({ pos }) => pos);
    throw new TapeError("TAPE_FORK_REPEATS", `this would repeat what has happened: ${names}`, {
      run,
      positions,
    });
  }
  assertNamed(run, plan, request.keepCompensated ?? []);
  const { created } = from;
  const { by, reason, via, id = random.uuid(clock.wall()) } = request;
  const cut = { before: plan.at, ...(plan.lanes && { lanes: [...plan.lanes] }) };
  const seeds = (created.fork?.seeds ?? []).map((seed) => ({ run: seed.run, ...withinBoth(seed, cut) }));
  const spec: RunSpec = {
    id,
    workflow: created.workflow,
    input: request.input ?? created.input,
    ...defined({ version: created.version, labels: labelsAt(from, cut), budget: created.budget }),
    ...defined({ maxStallMs: created.maxStallMs, deadlineMs: created.deadlineMs }),
    ...(created.checked && request.input === undefined && { checked: true }),
    ...queueOf(created),
    ...startersOf(created.starters, starterOf({ by, via })),
    forkedFrom: run,
    fork: {
      journal: from.journal,
      pos: plan.at,
      through: from.head,
      by,
      ...(via && { via }),
      reason,
      seeds: [...seeds, { run, ...cut }],
      ...(plan.lanes && { lanes: [...plan.lanes] }),
      ...(from.generation && { begins: from.begins, generation: from.generation }),
    },
  };
  const sent = readClocks(clock);
  const first = { ...keeper.claimant("recovery"), nonce: random.bits63() };
  const [verdict] = await store.intake.createRuns(tenant, [spec], first);
  if (verdict === undefined) throw new TapeError("TAPE_INVARIANT", "a fork was neither created nor rejected");
  if (!verdict.ok) throw verdict.error;
  if (verdict.term === undefined) throw new TapeError("TAPE_RUN_CONFLICT", `run ${id} already exists`, { id });
  const lease = keeper.adopt(id, verdict.term, sent, { reactor: "operator" });
  try {
    const end: NewRecord = { kind: "term.ended", data: { reason: "released", notesTaken: 0, nextReactor: "recovery" } };
    await writeKeptRecords(store, tenant, verdict.term.fence, 1, spec.fork!, [end]);
  } finally {
    lease.end("released");
  }
  return id;
}

/** The labels that the source had before the cut: those of its start, as its kept calls have changed them. */
function labelsAt(
  { created, records }: ForkSource,
  { before, lanes }: { readonly before: number; readonly lanes?: readonly number[] },
): Labels | undefined {
  return records.reduce<Labels | undefined>((labels, record) => {
    if (record.kind !== "labels.set" || record.data.pos >= cutOf(before, lanes, laneOf(record.data.pos))) return labels;
    return changedLabels(labels ?? {}, record.data);
  }, created.labels);
}

/** A fork waits in the same queue; it has no delay and no key of its own. */
function queueOf({ queue }: RecordData<"run.created">): Pick<RunSpec, "queue" | "key" | "priority" | "weight"> {
  if (queue === undefined) return {};
  const { name, key, priority, weight } = queue;
  return { queue: name, key, priority, ...defined({ weight }) };
}

/** The fork's code would continue as if compensated effects still applied, so the request must name each of them. */
function assertNamed(run: string, { at, compensated }: ForkPlan, named: readonly number[]): void {
  const missing = compensated.filter(({ pos }) => !named.includes(pos));
  if (missing.length === 0) return;
  const names = missing.map(({ pos, name, obligation }) => `${name} at ${pos} (${obligation})`).join(", ");
  const positions = missing.map(({ pos }) => pos);
  const first = Math.min(...positions);
  const message = `this would keep effects that the source run has compensated or may still compensate: ${names}; fork at ${first} or before to repeat them, or name the positions in keepCompensated`;
  throw new TapeError("TAPE_BAD_FORK_POINT", message, { run, at, positions });
}

/** The starters of the source run count as starters of the fork. */
function startersOf(earlier: readonly string[] | undefined, own: string | undefined): Pick<RunSpec, "starters"> {
  const starters = new Set([...(earlier ?? []), ...(own === undefined ? [] : [own])]);
  return starters.size === 0 ? {} : { starters: [...starters].slice(-maxStarters) };
}

/** More than any chain of forks has. */
const maxStarters = 64;

interface ForkSource extends ForkInput {
  readonly journal: number;
  readonly begins: number;
  readonly head: number;
  readonly created: RecordData<"run.created">;
}

async function source(store: Store, tenant: string, id: string): Promise<ForkSource> {
  const run: RunView | undefined = await store.read.run(tenant, id);
  if (run === undefined) throw notFound("run", id);
  if (run.erased) throw erasedError({ run: id });
  const { journal } = run;
  const { begins = 1 } = run.lease;
  const raw = await readJournal(store, tenant, journal, { from: begins });
  const [first] = begins === 1 ? raw : await store.read.journal(tenant, { journal }, { limit: 1 });
  if (first?.kind !== "run.created") throw new TapeError("TAPE_INVARIANT", "a journal begins with run.created");
  const [continued] = raw;
  const generation = continued?.kind === "run.continued" ? continued.data : undefined;
  const rows = await effectsOf(store, tenant, id, "effect", generation?.pos);
  const effects = new Map(rows.map((row) => [row.pos, row]));
  const noted = (generation?.notesTaken ?? 0) + 1;
  const notes = await readJournal(store, tenant, journal, { from: noted, inbox: true });
  const records = withoutCancellationCharges(expandKeptRecords(raw), notes);
  const obligations = await obligationsOf(store, tenant, run, first.data, records, generation?.pos);
  const created = generation === undefined ? createdBy(first.data, notes) : continuedAs(first.data, generation);
  const shared = { journal, begins, head: raw.at(-1)!.seq, created, records, effects, obligations };
  const own = generation ?? first.data.fork?.generation;
  return own === undefined ? shared : { ...shared, generation: { generation: own.generation, pos: own.pos } };
}

/** A fork starts with the input of the current generation; what earlier ones kept of other runs is over. */
function continuedAs(
  { checked: _checked, fork: _fork, ...created }: RecordData<"run.created">,
  { input, inputHash, checked }: RecordData<"run.continued">,
): RecordData<"run.created"> {
  return { ...created, input, inputHash, ...(checked && { checked }) };
}

/** All effects or compensations of one run; a position has fewer rows than a page. */
function effectsOf(
  store: Store,
  tenant: string,
  run: string,
  role: "effect" | "compensation",
  first = 0,
): Promise<EffectRow[]> {
  return readGroups({
    page: (from) => store.read.effects(tenant, { run, role, from: Math.max(from, first) }),
    groupOf: ({ pos }) => pos,
    maxRows: store.limits.pageRows,
    large: (_, page) => page,
  });
}

/** The obligations of this run and of everything below it. */
function obligationsBelow(store: Store, tenant: string, { root, journal }: RunView): Promise<EffectRow[]> {
  return readGroups({
    page: (from) => store.read.effects(tenant, { root, below: journal, from }),
    groupOf: ({ run }) => run,
    maxRows: store.limits.pageRows,
    large: async (run) => {
      const name = (await store.read.lease(tenant, { journal: run }))?.name ?? "";
      return (await effectsOf(store, tenant, name, "compensation")).filter(({ surplus }) => !surplus);
    },
  });
}

/** Worst first: a child's position has several obligations, and the worst status counts. */
const worstFirst = ["COMPENSATED", "COMMITTED", "UNKNOWN", "STUCK", "PENDING", "ARMED", "DISCHARGED"];

/**
 * Statuses of the obligations of this run's operations: its own, those of kept operations (they stay with the runs that
 * made them), and those of its children, by the position of the child.
 */
async function obligationsOf(
  store: Store,
  tenant: string,
  run: RunView,
  created: RecordData<"run.created">,
  records: readonly JournalRecord[],
  firstPos = 0,
): Promise<ReadonlyMap<number, string>> {
  const found = new Map<number, string>();
  const note = (pos: number, status: string): void => {
    const before = found.get(pos);
    if (before === undefined || worstFirst.indexOf(status) < worstFirst.indexOf(before)) found.set(pos, status);
  };
  for (const { pos, sub, status } of await effectsOf(store, tenant, run.id, "compensation", firstPos)) {
    if (sub === 1) note(pos, status);
  }
  for (const { run: maker, before, lanes } of firstPos > 0 ? [] : (created.fork?.seeds ?? [])) {
    for (const { pos, sub, status } of await effectsOf(store, tenant, maker, "compensation")) {
      if (sub === 1 && pos < cutOf(before, lanes, laneOf(pos))) note(pos, status);
    }
  }
  const children = records.flatMap((record) => (record.kind === "child.started" ? [record.data] : []));
  if (children.length === 0) return found;
  const below = await obligationsBelow(store, tenant, run);
  const names = new Map<number, string>();
  for (const { run: journal, status } of below) {
    if (journal === run.journal) continue;
    if (!names.has(journal)) names.set(journal, (await store.read.lease(tenant, { journal }))?.name ?? "");
    const name = names.get(journal)!;
    const child = children.find(({ id }) => name === id || name.startsWith(`${id}.`));
    if (child !== undefined) note(child.pos, status);
  }
  return found;
}
