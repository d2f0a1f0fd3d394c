import { Channels } from "../../base/batcher.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import { defined } from "../../base/defined.ts";
import { type Log, silentLog } from "../../base/log.ts";
import { type Random, systemRandom } from "../../base/random.ts";
import { errorFields } from "../../base/reason.ts";
import { TapeError } from "../../model/errors.ts";
import { type Limits, limitsOf } from "../../model/limits.ts";
import type { CreateResult, Store, WakeHint } from "../contract/store.ts";
import { assembleStore } from "../sql/assemble.ts";
import type { Migration } from "../sql/migrations.ts";
import { createPlan } from "../sql/plans/create.ts";
import { fireTimerPlan } from "../sql/plans/intake.ts";
import { appendChunksPlan } from "../sql/plans/streams.ts";
import type { RowOf } from "../sql/statements.gen.ts";
import { WakeHub } from "../wake-hub.ts";
import { PostgresBackend } from "./backend.ts";
import {
  type AppendItem,
  appendSingle,
  appendWrite,
  type CreateItem,
  countedWrite,
  createQueuedWrite,
  createWrite,
  endQueuedWrite,
  endSleepWrite,
  endWrite,
  fireWrite,
  labelledWrite,
  parkQueuedWrite,
  parkWrite,
} from "./batched-writes.ts";
import type { BatchedWrites } from "./batchers.ts";
import { PostgresCallers } from "./callers.ts";
import { endChildWrite, spawnWrite } from "./child-writes.ts";
import { Connections } from "./connections.ts";
import { classifyError, forbidden, isForbidden, unreachable } from "./errors.ts";
import { JournalAllocator } from "./journal-numbers.ts";
import { migrate } from "./migrate.ts";
import { Notifier } from "./notifier.ts";
import { OutageRetry } from "./outage-retry.ts";
import { assertProduct, foreignProduct } from "./products.ts";
import { ShardAccess } from "./shards/access.ts";
import { aloneRefused, identityOf, type ShardIdentity } from "./shards/identity.ts";
import { streamWrite } from "./stream-writes.ts";
import { metaOf, Timeline } from "./timeline.ts";
import { warnOfTransport } from "./transport.ts";
import { parsePostgresUrl } from "./url.ts";
import { WitnessPurge } from "./witness-purge.ts";
import { maxChannels, type WriteBatcherOptions, writeBatcher } from "./write-batcher.ts";
import { Writer } from "./writer.ts";

export interface PostgresOptions {
  readonly url: string;
  readonly limits?: Partial<Limits>;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Log;
  /** A seam for tests: other migrations than those of this version. */
  readonly migrations?: readonly Migration[];
  /** Given by the set that opens this database as one of its shards. */
  readonly shard?: ShardOpening;
}

export interface ShardOpening {
  /** Called before anything is written, with the shard that the database is. Throws if it is not the expected one. */
  admit(found: ShardIdentity | undefined): void;
  opened(access: ShardAccess): Promise<void>;
}

const oldestServer = 140_000;

