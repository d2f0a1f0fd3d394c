import { encode } from "../../base/codec.ts";
import { isTapeError } from "../../model/errors.ts";
import { type Fence, makeFence } from "../../model/fence.ts";
import { encodeBody } from "../../model/projection.ts";
import type { RecordData } from "../../model/records.ts";
import { leaseQueue, startDelay } from "../../model/slot.ts";
import type { AppendResult, CreateResult } from "../contract/store.ts";
import { appendPlan, appendRetryPlan } from "../sql/plans/append.ts";
import { type FirstTerm, holderOf, unpinned } from "../sql/plans/create.ts";
import type { TimerRef } from "../sql/plans/intake.ts";
import type { RowOf } from "../sql/statements.gen.ts";
import type { CheckedEntry } from "../validate/entry.ts";
import { joinedTexts, nullableLiteral, numbersLiteral, textsLiteral } from "./arrays.ts";
import type { BatchedWrite } from "./write-batcher.ts";
import type { Writer } from "./writer.ts";

/** The writes that make up most of the load, as multi-row statements: create a run, append a record, park, end well. */

export interface AppendItem {
  readonly fence: Fence;
  readonly entry: CheckedEntry;
}

/** One append in its own transaction. */
export async function appendSingle(writer: Writer, { fence, entry }: AppendItem): Promise<AppendResult> {
  const { tenant } = fence;
  try {
    return await writer.run((context) => appendPlan(context, fence, entry), { tenant });
  } catch (error) {
    // The unique index rejected it, which ended the transaction: another one checks whether it is a repeat.
    if (!isTapeError(error, "TAPE_NOT_HEAD")) throw error;
    return writer.run(() => appendRetryPlan(fence, entry), { tenant });
  }
}

/** The backlog in which the journal waits for its next reactor. */
export interface Backlog {
  readonly tenant: string;
  readonly workflow: string;
}

/** `backlog` is absent if the hints have been sent already. */
export type ParkResult = AppendResult & { readonly backlog?: Backlog };

const backlogOf = ({ tenant, workflow }: RowOf<"park_many"> | RowOf<"fire_many">): Backlog => ({
  tenant: tenant!,
  workflow,
});

export type WriteSingle<Item, Result> = (item: Item) => Promise<Result>;

const fenceParams = (batch: readonly AppendItem[]) => ({
  tenants: textsLiteral(batch.map(({ fence }) => fence.tenant)),
  journals: numbersLiteral(batch.map(({ fence }) => fence.journal)),
  tokens: numbersLiteral(batch.map(({ fence }) => fence.token)),
  nonces: numbersLiteral(batch.map(({ fence }) => fence.nonce)),
  afters: numbersLiteral(batch.map(({ entry }) => entry.after)),
});

/** For entries with one record each. */
const entryParams = (batch: readonly AppendItem[]) => ({
  ...fenceParams(batch),
  bodies: joinedTexts(batch.map(({ entry }) => entry.bodies[0]!)),
});

export const fenceFields = {
  checkSql: "append_many.check" as const,
  journal: ({ fence }: AppendItem) => fence.journal,
  tenant: ({ fence }: AppendItem) => fence.tenant,
  bytes: ({ entry }: AppendItem) => entry.bytes,
  result: ({ entry }: AppendItem, row: { readonly notes: number }): AppendResult => ({
    head: entry.after + entry.records.length,
    notes: Number(row.notes),
  }),
};

/** Plain records, which change no table. */
export const appendWrite = (
  single: WriteSingle<AppendItem, AppendResult>,
): BatchedWrite<AppendItem, AppendResult, "append_many"> => ({
  ...fenceFields,
  sql: "append_many",
  alone: ({ fence, entry }, id) => {
    const [record] = entry.records;
    if (entry.records.length > 1) return undefined;
    const { tenant, journal, token, nonce } = fence;
    const { after } = entry;
    const row = { seq: after + 1, kind: record!.kind, body: entry.bodies[0]! };
    return { sql: "append_one", params: { tenant, journal, token, nonce, after, ...row, id } };
  },
  params: recordParams,
  single,
});

/** For entries with any number of records: each is an item of the statement. */
export function recordParams(batch: readonly AppendItem[]) {
  if (batch.every(({ entry }) => entry.records.length === 1)) {
    return {
      ...entryParams(batch),
      seqs: numbersLiteral(batch.map(({ entry }) => entry.after + 1)),
      kinds: joinedTexts(batch.map(({ entry }) => entry.records[0]!.kind)),
    };
  }
  return {
    ...fenceParams(batch.flatMap((item) => Array<AppendItem>(item.entry.records.length).fill(item))),
    bodies: joinedTexts(batch.flatMap(({ entry }) => entry.bodies)),
    seqs: numbersLiteral(batch.flatMap(({ entry }) => entry.records.map((_, k) => entry.after + 1 + k))),
    kinds: joinedTexts(batch.flatMap(({ entry }) => entry.records.map(({ kind }) => kind))),
  };
}

