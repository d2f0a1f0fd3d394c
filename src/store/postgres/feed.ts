import type { Clock } from "../../base/clock.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import type { FeedPage } from "../contract/store.ts";
import { feedRecordOf } from "../decode-rows.ts";
import { feedPageOf } from "../feed.ts";
import { FeedTail } from "../feed-tail.ts";
import { pageOf } from "../page.ts";
import type { QueryResult } from "../sql/plan.ts";
import { spansOf } from "../sql/plans/feed.ts";
import type { ParamsOf, RowOf } from "../sql/statements.gen.ts";

type FeedName = "feed.page" | "feed.tenants";
type Ask = <N extends FeedName>(sql: N, params: ParamsOf<N>, tenant?: string) => Promise<QueryResult<RowOf<N>>>;

type Place = Readonly<Record<"stamp" | "journal" | "seq", bigint>>;

/** Whoever follows the feed looks every second: so long after the last look nobody does, and what lies between is not read. */
const forgottenMs = 10_000;
/** Greater than any number of a column: behind everything of its stamp. */
const last = 2n ** 63n - 1n;
const behind = (stamp: number): Place => ({ stamp: BigInt(stamp), journal: last, seq: last });

/**
 * The feed in the order of the stamps, as far as no open transaction can add to it. What is behind the tail's beginning is
 * read by where the tail says that the tenant's records are; what is before it, by looking through a bounded part.
 */
export class PostgresFeed {
  readonly #ask: Ask;
  readonly #limits: Limits;
  readonly #tail = new FeedTail();
  readonly #clock: Clock;
  #look: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #lookedAt = 0;
  /** The last look ended before the end of the feed. */
  #more = false;

  constructor(ask: Ask, limits: Limits, clock: Clock) {
    this.#ask = ask;
    this.#limits = limits;
    this.#clock = clock;
  }

  async page(cursor: string | undefined, limit: number, tenant: string | undefined): Promise<FeedPage> {
    const place = placeOf(cursor ?? "0.0.0");
    if (tenant === undefined) return this.#read(place, { limit, scan: limit });
    const { feedScan: scan } = this.#limits;
    const tail = this.#tail;
    /** Everything of this stamp and of those before it is behind the cursor. */
    const after = Number(place.stamp) - (place.journal === last ? 0 : 1);
    if (tail.edge === undefined || tail.reaches(after)) await this.#lookOn();
    if (!tail.reaches(after)) return this.#read(place, { limit, scan, tenant });
    const next = tail.next(tenant, after);
    if (next === undefined) return feedPageOf([], this.#edge(after));
    const from = next.first > Number(place.stamp) ? behind(next.first - 1) : place;
    return this.#read(from, { limit, scan, tenant, edge: next.last });
  }

  /** Nothing of the tenant's lies between this stamp and what the tail knows. */
  #edge(stamp: number): { readonly cursor: string; readonly more: boolean } {
    return { cursor: cursorOf(behind(Math.max(stamp, this.#tail.edge ?? 0))), more: this.#more };
  }

  async #read(
    from: Place,
    { limit, scan, tenant, edge }: { limit: number; scan: number; tenant?: string; edge?: number },
  ): Promise<FeedPage> {
    const { pageBytes } = this.#limits;
    const known = this.#tail.edge;
    const bounds = { edge: edge ?? last, tenant: tenant ?? null, pageBytes };
    const { rows, more } = await this.#ask("feed.page", { ...from, limit, scan, ...bounds }, tenant);
    const [passed, ...found] = rows;
    const records = found.map((row) => feedRecordOf(row, cursorOf(row)));
    const page = pageOf(records, more === true || records.length >= limit);
    const full = passed !== undefined && Number(passed.at) >= scan && tenant !== undefined;
    if (edge !== undefined && tenant !== undefined && !full) {
      const over = this.#tail.reaches(edge) && this.#tail.next(tenant, edge) === undefined;
      return feedPageOf(page, over ? this.#edge(edge) : { cursor: cursorOf(behind(edge)), more: true });
    }
    if (full) return feedPageOf(page, { cursor: cursorOf(passed), more: true });
    // To the end of the feed: what the tail knew before is behind it too.
    const end = passed ?? from;
    const further = tenant !== undefined && known !== undefined && known >= Number(end.stamp);
    return feedPageOf(page, { cursor: cursorOf(further ? behind(known) : end), more: false });
  }

  /**
   * Looks on from the tail's edge. Those who ask while a look is under way share the next one: it begins after what they
   * may have written themselves.
   */
  #lookOn(): Promise<void> {
    this.#next ??= this.#look
      .catch(() => {}) // whoever asked for that one is told
      .then(() => {
        this.#next = undefined;
        this.#look = this.#lookNow();
        return this.#look;
      });
    return this.#next;
  }

  async #lookNow(): Promise<void> {
    const tail = this.#tail;
    const now = this.#clock.mono();
    const { edge } = tail;
    const stale = edge === undefined || now - this.#lookedAt > forgottenMs;
    this.#lookedAt = now;
    const { rows } = await this.#ask("feed.tenants", {
      after: stale ? last : edge,
      scan: this.#limits.feedScan,
    });
    const [known, ...spans] = rows;
    const [to, newest] = [Number(known?.last), Number(known?.first)];
    // Not further than before: the store was put back, or one transaction is longer than a look.
    const again = stale || to < edge || (to === edge && newest > edge);
    if (again) tail.begin(newest);
    else tail.add(to, spansOf(spans));
    this.#more = !again && to < newest;
  }
}

const cursorOf = ({ stamp, journal, seq }: Place | RowOf<"feed.page">): string => `${stamp}.${journal}.${seq}`;

/** Where in the feed a cursor of this store's points. */
function placeOf(cursor: string): Place {
  const read = /^(\d{1,19})\.(-?\d{1,19})\.(\d{1,19})$/.exec(cursor);
  // What no column can hold the database would refuse, in words that are not for callers.
  const found = read?.slice(1).every((digits) => BigInt.asIntN(64, BigInt(digits)) === BigInt(digits)) ? read : null;
  if (found === null)
    throw new TapeError("TAPE_BAD_INPUT", "this cursor is not one of this store's", { field: "cursor" });
  return { stamp: BigInt(found[1]!), journal: BigInt(found[2]!), seq: BigInt(found[3]!) };
}
