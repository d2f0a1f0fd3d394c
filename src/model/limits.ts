import { suggest } from "../base/suggest.ts";
import { TapeError } from "./errors.ts";

/**
 * Explicit bounds, enforced at every entrance before anything is written. All can be raised when opening a store; none
 * can be switched off, because an unbounded input is somebody's outage.
 */
export interface Limits {
  /** Bytes of one encoded record or value. 4 MiB: a model request with a long context fits, a video does not. */
  readonly payloadBytes: number;
  /** Characters of ids, names, keys and labels. 512 fits a URL; longer ones make index rows that do not fit a page. */
  readonly nameLength: number;
  /** Records of one journal. 100 000: replay of more takes seconds; split the work into child runs instead. */
  readonly journalRecords: number;
  /** Records in one append. */
  readonly appendRecords: number;
  /** Items in one batch call. */
  readonly batchItems: number;
  /**
   * Writes waiting for a commit in one process, and their bytes: beyond it the store refuses instead of swelling. As many
   * statements may wait for a connection to PostgreSQL.
   */
  readonly pendingItems: number;
  readonly pendingBytes: number;
  /** Notes ever sent to one inbox from outside. A run that needs more signals than this is a queue, not a run. */
  readonly inboxNotes: number;
  /** Versions of one value that are kept for watchers. */
  readonly valueHistory: number;
  /** Rows in one page of a listing, a journal or the feed. */
  readonly pageRows: number;
  /** Bytes of payloads in one page: it ends with the row that fills it. Twice the largest payload. */
  readonly pageBytes: number;
  /** Records of all tenants that one look at one tenant's feed passes over at most: some milliseconds. */
  readonly feedScan: number;
  /** Milliseconds between two firings of one schedule, at least: cron knows nothing shorter than a second. */
  readonly scheduleIntervalMs: number;
  /** Missed firings that a schedule with `catchUp: "all"` makes up for. 10 000: every ten seconds of a day. */
  readonly catchUpFirings: number;
}

/** The limits of a store that is opened without others. */
export const defaultLimits: Limits = {
  payloadBytes: 4 * 1024 * 1024,
  nameLength: 512,
  journalRecords: 100_000,
  appendRecords: 1_000,
  batchItems: 10_000,
  pendingItems: 20_000,
  pendingBytes: 256 * 1024 * 1024,
  inboxNotes: 100_000,
  valueHistory: 1_000,
  pageRows: 1_000,
  pageBytes: 8 * 1024 * 1024,
  feedScan: 5_000,
  scheduleIntervalMs: 1_000,
  catchUpFirings: 10_000,
};

/** Below these a store could not even write down how a run failed. What is not named here is at least 1. */
const least: Partial<Limits> = { payloadBytes: 1_024, nameLength: 64, journalRecords: 32, appendRecords: 16 };

/** The defaults with what was given, or a refusal: a bound of nothing would stop everything without a word. */
export function limitsOf(given: Partial<Limits> = {}): Limits {
  const known = Object.keys(defaultLimits);
  for (const [key, value] of Object.entries(given)) {
    if (!known.includes(key)) {
      const near = suggest(key, known);
      const hint = near === undefined ? `; there are ${known.join(", ")}` : `; did you mean ${near}?`;
      throw new TapeError("TAPE_BAD_INPUT", `there is no limit ${key}${hint}`, { field: `limits.${key}` });
    }
    const bound = least[key as keyof Limits] ?? 1;
    if (value === undefined || (Number.isSafeInteger(value) && value >= bound)) continue;
    const message = `limits.${key} is a whole number of at least ${bound}, not ${String(value)}`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: `limits.${key}` });
  }
  const said = Object.entries(given).filter(([, value]) => value !== undefined);
  return { ...defaultLimits, ...Object.fromEntries(said) };
}
