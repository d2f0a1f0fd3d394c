import type { Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import type { Row } from "../sql/plan.ts";
import { type Queued, TurnQueue } from "../turn-queue.ts";
import type { Connections } from "./connections.ts";
import { classifyError, outcomeUnknown } from "./errors.ts";
import type { OutageRetry } from "./outage-retry.ts";
import type { Writer } from "./writer.ts";

/** One kind of hot write: a multi-row statement, and what to do with an item that got no answer in it. */
export interface BatchedWrite<Item, Result> {
  readonly sql: string;
  /** Asked after a lost answer: which items are in the store. */
  readonly checkSql: string;
  /** Only one item of a journal is in flight at a time, and a batch is sorted by it. */
  readonly journal: (item: Item) => number;
  /** Who names another tenant's journal waits for nobody there, and keeps nobody waiting. */
  readonly tenant: (item: Item) => string;
  readonly bytes: (item: Item) => number;
  readonly params: (batch: readonly Item[]) => Record<string, unknown>;
  readonly result: (item: Item, row: Row) => Result;
  /** In a transaction of its own, waiting for locks, with the reason where it is refused. */
  readonly single: (item: Item) => Promise<Result>;
}

export interface BatcherOptions {
  readonly connections: Connections;
  readonly writer: Writer;
  readonly patience: OutageRetry;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: Limits;
  readonly lanes: Lanes;
}

/** Two cores serve four batches at once best; more only fight for them. All kinds of hot writes share the lanes. */
const maxLanes = 4;
const maxItems = 256;
/** A batch takes no further item after so many bytes: some ten milliseconds of work, here and on the server. */
const mostBytes = 1024 * 1024;
/** Below this a batch is not split among free lanes: a round trip costs more than it saves. */
const minShare = 64;

/** The connections that batches may use at once. Kinds that wait for one get it in turn: none is free while one waits. */
export class Lanes {
  #busy = 0;
  readonly #waiting = new Set<() => void>();

  get free(): number {
    return maxLanes - this.#busy;
  }

  take(): void {
    this.#busy++;
  }

  give(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#busy--;
    else {
      this.#waiting.delete(next);
      next();
    }
  }

  /** Calls `granted` once, with a lane that has to be given back. */
  wait(granted: () => void): void {
    this.#waiting.add(granted);
  }
}

interface QueuedWrite<Item, Result> extends Queued {
  readonly item: Item;
  /** Whose it is: a journal that another tenant's item names is not its. */
  readonly tenant: string;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit. While batches are under way the next items gather; a free lane takes what is there at once, so an idle
 * store adds no delay. If more have gathered than a batch holds, tenants take turns. One item per journal is in flight at
 * a time: the next one's predecessor must be visible to it.
 */
export class Batcher<Item, Result> {
  readonly #write: BatchedWrite<Item, Result>;
  readonly #options: BatcherOptions;
  readonly #queue: TurnQueue<QueuedWrite<Item, Result>>;
  /** Batches under way, and items that are tried alone. */
  #underway = 0;
  #scheduled = false;
  #closed = false;
  /** The tenant whose item of a journal is in flight. */
  readonly #inFlight = new Map<number, string>();
  /** Items in flight that name a journal which another tenant's item has in flight already. */
  readonly #beside = new Set<string>();
  readonly #whenIdle: (() => void)[] = [];

  constructor(write: BatchedWrite<Item, Result>, options: BatcherOptions) {
    this.#write = write;
    this.#options = options;
    this.#queue = new TurnQueue(options.limits);
  }

  submit(item: Item): Promise<Result> {
    if (this.#closed) return Promise.reject(new TapeError("TAPE_STORE_CLOSED", "this store handle is closed"));
    const tenant = this.#write.tenant(item);
    const bytes = this.#write.bytes(item);
    if (!this.#queue.hasRoom(tenant, bytes)) {
      return Promise.reject(new TapeError("TAPE_OVERLOADED", `${this.#queue.length} writes wait for their commit`));
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, tenant, bytes, writes: 1, resolve, reject });
      this.#schedule();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#queue.length > 0 || this.#underway > 0) await new Promise<void>((done) => this.#whenIdle.push(done));
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#options.clock.immediate(() => this.#pump());
  }

  #pump(): void {
    this.#scheduled = false;
    this.#fillLanes();
  }

  #fillLanes(): void {
    const { lanes } = this.#options;
    while (lanes.free > 0 && this.#queue.length > 0) {
      const batch = this.#nextBatch(lanes.free);
      if (batch.length === 0) return; // what waits is held back by its journal's item in flight
      lanes.take();
      this.#launch(batch);
    }
    if (this.#queue.length > 0) lanes.wait(this.#granted);
  }

  /** A lane is ours. What is written because of the answers of the lane's last batch is to come along. */
  readonly #granted = (): void => {
    const { clock, lanes } = this.#options;
    clock.immediate(() => {
      const batch = this.#nextBatch(1);
      if (batch.length === 0) return lanes.give();
      this.#launch(batch);
      this.#fillLanes();
    });
  };

  /** On a lane that is taken. What the batch left out is tried alone, without it: one tenant's must not keep the lanes. */
  #launch(batch: QueuedWrite<Item, Result>[]): void {
    this.#underway++;
    void this.#flush(batch).then((late) => {
      this.#options.lanes.give();
      if (late.length === 0) this.#landed();
      else void Promise.all(late.map((waiting) => this.#alone(waiting))).then(() => this.#landed());
      if (this.#queue.length > 0) this.#schedule();
    });
  }

  #landed(): void {
    this.#underway--;
    if (this.#underway === 0 && this.#queue.length === 0) for (const done of this.#whenIdle.splice(0)) done();
  }

  #nextBatch(freeLanes: number): QueuedWrite<Item, Result>[] {
    const queue = this.#queue;
    const most = Math.min(maxItems, Math.max(minShare, Math.ceil(queue.length / freeLanes)));
    const batch: QueuedWrite<Item, Result>[] = [];
    const held: QueuedWrite<Item, Result>[] = [];
    const all = queue.takeAll(most, mostBytes);
    if (all === undefined) {
      for (let bytes = 0; batch.length < most && bytes < mostBytes && queue.length > 0; ) {
        const waiting = queue.shift()!;
        const takes = this.#takesOff(waiting, batch);
        (takes ? batch : held).push(waiting);
        if (takes) bytes += waiting.bytes;
      }
    } else for (const waiting of all) (this.#takesOff(waiting, batch) ? batch : held).push(waiting);
    if (held.length > 0) queue.putBack(held);
    return batch;
  }

  /** false: an item of its journal and tenant is in flight, or its journal is in the batch, whose answer names it once. */
  #takesOff({ item, tenant }: QueuedWrite<Item, Result>, batch: readonly QueuedWrite<Item, Result>[]): boolean {
    const journal = this.#write.journal(item);
    const holder = this.#inFlight.get(journal);
    if (holder === tenant || (this.#beside.size > 0 && this.#beside.has(besideKey(journal, tenant)))) return false;
    if (holder === undefined) this.#inFlight.set(journal, tenant);
    else if (batch.some((other) => this.#write.journal(other.item) === journal)) return false;
    else this.#beside.add(besideKey(journal, tenant));
    return true;
  }

  #lands({ item, tenant }: QueuedWrite<Item, Result>): void {
    const journal = this.#write.journal(item);
    if (this.#inFlight.get(journal) === tenant) this.#inFlight.delete(journal);
    else this.#beside.delete(besideKey(journal, tenant));
  }

  /** Answers what the batch left out. */
  async #flush(batch: QueuedWrite<Item, Result>[]): Promise<QueuedWrite<Item, Result>[]> {
    const { journal, result } = this.#write;
    batch.sort((a, b) => journal(a.item) - journal(b.item));
    let answered: Map<number, Row>;
    try {
      answered = await this.#together(batch.map(({ item }) => item));
    } catch (error) {
      for (const waiting of batch) {
        this.#lands(waiting);
        waiting.reject(error);
      }
      return [];
    }
    const late: QueuedWrite<Item, Result>[] = [];
    for (const waiting of batch) {
      const row = answered.get(journal(waiting.item));
      if (row === undefined) {
        late.push(waiting);
        continue;
      }
      this.#lands(waiting);
      waiting.resolve(result(waiting.item, row));
    }
    return late;
  }

  /**
   * A row for each item that was written; who is missing was refused, locked or unlucky, and is tried alone. A lost
   * answer is resolved for the whole batch by its witness; throws only when nobody can tell.
   */
  async #together(batch: readonly Item[]): Promise<Map<number, Row>> {
    const { connections, random, writer } = this.#options;
    const id = random.bits63();
    const params = { ...this.#write.params(batch), id };
    const client = await writer.connect();
    try {
      const { rows } = await connections.query(client, this.#write.sql, params);
      client.release();
      return byJournal(rows);
    } catch (error) {
      const lost = classifyError(error).kind === "connection";
      client.release(lost);
      if (!lost) return new Map(); // one bad item spoils the statement
      if (!(await writer.landed(id, error))) return new Map();
      return this.#written(params, error);
    }
  }

  /** What of a batch is in the store, now that it is known that the batch was carried out. */
  async #written(params: Readonly<Record<string, unknown>>, cause: unknown): Promise<Map<number, Row>> {
    const { connections, patience } = this.#options;
    const check = () => connections.ask(this.#write.checkSql, params, undefined, true);
    try {
      return byJournal((await patience.run(check)).rows);
    } catch {
      throw outcomeUnknown(cause);
    }
  }

  async #alone(waiting: QueuedWrite<Item, Result>): Promise<void> {
    try {
      const result = await this.#write.single(waiting.item);
      this.#lands(waiting);
      waiting.resolve(result);
    } catch (error) {
      this.#lands(waiting);
      waiting.reject(error);
    }
    if (this.#queue.length > 0) this.#schedule(); // one of its journal may be the next
  }
}

const besideKey = (journal: number, tenant: string): string => `${journal} ${tenant}`;

const byJournal = (rows: readonly Row[]): Map<number, Row> => new Map(rows.map((row) => [Number(row.journal), row]));
