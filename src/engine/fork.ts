import { encode } from "../base/codec.ts";
import { readClocks } from "../lease/belief.ts";
import { starterOf } from "../model/approvers.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import type { Fence } from "../model/fence.ts";
import { laneOf } from "../model/place.ts";
import type { Credential, ForkData, JournalRecord, NewRecord, RecordData } from "../model/records.ts";
import type { EffectRow } from "../model/rows.ts";
import type { RunSpec, RunView, Store } from "../store/contract.ts";
import { type ForkInput, type ForkPlan, forkPlan, type KeptRecord, keptRecords } from "./fork-plan.ts";
import { expandKeptRecords } from "./kept.ts";
import { cutOf, withinBoth } from "./lanes.ts";
import type { OperatorDeps } from "./redrive.ts";

export interface ForkRequest {
  /** Operations before this position are kept. Default: all that were done, up to the first that was not or failed. */
  readonly at?: number;
  /** The new run's id. Default: a fresh one. */
  readonly id?: string;
  readonly by: string;
  readonly reason: string;
  readonly via?: Credential;
  /** Positions of acts that have happened and may happen again. */
  readonly again?: readonly number[];
  /** Positions of kept effects that were undone, or that the source run may still undo, and that are kept all the same. */
  readonly keepCompensated?: readonly number[];
}

/** Beyond this a record of kept ones is begun anew: it must fit what the store takes as one. */
const maxKeptBytes = 512 * 1024;

/** What a fork at this position would keep, do again, and repeat in the world. Reads only. */
export async function planFork(deps: OperatorDeps, run: string, at?: number): Promise<ForkPlan> {
  return forkPlan(await source(deps.store, deps.tenant, run), at);
}

/**
 * A new run that goes on from a point of another one: what was done before it is kept as it is, the rest runs again with
 * the code as it is now. The other run and what it owes are left alone.
 */
export async function fork(deps: OperatorDeps, run: string, request: ForkRequest): Promise<string> {
  const { store, keeper, tenant, clock, random } = deps;
  const from = await source(store, tenant, run);
  const plan = forkPlan(from, request.at);
  const missing = plan.happened.filter(({ pos, repeatable }) => !repeatable && !request.again?.includes(pos));
  if (missing.length > 0) {
    const names = missing.map(({ pos, name }) => `${name} at ${pos}`).join(", ");
    const positions = missing.map(({ pos }) => pos);
    throw new TapeError("TAPE_FORK_REPEATS", `this would do again what has happened: ${names}`, { run, positions });
  }
  assertStanding(run, plan, request.keepCompensated ?? []);
  const { created } = from;
  const { by, reason, via, id = random.uuid(clock.wall()) } = request;
  const cut = { before: plan.at, ...(plan.lanes && { lanes: [...plan.lanes] }) };
  const seeds = (created.fork?.seeds ?? []).map((seed) => ({ run: seed.run, ...withinBoth(seed, cut) }));
  const spec: RunSpec = {
    id,
    workflow: created.workflow,
    input: created.input,
    ...(created.version !== undefined && { version: created.version }),
    ...(created.labels !== undefined && { labels: created.labels }),
    ...(created.budget !== undefined && { budget: created.budget }),
    ...(created.checked && { checked: true }),
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
    },
  };
  const sent = readClocks(clock);
  const claimant = { ...keeper.identity, reactor: "recovery", ttlMs: Math.round(keeper.timings.ttlMs) };
  const [verdict] = await store.intake.createRuns(tenant, [spec], { ...claimant, nonce: random.bits63() });
  if (verdict === undefined) throw new TapeError("TAPE_INVARIANT", "a fork was neither created nor refused");
  if (!verdict.ok) throw verdict.error;
  if (verdict.term === undefined) throw new TapeError("TAPE_RUN_CONFLICT", `run ${id} exists already`, { id });
  const lease = keeper.adopt(id, verdict.term, sent);
  try {
    const end: NewRecord = { kind: "term.ended", data: { end: "released", taken: 0, wants: "recovery" } };
    await writeKeptRecords(store, tenant, verdict.term.fence, 1, spec.fork!, [end]);
  } finally {
    lease.end("given back");
  }
  return id;
}