/** The end of a sleep: the run's holder fires the timer together with the record. */
export const endSleepWrite = (
  single: WriteSingle<AppendItem, AppendResult>,
): BatchedWrite<AppendItem, AppendResult, "end_sleep_many"> => ({
  ...fenceFields,
  sql: "end_sleep_many",
  params: (batch) => ({
    ...entryParams(batch),
    positions: numbersLiteral(batch.map(({ entry }) => (entry.records[0]!.data as RecordData<"sleep.ended">).pos)),
  }),
  single,
});

const endedOf = ({ entry }: AppendItem): RecordData<"term.ended"> => entry.records[0]!.data as RecordData<"term.ended">;

/** A term that ends without other records: a run parks, a lease is released. */
export const parkWrite = (
  single: WriteSingle<AppendItem, ParkResult>,
): BatchedWrite<AppendItem, ParkResult, "park_many"> => ({
  ...fenceFields,
  sql: "park_many",
  result: (item, row) => ({ ...fenceFields.result(item, row), backlog: backlogOf(row) }),
  params: (batch) => ({
    ...entryParams(batch),
    noteCounts: numbersLiteral(batch.map((item) => endedOf(item).notesTaken)),
    endReasons: textsLiteral(batch.map((item) => endedOf(item).reason)),
    nextReactors: textsLiteral(batch.map((item) => endedOf(item).nextReactor ?? null)),
    delays: numbersLiteral(batch.map((item) => Math.floor(endedOf(item).delayMs ?? 0))),
  }),
  single,
});

/** The same for runs of queues, which have their own statements so that others pay nothing for them. */
export const parkQueuedWrite = (
  single: WriteSingle<AppendItem, ParkResult>,
): BatchedWrite<AppendItem, ParkResult, "park_many.queued"> => ({ ...parkWrite(single), sql: "park_many.queued" });

const outcomeOf = ({ entry }: AppendItem): RecordData<"run.ended"> => entry.records[0]!.data as RecordData<"run.ended">;

/** A run without a parent that is decided and ended at once, with nothing open. */
export const endWrite = (
  single: WriteSingle<AppendItem, AppendResult>,
): BatchedWrite<AppendItem, AppendResult, "end_many"> => ({
  ...fenceFields,
  sql: "end_many",
  params: (batch) => ({
    ...entryParams(batch),
    noteCounts: numbersLiteral(batch.map((item) => outcomeOf(item).notesTaken)),
    statuses: textsLiteral(batch.map((item) => outcomeOf(item).status)),
    outcomes: textsLiteral(batch.map((item) => encode(outcomeOf(item).outcome))),
  }),
  single,
});

export const endQueuedWrite = (
  single: WriteSingle<AppendItem, AppendResult>,
): BatchedWrite<AppendItem, AppendResult, "end_many.queued"> => ({ ...endWrite(single), sql: "end_many.queued" });

export function isPark({ records }: CheckedEntry): boolean {
  return records.length === 1 && records[0]!.kind === "term.ended";
}

export function isEnd({ records }: CheckedEntry): boolean {
  const [record] = records;
  if (records.length !== 1 || record?.kind !== "run.ended") return false;
  const { status, outcome, parent } = record.data;
  return status !== "COMPENSATED" && outcome !== undefined && parent === undefined;
}

export interface CreateItem {
  readonly journal: number;
  readonly tenant: string;
  readonly data: RecordData<"run.created">;
  readonly first: FirstTerm | undefined;
  readonly body: string;
}

export function createItemOf(
  journal: number,
  tenant: string,
  data: RecordData<"run.created">,
  first: FirstTerm | undefined,
): CreateItem {
  return {
    journal,
    tenant,
    data,
    first,
    body: encodeBody(first === undefined ? data : { ...data, holder: holderOf(first) }),
  };
}

const labelSets = (batch: readonly CreateItem[]): string =>
  textsLiteral(batch.map(({ data }) => (data.labels === undefined ? null : JSON.stringify(data.labels))));

/** A run without a budget or labels, which would be rows of their own. */
export const createWrite = (
  single: WriteSingle<CreateItem, CreateResult>,
): BatchedWrite<CreateItem, CreateResult, "create_many"> => ({
  sql: "create_many",
  checkSql: "create_many.check",
  journal: ({ journal }) => journal,
  tenant: ({ tenant }) => tenant,
  bytes: ({ body }) => body.length,
  params: (batch) => ({
    journals: numbersLiteral(batch.map(({ journal }) => journal)),
    tenants: textsLiteral(batch.map(({ tenant }) => tenant)),
    ids: textsLiteral(batch.map(({ data }) => data.id)),
    workflows: textsLiteral(batch.map(({ data }) => data.workflow)),
    versions: textsLiteral(batch.map(({ data }) => data.version ?? null)),
    inputHashes: textsLiteral(batch.map(({ data }) => data.inputHash)),
    bodies: joinedTexts(batch.map(({ body }) => body)),
    nonces: nullableLiteral(batch.map(({ first }) => first?.nonce)),
    owners: textsLiteral(batch.map(({ first }) => first?.owner ?? null)),
    ownerLabels: textsLiteral(batch.map(({ first }) => first?.label ?? null)),
    reactors: textsLiteral(batch.map(({ first }) => first?.reactor ?? null)),
    ttls: numbersLiteral(batch.map(({ first }) => first?.ttlMs ?? 0)),
    stalls: nullableLiteral(batch.map(({ first, data }) => data.maxStallMs ?? first?.maxStallMs)),
  }),
  result: ({ journal, tenant, first }, row) => {
    if (first === undefined) return { journal, fresh: true };
    const fence = makeFence(tenant, journal, BigInt(row.token as string), first.nonce);
    const { ttlMs } = first;
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
    } as const;
    return { journal, fresh: true, term };
  },
  single,
});

