import { suggest } from "../base/suggest.ts";
import { TapeError } from "./errors.ts";

/**
 * Explicit bounds, enforced at every entry point before anything is written. All can be raised when opening a store.
 * None can be switched off, because unbounded input leads to an outage.
 */
export interface Limits {
  /** Bytes of one encoded record or value. 4 MiB: a model request with a long context fits, a video does not. */
  readonly payloadBytes: number;
  /** Characters of ids, names, keys and labels. 512 fits a URL; with longer ones index rows would not fit a page. */
  readonly nameLength: number;
  /** Characters of a queue's key. Shorter than a name: it is part of every index of a queue. */
  readonly keyLength: number;
  /** Labels of one run, and characters of a label's key or value. They are words to find runs by, not data. */
  readonly labels: number;
  /** Characters of a label's key or value. */
  readonly labelLength: number;
  /** Queues of one tenant. */
  readonly queues: number;
  /** Builds of one tenant with live runs or processes. */
  readonly builds: number;
  /** Starts that one debounced run takes; the last of them starts it at once. */
  readonly startMoves: number;
  /** Records of one generation of a journal. 100 000: replaying more takes seconds, so continue as new before that. */
  readonly journalRecords: number;
  /** Records in one append. */
  readonly appendRecords: number;
  /** Items in one batch call. */
  readonly batchItems: number;
  /**
   * Writes waiting for a commit in one process, and their bytes. Beyond that the store refuses writes, so that memory
   * stays bounded. The same number of statements may wait for a connection to PostgreSQL.
   */
  readonly pendingItems: number;
  /** Bytes of the writes that wait for a commit in one process. */
  readonly pendingBytes: number;
  /** Notes sent to one inbox from outside during one generation of its run. */
  readonly inboxNotes: number;
  /** Unused notes that a run takes into its next generation. */
  readonly carriedNotes: number;
  /** Signals that one start sends with its run. */
  readonly startSignals: number;
  /** Bytes of the checkpoint of a named lease. It is a position; what needs more is data for the values. */
  readonly checkpointBytes: number;
  /** Names that one run publishes. What needs more names is data for the values. */
  readonly publishedNames: number;
  /** Units that the runs of one tree spend, with and without a cap. */
  readonly budgetUnits: number;
  /** Streams of one run. */
  readonly streams: number;
  /** Bytes of one encoded chunk. 64 KiB: what is shown to a reader at once; larger data belongs into a value. */
  readonly chunkBytes: number;
  /** Bytes of one stream. */
  readonly streamBytes: number;
  /** Bytes of one blob: a large part of a recorded value, stored beside its record. 64 MiB: images and long audio. */
  readonly blobBytes: number;
  /** Bytes of all blobs of one generation of a journal. A replay reads them all. */
  readonly journalBlobBytes: number;
  /** Items of one `tape.map`, and how many of them are under way at once. */
  readonly mapItems: number;
  /** Items of one `tape.map` that are under way at once. */
  readonly mapConcurrency: number;
  /** Open scopes of one run. */
  readonly openScopes: number;
  /** Scopes inside each other. */
  readonly scopeDepth: number;
  /** Versions of one value kept for watchers. */
  readonly valueHistory: number;
  /** Rows in one page of a listing, a journal or the feed. */
  readonly pageRows: number;
  /** Bytes of payloads in one page, which ends with the row that fills it. Twice the largest payload. */
  readonly pageBytes: number;
  /** Records of all tenants that one query of a tenant's feed scans: a few milliseconds. */
  readonly feedScan: number;
  /** Minimum milliseconds between two firings of one schedule: the finest unit of cron is a second. */
  readonly scheduleIntervalMs: number;
  /** Missed firings that a schedule with `catchUp: "all"` catches up on. 10 000: one every ten seconds for a day. */
  readonly catchUpFirings: number;
}

/**
 * The limits of a store that is opened without its own.
 *
 * @example
 * const store = await openStore("sqlite:./tape.db", { limits: { payloadBytes: 2 * defaultLimits.payloadBytes } });
 */
export const defaultLimits: Limits = {
  payloadBytes: 4 * 1024 * 1024,
  nameLength: 512,
  keyLength: 256,
  labels: 16,
  labelLength: 128,
  queues: 1_000,
  builds: 200,
  startMoves: 1_000,
  journalRecords: 100_000,
  appendRecords: 1_000,
  batchItems: 10_000,
  pendingItems: 20_000,
  pendingBytes: 256 * 1024 * 1024,
  inboxNotes: 100_000,
  carriedNotes: 1_000,
  startSignals: 100,
  checkpointBytes: 4 * 1024,
  publishedNames: 32,
  budgetUnits: 64,
  streams: 8,
  chunkBytes: 64 * 1024,
  streamBytes: 64 * 1024 * 1024,
  blobBytes: 64 * 1024 * 1024,
  journalBlobBytes: 1024 * 1024 * 1024,
  mapItems: 100_000,
  mapConcurrency: 1_000,
  openScopes: 1_000,
  scopeDepth: 32,
  valueHistory: 1_000,
  pageRows: 1_000,
  pageBytes: 8 * 1024 * 1024,
  feedScan: 5_000,
  scheduleIntervalMs: 1_000,
  catchUpFirings: 10_000,
};

/** With less a store could not even record how a run failed. The minimum of every other limit is 1. */
const minimums: Partial<Limits> = { payloadBytes: 1_024, nameLength: 64, journalRecords: 32, appendRecords: 16 };

/** Merges the given limits into the defaults and rejects bad ones: a limit of 0 would silently stop everything. */
export function limitsOf(given: Partial<Limits> = {}): Limits {
  const known = Object.keys(defaultLimits);
  for (const [key, value] of Object.entries(given)) {
    if (!known.includes(key)) {
      const near = suggest(key, known);
      const hint = near === undefined ? `; the limits are ${known.join(", ")}` : `; did you mean ${near}?`;
      throw new TapeError("TAPE_BAD_INPUT", `unknown limit ${key}${hint}`, { field: `limits.${key}` });
    }
    const minimum = minimums[key as keyof Limits] ?? 1;
    if (value === undefined || (Number.isSafeInteger(value) && value >= minimum)) continue;
    const message = `limits.${key} must be an integer of at least ${minimum}, not ${String(value)}`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: `limits.${key}` });
  }
  const overrides = Object.entries(given).filter(([, value]) => value !== undefined);
  return { ...defaultLimits, ...Object.fromEntries(overrides) };
}
