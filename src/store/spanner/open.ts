import { type Clock, systemClock } from "../../base/clock.ts";
import { defined } from "../../base/defined.ts";
import { type Log, silentLog } from "../../base/log.ts";
import { type Random, systemRandom } from "../../base/random.ts";
import { errorFields } from "../../base/reason.ts";
import { type Limits, limitsOf } from "../../model/limits.ts";
import type { Store } from "../contract/store.ts";
import { assembleStore } from "../sql/assemble.ts";
import type { Migration } from "../sql/migrations.ts";
import type { QueryResult } from "../sql/plan.ts";
import { StampFeed } from "../sql/stamp-feed.ts";
import type { ParamsOf, RowOf } from "../sql/statements.gen.ts";
import { WakeHub } from "../wake-hub.ts";
import { SpannerBackend } from "./backend.ts";
import { ChangeWatch } from "./change-watch.ts";
import { openClient, type SpannerTransaction } from "./client.ts";
import { Connections } from "./connections.ts";
import { faultOf } from "./errors.ts";
import { migrate } from "./migrate.ts";
import { ReadRetry } from "./read-retry.ts";
import { PlanTransaction } from "./transaction.ts";
import { parseSpannerUrl } from "./url.ts";
import { Writer } from "./writer.ts";

export interface SpannerOptions {
  readonly url: string;
  readonly limits?: Partial<Limits>;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Log;
  /** A seam for tests: other migrations than those of this version. */
  readonly migrations?: readonly Migration[];
  /** A seam for tests: replaces the database's clock. */
  readonly time?: () => number;
  /** A seam for tests and benchmarks: gets the connections. */
  readonly onOpen?: (connections: Connections) => void;
}

type FeedName = "feed.page" | "feed.tenants";

export async function openSpanner(options: SpannerOptions): Promise<Store> {
  const { clock = systemClock, random = systemRandom, log = silentLog } = options;
  const limits = limitsOf(options.limits);
  const settings = parseSpannerUrl(options.url);
  const { sessions, waitMs } = settings;
  const client = await openClient(settings, sessions);
  const seams = defined({ time: options.time });
  const connections = new Connections({ client, clock, sessions, waiting: limits.pendingItems, waitMs, ...seams });
  options.onOpen?.(connections);
  try {
    const create = (transaction: SpannerTransaction) => createStore(connections, transaction, random);
    const schema = await migrate({ connections, clock, log, create, ...defined({ known: options.migrations }) });
    const wakes = new WakeHub((error) => log("error", "wake.listener_failed", { ...errorFields(error) }));
    const writer = new Writer({ connections, clock, random, limits, log, waitMs, wake: (hint) => wakes.emit(hint) });
    const reads = new ReadRetry(clock, random);
    const feed = new StampFeed(
      <N extends FeedName>(sql: N, params: ParamsOf<N>, tenant?: string) =>
        reads.run(() => connections.read({ sql, params }, tenant)) as Promise<QueryResult<RowOf<N>>>,
      limits,
      clock,
    );
    const watch = new ChangeWatch({
      ...{ clock, log, everyMs: settings.watchMs },
      version: async () => (await connections.read({ sql: "feed.frontier", params: {} })).rows[0]?.id,
      onCommit: () => wakes.emit({ of: "any" }),
    });
    const parts = { connections, writer, reads, watch, wakes, feed };
    return assembleStore(new SpannerBackend({ ...parts, limits, schema, settings }), random);
  } catch (error) {
    await connections.close().catch(() => {}); // the first error is the one to report
    throw faultOf(error);
  }
}

/** The identity of a new store, and its own journal. */
async function createStore(connections: Connections, transaction: SpannerTransaction, random: Random): Promise<void> {
  const hex = (bytes: number): string => Buffer.from(random.bytes(bytes)).toString("hex");
  const identity = { storeId: hex(16), cursorKey: hex(32), secret: hex(32) };
  const created = await connections.perform(transaction, { sql: "meta.create", params: identity });
  if (created.count === 0) return;
  const own = { journal: 1, run: 1, kind: "store", tenant: "", source: null, workflow: "", token: 0n };
  const performer = new PlanTransaction(connections, transaction);
  const lease = { ...own, maxStallMs: null, nextReactor: null, queue: null };
  await performer.perform({ sql: "lease.create", params: lease });
  const body = '{"v":1,"epoch":0,"reason":"created","ended":0}';
  await performer.perform({ sql: "record.create", params: { ...own, seq: 1, kind: "store.restored", body } });
}