/** The code of a fork would go on as if they stood: it must be said for each of them that this is meant. */
function assertStanding(run: string, { at, undone }: ForkPlan, named: readonly number[]): void {
  const missing = undone.filter(({ pos }) => !named.includes(pos));
  if (missing.length === 0) return;
  const names = missing.map(({ pos, name, obligation }) => `${name} at ${pos} (${obligation})`).join(", ");
  const positions = missing.map(({ pos }) => pos);
  const first = Math.min(...positions);
  const message = `this would keep what the run it is forked from has undone, or may still undo: ${names}; fork at ${first} or before to do it again, or name the positions in keepCompensated`;
  throw new TapeError("TAPE_FORK_POINT", message, { run, at, positions });
}

/** Whoever started what was forked is its starter too. */
function startersOf(before: readonly string[] | undefined, own: string | undefined): Pick<RunSpec, "starters"> {
  const starters = new Set([...(before ?? []), ...(own === undefined ? [] : [own])]);
  return starters.size === 0 ? {} : { starters: [...starters].slice(-maxStarters) };
}

/** Of a fork of forks: more than anybody makes. */
const maxStarters = 64;

/**
 * Writes what a fork keeps, with who asked for it, in one append. Its maker does so; if it died in between, the first who
 * drives the run does the same, before anything of it runs.
 */
export async function writeKeptRecords(
  store: Store,
  tenant: string,
  fence: Fence,
  after: number,
  data: ForkData,
  more: readonly NewRecord[] = [],
): Promise<void> {
  const { journal, pos, through, lanes } = data;
  const records = expandKeptRecords(await readJournal(store, tenant, journal, through));
  if (records.length === 0) {
    throw new TapeError("TAPE_FORK_POINT", "the run it was forked from was deleted before this one began", { journal });
  }
  await store.fenced.append(fence, {
    after,
    records: [forkActed(data), ...chunked(keptRecords(records, pos, lanes)), ...more],
  });
}

/** Who asked for a fork, in its journal: as its creation says, whichever process writes it. */
export function forkActed({ journal, pos, through, by, reason, via }: ForkData): NewRecord {
  const detail = { journal, pos, through };
  return { kind: "operator.acted", data: { who: by, action: "fork", reason, detail, ...(via && { via }) } };
}

/**
 * The records of a run, with what it keeps if it is a fork. One whose maker died before it had written that: it comes
 * first, or all of it would run again. `lost`: it is gone for good, and a person must decide.
 */
export async function withKeptRecords(
  {
    store,
    tenant,
    lease,
  }: { readonly store: Store; readonly tenant: string; readonly lease: { readonly fence: Fence } },
  records: readonly JournalRecord[],
  reread: () => Promise<JournalRecord[]>,
): Promise<{ readonly records: readonly JournalRecord[]; readonly lost?: TapeError }> {
  const [first] = records;
  if (first?.kind !== "run.created" || first.data.fork === undefined) return { records };
  if (records.some(({ kind }) => kind === "fork.kept")) return { records: expandKeptRecords(records) };
  try {
    await writeKeptRecords(store, tenant, lease.fence, records.at(-1)!.seq, first.data.fork);
  } catch (error) {
    if (!isTapeError(error, "TAPE_FORK_POINT")) throw error;
    return { records, lost: error };
  }
  return { records: expandKeptRecords(await reread()) };
}

function chunked(kept: readonly KeptRecord[]): NewRecord[] {
  const parts: RecordData<"fork.kept">["records"][] = [[]];
  let size = 0;
  for (const { kind, data } of kept) {
    const bytes = encode(data).length;
    if (size + bytes > maxKeptBytes && size > 0) {
      parts.push([]);
      size = 0;
    }
    parts.at(-1)!.push({ kind, data });
    size += bytes;
  }
  return parts.map((records) => ({ kind: "fork.kept", data: { records } }));
}

interface ForkSource extends ForkInput {
  readonly journal: number;
  readonly head: number;
  readonly created: RecordData<"run.created">;
}