export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const { clock = systemClock, random = systemRandom, log = silentLog } = options;
  const limits = limitsOf(options.limits);
  const connections = new Connections(parsePostgresUrl(options.url), { clock, log, waiting: limits.pendingItems });
  try {
    await assertServes(connections);
    const found = await identityOf(connections);
    if (options.shard === undefined && found !== undefined) throw aloneRefused(found);
    options.shard?.admit(found);
    warnOfTransport(connections.transport, connections.settings.connectionString, log);
    const schema = await migrate({
      connections,
      clock,
      random,
      log,
      ...defined({ migrations: options.migrations }),
    });
    await assertProtected(connections);
    const meta = await metaOf(connections);
    const durable = checkServer(meta, connections, log);
    const channel = String(meta.channel);
    const wakes = new WakeHub((error) => log("error", "wake.listener_failed", { ...errorFields(error) }));
    const notifier = new Notifier({ connections, wakes, clock, random, log, channel });
    const outageRetry = new OutageRetry({ clock, random, boundMs: connections.settings.transactionBoundMs });
    const timeline: Timeline = new Timeline({ connections, outageRetry, writer: () => writer, log });
    const journals = new JournalAllocator(connections, outageRetry, () => timeline.check(true));
    const wake = (hint: WakeHint): void => notifier.send(hint);
    const purge = new WitnessPurge(connections, clock, log);
    const writer = new Writer({ connections, journals, outageRetry, random, limits, wake, purge });
    await timeline.check();
    const batched = batchedWrites({
      connections,
      writer,
      outageRetry,
      clock,
      random,
      limits,
      channels: new Channels(maxChannels),
    });
    await options.shard?.opened(new ShardAccess(connections, outageRetry));
    const callers = new PostgresCallers({ connections, writer, journals, notifier, timeline, random, limits });
    const parts = { connections, writer, journals, batched, notifier, wakes, outageRetry, timeline, callers };
    const driver = new PostgresBackend({ ...parts, limits, clock, schema, durable });
    return assembleStore(driver, random);
  } catch (error) {
    await connections.close();
    throw (await foreignProduct(error, connections.settings)) ?? notOpened(error, connections);
  }
}

function notOpened(error: unknown, connections: Connections): unknown {
  const cause = error instanceof TapeError ? error.cause : error;
  const {
    code,
    message: text = "",
    severity,
  } = (cause ?? {}) as { code?: string; message?: string; severity?: string };
  // A pooler rejects our startup parameters, or our named statements are missing on the next query.
  const pooler = code === "26000" || (code === "08P01" && text.includes("startup parameter"));
  if (pooler && connections.settings.pooler === "none") {
    const message =
      "the connection goes through a transaction pooler: add pooler=transaction, and listen_url for wake hints";
    return new TapeError("TAPE_BAD_STORE_URL", message, { key: "pooler" }, cause);
  }
  if (error instanceof TapeError) return error;
  if (isForbidden(error)) return forbidden(error);
  // FATAL: no such database, wrong password. The server did not accept us.
  return classifyError(error).kind === "connection" || severity === "FATAL" ? unreachable(error) : error;
}

/** Maximum number of tenants whose starts go directly to the counting batch; the others try the plain one first. */
const maxCounted = 10_000;

function batchedWrites(options: WriteBatcherOptions): BatchedWrites {
  const { writer } = options;
  const single = (item: AppendItem) => appendSingle(writer, item);
  const create = ({ tenant, data, first }: CreateItem) =>
    writer.run((context) => createPlan(context, tenant, data, first), { tenant });
  const counted = new Set<string>();
  const createLeftOut = async (item: CreateItem): Promise<CreateResult> => {
    const created = await create(item);
    // The batch left it out, and yet it is new: its tenant has a quota.
    if (created.fresh && counted.size < maxCounted) counted.add(item.tenant);
    return created;
  };
  // Batches of one queue lock its keys until their commit: a second one at the same time would only wait for the first.
  // Chunks have one connection of their own: however many there are, records do not wait for a channel behind them.
  // Ends of children lock the inboxes of their parents in the same way.
  const [leaving, joining, streaming, settling] = [1, 1, 1, 1].map((max) => ({
    ...options,
    channels: new Channels(max),
  }));
  return {
    append: writeBatcher(appendWrite(single), options),
    park: writeBatcher(parkWrite(single), options),
    endSleep: writeBatcher(endSleepWrite(single), options),
    end: writeBatcher(endWrite(single), options),
    endChild: writeBatcher(endChildWrite(single), settling!),
    spawn: writeBatcher(spawnWrite(single), options),
    counted,
    create: writeBatcher(createWrite(createLeftOut), options),
    createLabelled: writeBatcher(labelledWrite(createLeftOut), options),
    createCounted: writeBatcher(
      countedWrite((item) => {
        counted.delete(item.tenant); // no room, or no quota any more: the next start decides
        return create(item);
      }),
      options,
    ),
    parkQueued: writeBatcher(parkQueuedWrite(single), leaving!),
    endQueued: writeBatcher(endQueuedWrite(single), leaving!),
    createQueued: writeBatcher(createQueuedWrite(create), joining!),
    stream: writeBatcher(
      streamWrite(options.limits, ({ fence, chunks }) =>
        writer.run((context) => appendChunksPlan(context, fence, chunks), { tenant: fence.tenant, allocates: false }),
      ),
      streaming!,
    ),
    fire: writeBatcher(
      fireWrite(async (timer) => {
        const { tenant } = timer;
        return { fired: await writer.run((context) => fireTimerPlan(context, timer), { tenant }) };
      }),
      options,
    ),
  };
}

