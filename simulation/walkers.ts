import type { FeedRecord, ReadOps } from "../src/store/contract/store.ts";
import { followFeed } from "../src/store/follow-feed.ts";
import { neighbourPrefix } from "./neighbours.ts";
import type { PlannedWalk } from "./plan-neighbours.ts";
import { wholeFeed } from "./shared-store.ts";
import { tenant as ours, type Stage } from "./stage.ts";
import { neighbourTenant } from "./tenants.ts";

/** The result of reading a list page by page. */
export interface WalkResult extends PlannedWalk {
  readonly seen: readonly string[];
  /** The whole list just before the first page and just after the last. */
  readonly before: readonly string[];
  readonly after: readonly string[];
  /** Items that belong to another tenant. */
  readonly foreign: readonly string[];
}

interface Page<Cursor> {
  readonly items: readonly { readonly id: string; readonly foreign: boolean }[];
  /** Absent on the last page. */
  readonly next?: Cursor;
}

type Cursor = string | number;
type Reader = (
  read: ReadOps,
  tenant: string,
  rows: number | undefined,
  at: Cursor | undefined,
) => Promise<Page<Cursor>>;

const runPage =
  (named: boolean): Reader =>
  async (read, tenant, limit, at) => {
    const filter = {
      ...(limit !== undefined && { limit }),
      ...(named && { prefix: tenant === ours ? "run" : "n-" }),
      ...(at !== undefined && { before: Number(at) }),
    };
    const page = await read.runs(tenant, filter);
    const items = page.map((run) => ({ id: run.id, foreign: run.tenant !== tenant }));
    return { items, ...(page.more === true && { next: page.at(-1)!.journal }) };
  };

const idOf = (record: FeedRecord): string => `${record.in} ${record.journal}.${record.seq}`;

const readers: Readonly<Record<Exclude<PlannedWalk["list"], "followed feed">, Reader>> = {
  runs: runPage(false),
  "runs by name": runPage(true),
  async values(read, tenant, limit, above) {
    const page = await read.values(tenant, "", limit, above === undefined ? undefined : String(above));
    const isTheirs = (value: unknown): boolean => String(value).startsWith(neighbourPrefix);
    const items = page.map(({ key, value }) => ({
      id: key,
      foreign: isTheirs(value) !== (tenant === neighbourTenant),
    }));
    return { items, ...(page.more === true && { next: page.at(-1)!.key }) };
  },
  async feed(read, tenant, limit, at) {
    const [page, leases] = await Promise.all([
      read.feed(at === undefined ? undefined : String(at), limit, tenant),
      read.leases(tenant),
    ]);
    const own = new Set(leases.map(({ journal }) => journal));
    const items = page.records.map((record) => ({
      id: idOf(record),
      foreign: !own.has(record.journal),
    }));
    const more = page.more === true || (limit !== undefined && items.length === limit);
    return { items, ...(more && { next: page.cursor }) };
  },
  async audit(read, tenant, limit, before) {
    const entries = await read.audit(tenant, {
      ...(limit !== undefined && { limit }),
      ...(before !== undefined && { before: String(before) }),
    });
    const items = entries.map((entry) => ({ id: String(entry.n), foreign: entry.tenant !== tenant }));
    return { items, ...(items.length === limit && { next: entries.at(-1)!.cursor }) };
  },
};

const followedMs = 8_000;
/**
 * How often it is checked whether a follower has caught up, and how often in all. Pages are short here and each takes up
 * to a third of a second, so a follower may be well behind.
 */
const catchUpMs = 3_000;
const maxCatchUps = 20;

/** Reads lists page by page while other clients write. */
export class Walkers {
  readonly walks: WalkResult[] = [];
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  run(): Promise<unknown> {
    return Promise.all(
      this.#stage.plan.neighbours.walks.map(({ list, ...walk }) =>
        list === "followed feed" ? this.#follow({ ...walk, list }) : this.#walk({ ...walk, list }),
      ),
    );
  }

  /** Follows the feed for a while. What was there in good time before the end must have been delivered. */
  async #follow(walk: PlannedWalk): Promise<void> {
    const { time, shared } = this.#stage;
    const tenant = walk.of === "us" ? ours : neighbourTenant;
    const { read } = shared.store;
    const slow =
      <A extends readonly unknown[], T>(call: (...args: A) => Promise<T>) =>
      async (...args: A): Promise<T> => {
        const result = await call(...args);
        await time.sleep(walk.pauseMs);
        return result;
      };
    const store = { ...shared.store, read: { ...read, feed: slow(read.feed), frontier: slow(read.frontier) } };
    const whole = async () => (await wholeFeed(shared.store, tenant)).map(idOf);
    const stopped = new AbortController();
    const seen: string[] = [];
    await time.sleep(walk.atMs);
    const following = (async () => {
      for await (const record of followFeed(store, time, { tenant, signal: stopped.signal })) seen.push(idOf(record));
    })();
    await time.sleep(followedMs);
    const before = await whole();
    const isBehind = (): boolean => !before.every((id) => seen.includes(id));
    for (let k = 0; k < maxCatchUps && (k === 0 || isBehind()); k++) await time.sleep(catchUpMs);
    stopped.abort();
    await following;
    this.walks.push({ ...walk, seen, before, after: await whole(), foreign: [] });
  }

  async #walk(walk: PlannedWalk & { readonly list: keyof typeof readers }): Promise<void> {
    const { time, shared } = this.#stage;
    const tenant = walk.of === "us" ? ours : neighbourTenant;
    const page = (rows: number | undefined, at: Cursor | undefined) =>
      readers[walk.list](shared.store.read, tenant, rows, at);
    const whole = async () => (await page(undefined, undefined)).items.map(({ id }) => id);
    await time.sleep(walk.atMs);
    const before = await whole();
    const seen: Page<Cursor>["items"][number][] = [];
    for (let at: Cursor | undefined; ; await time.sleep(walk.pauseMs)) {
      const { items, next } = await page(walk.rows, at);
      const repeated = items.some(({ id }) => seen.some((one) => one.id === id));
      seen.push(...items);
      if (next === undefined || next === at || repeated) break; // a cursor that does not advance would never end
      at = next;
    }
    const foreign = seen.filter((one) => one.foreign).map(({ id }) => id);
    this.walks.push({ ...walk, seen: seen.map(({ id }) => id), before, after: await whole(), foreign });
  }
}
