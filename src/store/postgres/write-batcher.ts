import { Batcher, type Channels } from "../../base/batcher.ts";
import type { Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import type { ParamsOf, RowOf } from "../sql/statements.gen.ts";
import type { Connections } from "./connections.ts";
import { classifyError, outcomeUnknown } from "./errors.ts";
import type { OutageRetry } from "./outage-retry.ts";
import type { Writer } from "./writer.ts";

/** Multi-row statements, and for each the query that shows after a lost response which items are in the store. */
interface Checks {
  append_many: "append_many.check";
  end_sleep_many: "append_many.check";
  park_many: "append_many.check";
  end_many: "append_many.check";
  "end_many.children": "append_many.check";
  spawn_many: "append_many.check";
  "park_many.queued": "append_many.check";
  "end_many.queued": "append_many.check";
  create_many: "create_many.check";
  "create_many.counted": "create_many.check";
  "create_many.labelled": "create_many.check";
  "create_many.queued": "create_many.check";
  fire_many: "fire_many.check";
  stream_many: "stream_many.check";
}

type BatchName = keyof Checks;
type Alone = { readonly sql: "append_one"; readonly params: ParamsOf<"append_one"> };
type BatchRow<N extends BatchName> = RowOf<N> | RowOf<Checks[N]>;

/** One kind of batched write: a multi-row statement, and how to write an item that has no row in its result. */
export interface BatchedWrite<Item, Result, N extends BatchName> {
  readonly sql: N;
  readonly checkSql: Checks[N];
  /** Only one item of a journal is in flight at a time, and a batch is sorted by journal. */
  readonly journal: (item: Item) => number;
  /** An item that names another tenant's journal neither waits for an item there nor delays one. */
  readonly tenant: (item: Item) => string;
  readonly bytes: (item: Item) => number;
  readonly params: (batch: readonly Item[]) => Omit<ParamsOf<N>, "id">;
  /** A cheaper statement with the same result for an item that is alone in its batch; undefined: it does not fit. */
  readonly alone?: (item: Item, id: bigint) => Alone | undefined;
  readonly result: (item: Item, row: BatchRow<N>) => Result;
  /** Writes one item in its own transaction, waiting for locks; if it is rejected, with the reason. */
  readonly single: (item: Item) => Promise<Result>;
}

export interface WriteBatcherOptions {
  readonly connections: Connections;
  readonly writer: Writer;
  readonly outageRetry: OutageRetry;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: Limits;
  readonly channels: Channels;
}

/** Two cores handle four batches at once best; more only compete. All kinds of batched writes share the channels. */
export const maxChannels = 4;

/** 1 MiB is some ten milliseconds of work, here and on the server. */
const batch = { maxItems: 256, maxBytes: 1024 * 1024, minShare: 64 };

/** Writes of one kind, of many journals in one statement. */
export function writeBatcher<Item, Result, N extends BatchName>(
  write: BatchedWrite<Item, Result, N>,
  options: WriteBatcherOptions,
): Batcher<Item, Result> {
  const { journal, tenant, bytes, single, result } = write;
  const { clock, limits, channels } = options;
  return new Batcher({
    clock,
    pending: limits,
    batch,
    channels,
    tenant,
    key: journal,
    bytes,
    single,
    refusal: (reason, waiting) =>
      reason === "closed"
        ? new TapeError("TAPE_STORE_CLOSED", "this store handle is closed")
        : new TapeError("TAPE_OVERLOADED", `${waiting} writes are waiting for their commit`),
    together: async (items) => {
      const sorted = items.toSorted((a, b) => journal(a) - journal(b));
      const rows = await writeTogether(write, options, sorted);
      return items.map((item) => {
        const row = rows.get(journal(item));
        return row === undefined ? undefined : result(item, row);
      });
    },
  });
}

/**
 * Returns a row for each written item. A missing item was rejected or locked, and is retried alone. A lost response is
 * resolved for the whole batch by its witness; throws only if the outcome cannot be determined.
 */
async function writeTogether<Item, Result, N extends BatchName>(
  write: BatchedWrite<Item, Result, N>,
  options: WriteBatcherOptions,
  items: readonly Item[],
): Promise<Map<number, BatchRow<N>>> {
  const { connections, random, writer, outageRetry } = options;
  const id = random.bits63();
  const params = () => ({ ...write.params(items), id }) as ParamsOf<N> & ParamsOf<Checks[N]>;
  const client = await writer.connect();
  try {
    const alone = items.length === 1 ? write.alone?.(items[0]!, id) : undefined;
    const { rows } = await connections.perform(client, alone ?? { sql: write.sql, params: params() });
    client.release();
    return byJournal(rows as BatchRow<N>[]);
  } catch (error) {
    const lost = classifyError(error).kind === "connection";
    client.release(lost);
    if (!lost) return new Map(); // one bad item fails the statement
    if (!(await writer.landed(id, error))) return new Map();
    // The batch was carried out; which of its items were written?
    try {
      return byJournal((await outageRetry.run(() => connections.ask(write.checkSql, params(), undefined, true))).rows);
    } catch {
      throw outcomeUnknown(error);
    }
  }
}

const byJournal = <R extends { readonly journal: number | null }>(rows: readonly R[]): Map<number, R> =>
  new Map(rows.map((row) => [Number(row.journal), row]));
