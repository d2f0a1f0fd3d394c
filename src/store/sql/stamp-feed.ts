import type { Clock } from "../../base/clock.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import type { FeedPage } from "../contract/store.ts";
import { feedRecordOf } from "../decode-rows.ts";
import { feedPageOf } from "../feed.ts";
import { FeedTail } from "../feed-tail.ts";
import { pageOf } from "../page.ts";
import type { QueryResult } from "./plan.ts";
import { spansOf } from "./plans/feed.ts";
import type { ParamsOf, RowOf } from "./statements.gen.ts";

type FeedName = "feed.page" | "feed.tenants";
type FeedQuery = <N extends FeedName>(sql: N, params: ParamsOf<N>, tenant?: string) => Promise<QueryResult<RowOf<N>>>;

type FeedPosition = Readonly<Record<"stamp" | "journal" | "seq", bigint>>;

/** Followers poll every second: this long after the last scan there are none, and the gap is not read. */
const forgottenMs = 10_000;
/** Greater than any number of a column: after everything with its stamp. */
const last = 2n ** 63n - 1n;
/** The feed waits for overlapping writes all the time; only a wait as long as this is worth another query. */
const heldBackMs = 1_000;
const behind = (stamp: number): FeedPosition => ({ stamp: BigInt(stamp), journal: last, seq: last });

/**
 * The feed of a store whose commits have stamps: in their order, as far as no open transaction can add to it. Within the tail's reach, only the
 * spans of the tenant are read; before it, a bounded part is scanned.
 */
export class StampFeed {
  readonly #query: FeedQuery;
  readonly #limits: Limits;
  readonly #tail = new FeedTail();
  readonly #clock: Clock;
  #scanning: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #scannedAt = 0;
  /** Of the last scan. It is raised when a tenant arrives, with records that the scan has passed. */
  #offset: number | undefined;
  /** The last scan ended before the end of the feed. */
  #more = false;
  /** The transaction for which the feed waits, and since when. */
  #holder: string | undefined;
  #heldSince = 0;

  constructor(ask: FeedQuery, limits: Limits, clock: Clock) {
    this.#query = ask;
    this.#limits = limits;
    this.#clock = clock;
  }

  /** One transaction has held the feed back for a second, as far as pages have shown. */
  get isHeldBack(): boolean {
    return this.#holder !== undefined && this.#clock.mono() - this.#heldSince >= heldBackMs;
  }