async function assertServes(connections: Connections): Promise<void> {
  assertProduct(String((await connections.askText("select version() as version")).rows[0]?.version));
  const { rows } = await connections.askText(
    "select current_setting('server_version_num')::int as version, pg_is_in_recovery() as standby",
  );
  const { version, standby } = rows[0] as { version: number; standby: boolean };
  if (version < oldestServer) {
    throw new TapeError("TAPE_STORE_NOT_DURABLE", `PostgreSQL 14 or newer is required, this is ${version}`, {
      version,
    });
  }
  if (standby) throw new TapeError("TAPE_STORE_UNREACHABLE", "this server is a standby: connect to the primary");
}

/** Manual changes of the tables may silently open the fence: then the store must not be opened. */
async function assertProtected(connections: Connections): Promise<void> {
  const { schema } = connections.settings;
  const { rows } = await connections.ask("store.protection", { schema });
  const { unprotected, volatile, forbidden: tables, uncallable, role } = rows[0] as Record<string, string>;
  if (unprotected !== "" || volatile !== "") {
    const lacks = unprotected === "" ? [] : [`the index ${unprotected} is missing or was changed`];
    const loses = volatile === "" ? [] : [`a crash would empty ${volatile}`];
    const message = `schema ${schema}: ${[...lacks, ...loses].join("; ")}`;
    throw new TapeError("TAPE_STORE_UNPROTECTED", message, { schema, indexes: unprotected, tables: volatile });
  }
  if (tables === "" && uncallable === "") return;
  const grants = [
    ...(tables === "" ? [] : [`select, insert, update, delete on all tables in schema ${schema}`]),
    ...(uncallable === "" ? [] : [`execute on all functions in schema ${schema}`]),
  ];
  const message = `the role ${role} lacks privileges (${[tables, uncallable].filter(Boolean).join(", ")}): ${grants.map((grant) => `grant ${grant} to ${role}`).join("; ")}`;
  throw new TapeError("TAPE_STORE_FORBIDDEN", message, { role, tables, functions: uncallable });
}

/**
 * A server that loses acknowledged commits in a crash breaks every guarantee; the operator must accept that explicitly.
 */
function checkServer(row: RowOf<"meta.get">, connections: Connections, log: Log): boolean {
  const unsafe = (["fsync", "full_page_writes", "synchronous_commit"] as const).filter((setting) =>
    // Ours is on, unless a component in between drops our startup parameters.
    setting === "synchronous_commit" ? row[setting] === "off" : row[setting] !== "on",
  );
  if (unsafe.length === 0) return true;
  const message = `the server runs with ${unsafe.map((setting) => `${setting}=${row[setting]}`).join(", ")}`;
  if (!connections.settings.acceptLoss) {
    throw new TapeError(
      "TAPE_STORE_NOT_DURABLE",
      `${message}: a crash loses acknowledged writes (accept_loss=true accepts it)`,
      {
        settings: unsafe,
      },
    );
  }
  log("warn", "store.not_durable", { settings: unsafe });
  return false;
}
