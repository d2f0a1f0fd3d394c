import type { Change } from "../../../model/changes.ts";
import { TapeError } from "../../../model/errors.ts";
import { makeFence } from "../../../model/fence.ts";
import type { Claimant } from "../../../model/lease.ts";
import { isHashed } from "../../../model/payloads.ts";
import { changesOfCreation } from "../../../model/projection.ts";
import type { RecordData } from "../../../model/records.ts";
import { leaseQueue, startsLater } from "../../../model/slot.ts";
import type { CreateResult } from "../../contract/store.ts";
import { type Plan, type PlanContext, query, queryRow } from "../plan.ts";
import { applyChange } from "./append.ts";
import { ownTerm } from "./claim.ts";
import { admitRun, dismissRun } from "./quotas.ts";
import { abandonStart, prepareStart } from "./start.ts";

export type FirstTerm = Claimant & { readonly nonce: bigint };

/**
 * Creates a run, or finds the same one. With `first`, its creator holds the first term from the same transaction on.
 * `joins`: a run with another input is the same one, too.
 */
export function* createPlan(
  context: PlanContext,
  tenant: string,
  data: RecordData<"run.created">,
  first?: FirstTerm,
  joins = false,
): Plan<CreateResult> {
  if (data.fork !== undefined) {
    // A record must not name another tenant's journal, nor one that does not exist.
    const { journal: source } = data.fork;
    if ((yield* queryRow("run.list_key", { tenant, journal: source })) === undefined) {
      const known = yield* existingRun(tenant, data, first, joins);
      if (known !== undefined) return known;
      const message = `the fork names journal ${source}, which belongs to no run`;
      throw new TapeError("TAPE_BAD_INPUT", message, { field: "fork" });
    }
  }
  const journal = context.allocate();
  if (leaseQueue(data) === null) return yield* insertRun(context, tenant, journal, data, first, joins);
  const known = yield* existingRun(tenant, data, first, joins);
  if (known !== undefined) return known;
  const other = yield* prepareStart(context, tenant, journal, data);
  if (other !== undefined) return other;
  // A run that does not start at once gets its first term later; only a fork is written before that.
  const holder = startsLater(data) && data.fork === undefined ? undefined : first;
  try {
    const created = yield* insertRun(context, tenant, journal, data, holder, joins);
    if (!created.fresh) yield* abandonStart(journal, data);
    return created;
  } catch (error) {
    if (error instanceof TapeError) yield* abandonStart(journal, data);
    throw error;
  }
}

function* insertRun(
  context: PlanContext,
  tenant: string,
  journal: number,
  data: RecordData<"run.created">,
  first: FirstTerm | undefined,
  joins: boolean,
): Plan<CreateResult> {
  const { workflow } = data;
  const queue = leaseQueue(data);
  const queued = queue !== null;
  const none = { token: 0n, nonce: 0n, keepVersions: 0, maxNames: 0, maxUnits: 0, maxLabels: 0 };
  const at = { journal, kind: "run", ...none, queued, allocate: context.allocate } as const;
  const changes = changesOfCreation(
    tenant,
    first === undefined ? unpinned(data) : { ...data, holder: holderOf(first) },
    at,
  );
  let token = 0n;
  for (const change of changes) {
    if (change.do === "run.create") {
      const find = (): Plan<CreateResult | undefined> => existingRun(tenant, data, first, joins);
      const known = yield* insertRow(context, change, tenant, find);
      if (known !== undefined) return known;
    } else if (first !== undefined && change.do === "lease.create") {
      const maxStallMs = change.maxStallMs ?? first.maxStallMs ?? null;
      const row = yield* queryRow("lease.first", { journal, tenant, workflow, ...first, maxStallMs, queue });
      token = BigInt(row?.token as string | bigint);
    } else if (change.do !== "business_key.claim" && change.do !== "business_key.replace") {
      yield* applyChange(context, change, tenant); // prepareStart has claimed the keys
    }
  }
  if (first === undefined) return { journal, fresh: true };
  const { nonce, ttlMs } = first;
  const fence = makeFence(tenant, journal, token, nonce);
  const term = {
    fence,
    journal,
    kind: "run",
    tenant,
    run: journal,
    ttlMs,
    head: 1,
    notes: 0,
    reason: "start",
    ...(queue === null ? {} : { queue }),
  } as const;
  return { journal, fresh: true, term };
}

/** Without a holder no code has run: the first term decides. */
export function unpinned(data: RecordData<"run.created">): RecordData<"run.created"> {
  if (data.build === undefined) return data;
  const { build: _build, ...free } = data;
  return free;
}

/** Inserts the run's row, within its tenant's quota. Returns the run that exists already, as `find` finds it. */
function* insertRow(
  context: PlanContext,
  change: Extract<Change, { do: "run.create" }>,
  tenant: string,
  find: () => Plan<CreateResult | undefined>,
): Plan<CreateResult | undefined> {
  const { count } = yield* query("run.root", { ...change, tenant, admitted: false });
  if (count > 0) return undefined;
  const known = yield* find();
  if (known !== undefined) return known;
  const room = yield* admitRun(tenant, context.lasting !== true);
  // Another transaction may have been faster, if their statements can interleave.
  if ((yield* query("run.root", { ...change, tenant, admitted: true })).count > 0) return undefined;
  yield* dismissRun(tenant, room);
  return (yield* find()) ?? gone(change.id);
}

export function holderOf(first: Claimant): NonNullable<RecordData<"run.created">["holder"]> {
  const { owner, label, reactor, ttlMs } = first;
  return { owner, label, reactor, ttlMs };
}

function gone(id: string): never {
  throw new TapeError("TAPE_RUN_GONE", `run ${id} existed and was deleted`, { id });
}

/** A keyed hash and a plain one of the same input differ: then the id and the workflow decide. */
const differs = (one: string, other: string): boolean => one !== other && isHashed(one) === isHashed(other);

/** The run with this id; undefined: there never was one. */
function* existingRun(
  tenant: string,
  data: RecordData<"run.created">,
  first: FirstTerm | undefined,
  joins: boolean,
): Plan<CreateResult | undefined> {
  const row = yield* queryRow("run.find", { tenant, id: data.id });
  if (row === undefined) {
    const tombstone = yield* queryRow("tombstone.find", { tenant, id: data.id });
    return tombstone === undefined ? undefined : gone(data.id);
  }
  if (row.workflow !== data.workflow || (!joins && differs(row.input_hash, data.inputHash))) {
    const message = `run ${data.id} exists with another ${row.workflow !== data.workflow ? "workflow" : "input"}`;
    throw new TapeError("TAPE_RUN_CONFLICT", message, { id: data.id });
  }
  const journal = Number(row.journal);
  // The same creation, repeated after a lost response: its term is still the current one.
  const term = first === undefined ? undefined : yield* ownTerm(journal, tenant, first);
  return term === undefined ? { journal, fresh: false } : { journal, fresh: true, term };
}