  async page(cursor: string | undefined, limit: number, tenant: string | undefined): Promise<FeedPage> {
    const position = positionOf(cursor ?? "0.0.0");
    if (tenant === undefined) return this.#read(position, { limit, scan: limit });
    const { feedScan: scan } = this.#limits;
    const tail = this.#tail;
    /** Everything with this stamp or an earlier one is before the cursor. */
    const after = Number(position.stamp) - (position.journal === last ? 0 : 1);
    if (tail.edge === undefined || tail.reaches(after)) await this.#scan();
    if (!tail.reaches(after)) return this.#read(position, { limit, scan, tenant });
    const next = tail.next(tenant, after);
    if (next === undefined) return feedPageOf([], this.#edge(after));
    const from = next.first > Number(position.stamp) ? behind(next.first - 1) : position;
    return this.#read(from, { limit, scan, tenant, edge: next.last });
  }

  /** The tenant has no records between this stamp and the tail's edge. */
  #edge(stamp: number): { readonly cursor: string; readonly more: boolean } {
    return { cursor: cursorOf(behind(Math.max(stamp, this.#tail.edge ?? 0))), more: this.#more };
  }

  async #read(
    from: FeedPosition,
    { limit, scan, tenant, edge }: { limit: number; scan: number; tenant?: string; edge?: number },
  ): Promise<FeedPage> {
    const { pageBytes } = this.#limits;
    const known = this.#tail.edge;
    const bounds = { edge: edge ?? last, tenant: tenant ?? null, pageBytes };
    const { rows, more } = await this.#query("feed.page", { ...from, limit, scan, ...bounds }, tenant);
    const [scanned, ...found] = rows;
    this.#noteHolder(scanned?.token);
    const records = found.map((row) => feedRecordOf(row, cursorOf(row)));
    const page = pageOf(records, more === true || records.length >= limit);
    const full = scanned !== undefined && Number(scanned.at) >= scan && tenant !== undefined;
    if (edge !== undefined && tenant !== undefined && !full) {
      const over = this.#tail.reaches(edge) && this.#tail.next(tenant, edge) === undefined;
      return feedPageOf(page, over ? this.#edge(edge) : { cursor: cursorOf(behind(edge)), more: true });
    }
    if (full) return feedPageOf(page, { cursor: cursorOf(scanned), more: true });
    // At the end of the feed: everything that the tail knew before is behind the cursor, too.
    const end = scanned === undefined || Number(scanned.at) === 0 ? from : scanned;
    const further = tenant !== undefined && known !== undefined && known >= Number(end.stamp);
    return feedPageOf(page, { cursor: cursorOf(further ? behind(known) : end), more: false });
  }

  /**
   * Scans on from the tail's edge. Calls during a scan share the next one, which starts after anything that they may
   * have written themselves.
   */
  #scan(): Promise<void> {
    this.#next ??= this.#scanning
      .catch(() => {}) // the caller of that scan gets the error
      .then(() => {
        this.#next = undefined;
        this.#scanning = this.#scanNow();
        return this.#scanning;
      });
    return this.#next;
  }

  async #scanNow(): Promise<void> {
    const tail = this.#tail;
    const now = this.#clock.mono();
    const { edge } = tail;
    const stale = edge === undefined || now - this.#scannedAt > forgottenMs;
    this.#scannedAt = now;
    const { rows } = await this.#query("feed.tenants", {
      after: stale ? last : edge,
      scan: this.#limits.feedScan,
    });
    const [known, ...spans] = rows;
    this.#noteHolder(known?.holder);
    const [to, newest] = [Number(known?.last), Number(known?.first)];
    const offset = Number(known?.feed_offset ?? 0);
    const raised = this.#offset !== offset;
    this.#offset = offset;
    // No progress: the store was restored, or one transaction is longer than a scan.
    const restart = stale || raised || to < edge || (to === edge && newest > edge);
    if (restart) tail.begin(newest);
    else tail.add(to, spansOf(spans));
    this.#more = !restart && to < newest;
  }

  #noteHolder(transaction: string | number | null | undefined): void {
    const holder = transaction == null ? undefined : String(transaction);
    if (holder !== this.#holder) this.#heldSince = this.#clock.mono();
    this.#holder = holder;
  }
}

/** The cursor behind every record with this stamp or an earlier one. */
export const positionBehind = (stamp: number): string => cursorOf(behind(stamp));

const cursorOf = ({ stamp, journal, seq }: FeedPosition | RowOf<"feed.page">): string => `${stamp}.${journal}.${seq}`;

/** The position in the feed that a cursor of this store names. */
function positionOf(cursor: string): FeedPosition {
  const read = /^(\d{1,19})\.(-?\d{1,19})\.(\d{1,19})$/.exec(cursor);
  // The database would reject numbers that no column can hold, with a message that is not meant for callers.
  const found = read?.slice(1).every((digits) => BigInt.asIntN(64, BigInt(digits)) === BigInt(digits)) ? read : null;
  if (found === null)
    throw new TapeError("TAPE_BAD_INPUT", "the cursor does not belong to this store", { field: "cursor" });
  return { stamp: BigInt(found[1]!), journal: BigInt(found[2]!), seq: BigInt(found[3]!) };
}

/** The transaction that holds the feed back, for an operator. */
export function describeBlocker(row: RowOf<"feed.blocker">): string {
  return `transaction of process ${row.pid} (${row.application_name || row.usename}), ${row.state} for ${row.seconds} s`;
}