async function source(store: Store, tenant: string, id: string): Promise<ForkSource> {
  const run: RunView | undefined = await store.read.run(tenant, id);
  if (run === undefined) throw new TapeError("TAPE_RUN_UNKNOWN", `there is no run ${id}`, { run: id });
  const raw = await readJournal(store, tenant, run.journal, Number.MAX_SAFE_INTEGER);
  const [first] = raw;
  if (first?.kind !== "run.created") throw new TapeError("TAPE_INVARIANT", "a journal begins with run.created");
  const acts = await effectsOf(store, tenant, id, "act");
  const statuses = new Map(acts.map(({ pos, status }) => [pos, status]));
  const notes = await readJournal(store, tenant, run.journal, Number.MAX_SAFE_INTEGER, true);
  const records = withoutCancellationCharges(expandKeptRecords(raw), notes);
  const obligations = await obligationsOf(store, tenant, run, first.data, records);
  return { journal: run.journal, head: raw.at(-1)!.seq, created: first.data, records, statuses, obligations };
}

/** All of one run, page after page: a position is never left in the middle. */
async function effectsOf(store: Store, tenant: string, run: string, role: "act" | "inverse"): Promise<EffectRow[]> {
  const all: EffectRow[] = [];
  for (let from = 0; ; ) {
    const page = await store.read.effects(tenant, { run, role, from });
    const last = page.at(-1)?.pos;
    if (last === undefined || page.length < store.limits.pageRows || page[0]!.pos === last) return [...all, ...page];
    all.push(...page.filter(({ pos }) => pos < last));
    from = last;
  }
}

/** What this run answers for, itself and everything below it, page after page: no run is left in the middle. */
async function obligationsBelow(store: Store, tenant: string, { root, journal }: RunView): Promise<EffectRow[]> {
  const all: EffectRow[] = [];
  for (let from = 0; ; ) {
    const page = await store.read.effects(tenant, { root, below: journal, from });
    const last = page.at(-1)?.run;
    if (last === undefined || page.length < store.limits.pageRows) return [...all, ...page];
    const whole = page.filter(({ run }) => run < last);
    if (whole.length > 0) all.push(...whole);
    else {
      // It owes more than a page by itself.
      const name = (await store.read.lease(tenant, { journal: last }))?.name ?? "";
      all.push(...(await effectsOf(store, tenant, name, "inverse")).filter(({ surplus }) => !surplus));
    }
    from = whole.length > 0 ? last : last + 1;
  }
}

/** Worst first: what is said of a position with several obligations, those of a child. */
const worst = ["COMPENSATED", "COMMITTED", "UNKNOWN", "STUCK", "PENDING", "ARMED", "DISCHARGED"];

/**
 * How the obligations stand that belong to the operations of this run: its own, those of what it kept from others (they
 * stay with the runs that made them), and those of its children, which are told by the position of the child.
 */
async function obligationsOf(
  store: Store,
  tenant: string,
  run: RunView,
  created: RecordData<"run.created">,
  records: readonly JournalRecord[],
): Promise<ReadonlyMap<number, string>> {
  const found = new Map<number, string>();
  const note = (pos: number, status: string): void => {
    const before = found.get(pos);
    if (before === undefined || worst.indexOf(status) < worst.indexOf(before)) found.set(pos, status);
  };
  for (const { pos, sub, status } of await effectsOf(store, tenant, run.id, "inverse")) {
    if (sub === 1) note(pos, status);
  }
  for (const { run: maker, before, lanes } of created.fork?.seeds ?? []) {
    for (const { pos, sub, status } of await effectsOf(store, tenant, maker, "inverse")) {
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

/**
 * What a cancelled run asks for is refused, but for giving back what it had reserved: that answers the cancellation, and
 * a fork, which nobody has cancelled, would be told that it had asked for it.
 */
function withoutCancellationCharges(
  records: readonly JournalRecord[],
  notes: readonly JournalRecord[],
): JournalRecord[] {
  const asked = notes.find(({ kind }) => kind === "cancel.asked")?.seq ?? Number.POSITIVE_INFINITY;
  const told = records.findIndex((record) => record.kind === "notes.taken" && record.data.through >= asked);
  return records.filter(({ kind }, k) => told < 0 || k < told || kind !== "budget.charged");
}

async function readJournal(
  store: Store,
  tenant: string,
  journal: number,
  through: number,
  inbox = false,
): Promise<JournalRecord[]> {
  const all: JournalRecord[] = [];
  for (;;) {
    const page = await store.read.journal(tenant, { journal }, { from: (all.at(-1)?.seq ?? 0) + 1, inbox });
    const wanted = page.filter(({ seq }) => seq <= through);
    all.push(...wanted);
    if (page.length === 0 || wanted.length < page.length) return all;
  }
}
