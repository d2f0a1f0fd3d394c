import { fingerprint } from "../../base/canonical.ts";
import { type BlobRef, CodecError, encode, sizeOf } from "../../base/codec.ts";
import { TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import type { Claimant } from "../../model/lease.ts";
import type { Limits } from "../../model/limits.ts";
import { encodeBody } from "../../model/projection.ts";
import { recordFault } from "../../model/record-fault.ts";
import { isRecordKind, type NewRecord, type RecordData } from "../../model/records.ts";
import type { AppendRequest, ProcessReport, RunSpec } from "../contract/store.ts";
import { checkName, checkSize, checkText, checkWhole } from "./basic.ts";
import { blobsIn, mayHoldBlobs } from "./blob-refs.ts";
import { checkLabels, checkUnset } from "./labels.ts";
import { checkQueued, startDataOf } from "./start-timing.ts";

export { checkFlag, checkList, checkName, checkObject, checkStored, checkText, checkWhole } from "./basic.ts";

/**
 * Input checks, the same for every store, before anything is written. Types are not enough: callers may be JavaScript.
 */

export function checkFence(fence: unknown): asserts fence is Fence {
  const f = fence as Fence | undefined | null;
  const ok =
    typeof f === "object" &&
    f !== null &&
    Number.isSafeInteger(f.journal) &&
    inRange(f.token) &&
    inRange(f.nonce) &&
    typeof f.tenant === "string";
  if (!ok)
    throw new TapeError("TAPE_BAD_INPUT", "a fence must come from a term that the store granted", { field: "fence" });
}

const inRange = (value: unknown): boolean => typeof value === "bigint" && value >= 0n && value < 2n ** 63n;

export function checkNonce(nonce: unknown): asserts nonce is bigint {
  if (!inRange(nonce)) throw new TapeError("TAPE_BAD_INPUT", "nonce must be a bigint of 63 bits", { field: "nonce" });
}

export function checkClaimant(claimant: Claimant, limits: Limits): void {
  checkName("owner", claimant?.owner, limits);
  checkName("label", claimant.label, limits);
  checkName("reactor", claimant.reactor, limits);
  checkWhole("ttlMs", claimant.ttlMs, 1);
  if (claimant.maxStallMs !== undefined) checkWhole("maxStallMs", claimant.maxStallMs, 1);
}

/** An entry whose records are checked and encoded. */
export interface CheckedEntry {
  readonly after: number;
  readonly records: readonly NewRecord[];
  readonly bodies: readonly string[];
  readonly bytes: number;
  /** The entry ends the term of its writer. */
  readonly releases: boolean;
  /** Only records of a run's journal that change no table and refer to no blob. */
  readonly plain: boolean;
  /** Besides such records it starts children that have no queue, no labels and no build, and that stay attached. */
  readonly spawns: boolean;
  /** What the records refer to; absent in most entries. */
  readonly blobs?: readonly BlobRef[];
}

/** The run's holder ends a sleep: the timer is fired together with the record. */
export const isSleepEnd = ({ plain, records }: CheckedEntry): boolean =>
  !plain && records.length === 1 && records[0]!.kind === "sleep.ended";

const plainKinds: ReadonlySet<string> = new Set([
  "step.done",
  "step.failed",
  "decision.made",
  "sample.taken",
  "patch.marked",
  "lane.opened",
  "race.won",
  "notes.taken",
  "effect.received",
  "run.retried",
  "run.suspected",
  "replay.stalled",
  "sleep.ended",
  "child.received",
  "scope.opened",
  "scope.closed",
  "saga.compensated",
  "fork.kept",
]);

/** Records of plain kinds that change a table all the same: a timer. */
function changesTables(record: NewRecord): boolean {
  if (record.kind === "sleep.ended") return record.data.fired === true;
  if (record.kind === "scope.opened") return record.data.timeoutMs !== undefined;
  if (record.kind === "scope.closed") return record.data.gates !== undefined || record.data.timers !== undefined;
  return record.kind === "step.failed" && record.data.timer === true;
}

function isPlainChild(record: NewRecord): boolean {
  if (record.kind !== "child.started") return false;
  const { queue, labels, build, startedBy, joined, budget } = record.data;
  return [queue, labels, build, startedBy, joined, budget].every((one) => one === undefined);
}

export function checkEntry(entry: AppendRequest, limits: Limits): CheckedEntry {
  checkWhole("after", entry?.after, 1);
  const { records } = entry;
  if (!Array.isArray(records) || records.length === 0) {
    throw new TapeError("TAPE_BAD_INPUT", "an append needs at least one record", { field: "records" });
  }
  const { begins = 1 } = entry;
  if (begins !== 1) checkWhole("begins", begins, 1);
  if (begins > entry.after)
    throw new TapeError("TAPE_BAD_INPUT", "begins is a record of the journal", { field: "begins" });
  if (records.length > limits.appendRecords || entry.after - begins + 1 + records.length > limits.journalRecords) {
    const limit = records.length > limits.appendRecords ? "appendRecords" : "journalRecords";
    throw new TapeError("TAPE_TOO_LARGE", `more records than ${limit} allows (${limits[limit]})`, { limit });
  }
  let bytes = 0;
  let releases = false;
  let plain = true;
  let spawns = true;
  let blobs: readonly BlobRef[] | undefined;
  const bodies = records.map((record, k) => {
    const body = encodeRecord(record, limits);
    bytes += body.length;
    if (!plainKinds.has(record.kind) || changesTables(record)) {
      plain = false;
      spawns &&= isPlainChild(record);
    }
    if (mayHoldBlobs(body)) blobs = [...(blobs ?? []), ...blobsIn(record.data)];
    if (record.kind === "term.ended" || record.kind === "run.ended") {
      releases = true;
      if (k !== records.length - 1) {
        throw new TapeError("TAPE_BAD_INPUT", `${record.kind} ends the term: it must be the last record`, {
          field: "records",
        });
      }
    }
    return body;
  });
  const { after } = entry;
  if (blobs === undefined || blobs.length === 0)
    return { after, records, bodies, bytes, releases, plain, spawns: spawns && !plain };
  return { after, records, bodies, bytes, releases, plain: false, spawns: false, blobs };
}

export function encodeRecord(record: NewRecord, limits: Limits): string {
  const kind: unknown = record?.kind;
  if (typeof kind !== "string" || !isRecordKind(kind)) {
    const named = typeof kind === "string" ? kind : `that is ${kind === null ? "null" : `of type ${typeof kind}`}`;
    throw new TapeError("TAPE_BAD_INPUT", `unknown record kind ${named}`, { field: "kind" });
  }
  if (kind === "child.started") checkChildQueue(record.data, limits);
  if (kind === "run.continued") checkCarried(record.data, limits);
  const fault = recordFault(kind, record.data);
  if (fault !== undefined) throw new TapeError("TAPE_BAD_INPUT", `${kind}: ${fault}`, { field: "data", kind });
  checkStrings(kind, record.data, limits);
  return checkPayload(kind, () => encodeBody(record.data), limits);
}

/** What a run takes into its next generation is bounded: every drive of that reads it. */
function checkCarried(data: unknown, limits: Limits): void {
  const { notes, published, labels } = (data ?? {}) as Partial<RecordData<"run.continued">>;
  const tooMany = (field: string, limit: "carriedNotes" | "publishedNames" | "labels"): TapeError =>
    new TapeError("TAPE_TOO_LARGE", `run.continued: more ${field} than ${limit} allows (${limits[limit]})`, { limit });
  if (Array.isArray(notes) && notes.length > limits.carriedNotes) throw tooMany("notes", "carriedNotes");
  if (Object.keys(labels ?? {}).length > limits.labels) throw tooMany("labels", "labels");
  if (!Array.isArray(published)) return;
  if (published.length > limits.publishedNames) throw tooMany("names", "publishedNames");
  for (const name of published) checkName("run.continued.published", name, limits);
}

function checkChildQueue(data: unknown, limits: Limits): void {
  const { queue } = (data ?? {}) as Partial<RecordData<"child.started">>;
  if (queue !== undefined) checkQueued(queue, limits);
}

/** Fields that are names, short texts, and maps whose keys are names. All other fields hold the user's values. */
const nameFields: ReadonlySet<string> = new Set(
  "id name workflow key businessKey connector argsHash inputHash purpose nextReactor schedule forkedFrom".split(" "),
);
const textFields: ReadonlySet<string> = new Set(["version", "binds"]);
const mapFields: ReadonlySet<string> = new Set(["budget", "amounts", "spent", "reserved", "over"]);
/** Elsewhere `reason` is free text of an operator; here it is a fixed value in a column. */
const reasonKinds: ReadonlySet<string> = new Set(["effect.settled", "obligation.settled"]);

const isName = (value: unknown, limits: Limits): boolean =>
  typeof value === "string" &&
  value.length > 0 &&
  value.length <= limits.nameLength &&
  !value.includes("\0") &&
  value.isWellFormed();

/**
 * The record's own short strings (ids, names, keys) obey the limits of names; the user's values only those of the
 * codec.
 */
function checkStrings(kind: string, data: object, limits: Limits): void {
  for (const field in data) {
    const value: unknown = (data as Record<string, unknown>)[field];
    if (value === undefined) continue;
    if (nameFields.has(field) || (field === "reason" && reasonKinds.has(kind))) {
      if (!isName(value, limits)) checkName(`${kind}.${field}`, value, limits); // throws the precise error
    } else if (textFields.has(field)) {
      if (typeof value === "string") checkText(`${kind}.${field}`, value, limits);
    } else if (field === "labels" || (kind === "labels.set" && field === "set")) {
      checkLabels(`${kind}.${field}`, value, limits);
    } else if (kind === "labels.set" && field === "unset") {
      checkUnset(data as RecordData<"labels.set">, limits);
    } else if (mapFields.has(field)) {
      for (const [key, entry] of Object.entries(value as object)) {
        checkName(`${kind}.${field}`, key, limits);
        if (typeof entry === "string") checkText(`${kind}.${field}`, entry, limits);
      }
    }
  }
}

/** Encodes a value of the user; throws if it cannot be encoded or is too large. */
export function checkPayload(what: string, encodeIt: () => string, limits: Limits): string {
  let text: string;
  try {
    text = encodeIt();
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    throw new TapeError("TAPE_NOT_ENCODABLE", `${what}: ${error.message}`, { field: what }, error);
  }
  checkSize(what, text, limits);
  return text;
}

/** Enough for tens of reactors and singletons. */
const reportBytes = 32 * 1024;

/** A process report, encoded. */
export function checkReport({ body }: ProcessReport, limits: Limits): string {
  const text = checkPayload("body", () => encode(body), limits);
  if (sizeOf(text) <= reportBytes) return text;
  const message = `a report takes ${sizeOf(text)} bytes, at most ${reportBytes} are allowed`;
  throw new TapeError("TAPE_TOO_LARGE", message, { field: "body", limit: "reportBytes" });
}

export function checkRunSpec(spec: RunSpec, limits: Limits): RecordData<"run.created"> {
  checkName("id", spec?.id, limits);
  checkName("workflow", spec.workflow, limits);
  checkPayload("input", () => encode(spec.input), limits); // first, because a fingerprint takes several times as long
  const inputHash = fingerprint(spec.input);
  const { id, workflow, input, version, labels, budget, schedule, starters, forkedFrom, fork, checked } = spec;
  const { maxStallMs, deadlineMs, build } = spec;
  const data: RecordData<"run.created"> = {
    id,
    workflow,
    input,
    inputHash,
    ...(version !== undefined && { version }),
    ...(labels !== undefined && { labels }),
    ...(budget !== undefined && { budget }),
    ...(schedule !== undefined && { schedule }),
    ...(starters !== undefined && { starters }),
    ...(forkedFrom !== undefined && { forkedFrom }),
    ...(fork !== undefined && { fork }),
    ...(checked === true && { checked }),
    ...(maxStallMs !== undefined && { maxStallMs }),
    ...(deadlineMs !== undefined && { deadlineMs }),
    ...(build !== undefined && { build }),
    ...startDataOf(spec, limits),
  };
  encodeRecord({ kind: "run.created", data }, limits);
  if (Object.keys(budget ?? {}).length > limits.budgetUnits) {
    const message = `a budget has at most ${limits.budgetUnits} units`;
    throw new TapeError("TAPE_TOO_LARGE", message, { field: "budget", limit: "budgetUnits" });
  }
  return data;
}

/** Turns a TapeError of a validator into an item result; other errors propagate. */
export function toItemResult<T>(work: () => T): { ok: true; value: T } | { ok: false; error: TapeError } {
  try {
    return { ok: true, value: work() };
  } catch (error) {
    if (error instanceof TapeError) return { ok: false, error };
    throw error;
  }
}

export function pageLimit(limit: number | undefined, limits: Limits): number {
  if (limit === undefined) return limits.pageRows;
  checkWhole("limit", limit, 1);
  return Math.min(limit, limits.pageRows);
}