/** Tenants with a quota on runs have their own batch, so that the others pay nothing for it. */
export const countedWrite = (
  single: WriteSingle<CreateItem, CreateResult>,
): BatchedWrite<CreateItem, CreateResult, "create_many.counted"> => {
  const plain = createWrite(single);
  return {
    ...plain,
    sql: "create_many.counted",
    params: (batch) => ({ ...plain.params(batch), labelSets: labelSets(batch) }),
  };
};

/** So do runs with labels. */
export const labelledWrite = (
  single: WriteSingle<CreateItem, CreateResult>,
): BatchedWrite<CreateItem, CreateResult, "create_many.labelled"> => ({
  ...countedWrite(single),
  sql: "create_many.labelled",
});

/** A run that waits in a queue and has nothing else: no delay, no time limit, no key of its own. */
export const createQueuedWrite = (
  single: WriteSingle<CreateItem, CreateResult>,
): BatchedWrite<CreateItem, CreateResult, "create_many.queued"> => {
  const { params: _params, result: _result, ...plain } = createWrite(single);
  return {
    ...plain,
    sql: "create_many.queued",
    params: (batch) => ({
      journals: numbersLiteral(batch.map(({ journal }) => journal)),
      tenants: textsLiteral(batch.map(({ tenant }) => tenant)),
      ids: textsLiteral(batch.map(({ data }) => data.id)),
      workflows: textsLiteral(batch.map(({ data }) => data.workflow)),
      versions: textsLiteral(batch.map(({ data }) => data.version ?? null)),
      inputHashes: textsLiteral(batch.map(({ data }) => data.inputHash)),
      labelSets: labelSets(batch),
      bodies: joinedTexts(batch.map(({ body }) => body)),
      queues: textsLiteral(batch.map(({ data }) => data.queue!.name)),
      keys: textsLiteral(batch.map(({ data }) => data.queue!.key)),
      priorities: numbersLiteral(batch.map(({ data }) => data.queue!.priority)),
      weights: nullableLiteral(batch.map(({ data }) => data.queue!.weight)),
      stalls: nullableLiteral(batch.map(({ data }) => data.maxStallMs)),
    }),
    result: ({ journal }) => ({ journal, fresh: true }),
  };
};

function isPlainlyQueued(data: RecordData<"run.created">): boolean {
  const { queue, budget, fork, expiresMs, unique } = data;
  const others = [budget, fork, expiresMs, unique, startDelay(data)];
  return queue !== undefined && others.every((one) => one === undefined);
}

/** How a run is created, and what of it is recorded: a run that its creator does not hold is pinned later. */
export function creationOf(
  given: RecordData<"run.created">,
  held: boolean,
): { readonly data: RecordData<"run.created">; readonly by: "plan" | "queued" | "batch" } {
  const queued = isPlainlyQueued(given);
  const data = queued || !held ? unpinned(given) : given;
  if (queued) return { data, by: "queued" };
  const isPlain = [data.build, data.budget, data.fork].every((one) => one === undefined) && leaseQueue(data) === null;
  return { data, by: isPlain ? "batch" : "plan" };
}

export interface FireResult {
  readonly fired: boolean;
  /** Whether the run has a holder; undefined: the hints have been sent already. */
  readonly held?: boolean;
  readonly backlog?: Backlog;
}

/** A due timer of an open run: it is fired, and its note is sent. */
export const fireWrite = (
  single: WriteSingle<TimerRef, FireResult>,
): BatchedWrite<TimerRef, FireResult, "fire_many"> => ({
  sql: "fire_many",
  checkSql: "fire_many.check",
  journal: ({ run }) => run,
  tenant: ({ tenant }) => tenant,
  bytes: ({ purpose }) => purpose.length,
  params: (batch) => ({
    tenants: textsLiteral(batch.map(({ tenant }) => tenant)),
    journals: numbersLiteral(batch.map(({ run }) => run)),
    positions: numbersLiteral(batch.map(({ pos }) => pos)),
    purposes: textsLiteral(batch.map(({ purpose }) => purpose)),
    bodies: joinedTexts(batch.map(({ pos, purpose }) => encodeBody({ pos, purpose }))),
  }),
  result: (_, row) => ({ fired: true, held: Boolean(row.held), backlog: backlogOf(row) }),
  single,
});
