import type { Clock } from "./clock.ts";
import { type QueueBounds, type QueueItem, TurnQueue } from "./turn-queue.ts";

/** The requests or connections that batches may use at once. Waiting batchers get one in turn: none is free while one waits. */
export class Channels {
  readonly #max: number;
  #busy = 0;
  readonly #waiting = new Set<() => void>();

  constructor(max: number) {
    this.#max = max;
  }

  get free(): number {
    return this.#max - this.#busy;
  }

  take(): void {
    this.#busy++;
  }

  release(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#busy--;
    else {
      this.#waiting.delete(next);
      next();
    }
  }

  /** Calls `granted` once, with a channel that has to be released. */
  wait(granted: () => void): void {
    this.#waiting.add(granted);
  }
}

/** Bounds of one batch. */
export interface BatchBounds {
  readonly maxItems: number;
  /** A batch takes no further item once it has this many bytes. */
  readonly maxBytes: number;
  /** Fewer items than this are not split among free channels: a round trip costs more than it saves. */
  readonly minShare: number;
}

export interface BatcherOptions<Item, Result> {
  readonly clock: Clock;
  /** What may wait. */
  readonly pending: QueueBounds;
  readonly batch: BatchBounds;
  /** May be shared by batchers of several kinds. */
  readonly channels: Channels;
  /** Tenants take turns, and an item never waits for another tenant's item with the same key. */
  readonly tenant: (item: Item) => string;
  /** At most one item of a key is in flight for each tenant. Absent: the item waits for no other. */
  readonly key: (item: Item) => number | undefined;
  readonly bytes: (item: Item) => number;
  /** One result per item, in order; undefined: try the item with `single`. Rejects for all items of the batch at once. */
  readonly together: (items: readonly Item[]) => Promise<readonly (Result | undefined)[]>;
  /** Without a channel: one tenant's items must not keep the channels from the others. */
  readonly single: (item: Item) => Promise<Result>;
  /** Why an item is not accepted; `waiting` items are queued already. */
  readonly refusal: (reason: "closed" | "full", waiting: number) => Error;
}

interface QueuedItem<Item, Result> extends QueueItem {
  readonly item: Item;
  readonly tenant: string;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit. Items that arrive in one turn of the event loop, or while batches are under way, travel together in the
 * next batch; a free channel takes at once what is there, so an idle process adds no delay. If more items wait than a
 * batch holds, tenants take turns. One item per key is in flight at a time: the next one must see its predecessor.
 */
export class Batcher<Item, Result> {
  readonly #options: BatcherOptions<Item, Result>;
  readonly #queue: TurnQueue<QueuedItem<Item, Result>>;
  /** Batches under way, those included whose items are tried singly. */
  #underway = 0;
  #scheduled = false;
  #closed = false;
  /** The tenant whose item of a key is in flight. */
  readonly #inFlight = new Map<number, string>();
  /** Items in flight whose key another tenant's item has in flight already. */
  readonly #beside = new Set<string>();
  readonly #whenIdle: (() => void)[] = [];

  constructor(options: BatcherOptions<Item, Result>) {
    this.#options = options;
    this.#queue = new TurnQueue(options.pending);
  }

  submit(item: Item): Promise<Result> {
    if (this.#closed) return Promise.reject(this.#options.refusal("closed", this.#queue.length));
    const tenant = this.#options.tenant(item);
    const bytes = this.#options.bytes(item);
    if (!this.#queue.hasRoom(tenant, bytes)) {
      return Promise.reject(this.#options.refusal("full", this.#queue.length));
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, tenant, bytes, writes: 1, resolve, reject });
      this.#schedule();
    });
  }

  /** Accepts nothing more; resolves when everything that was accepted has its result. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#queue.length > 0 || this.#underway > 0) await new Promise<void>((done) => this.#whenIdle.push(done));
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#options.clock.immediate(() => {
      this.#scheduled = false;
      this.#fillChannels();
    });
  }

  #fillChannels(): void {
    const { channels } = this.#options;
    while (channels.free > 0 && this.#queue.length > 0) {
      const batch = this.#nextBatch(channels.free);
      if (batch.length === 0) return; // each item waits for the one of its key in flight
      channels.take();
      this.#launch(batch);
    }
    if (this.#queue.length > 0) channels.wait(this.#granted);
  }

  /** A channel is ours. Items submitted because of the results of its last batch should still join the next one. */
  readonly #granted = (): void => {
    const { clock, channels } = this.#options;
    clock.immediate(() => {
      const batch = this.#nextBatch(1);
      if (batch.length === 0) return channels.release();
      this.#launch(batch);
      this.#fillChannels();
    });
  };

  /** On a channel that is taken. */
  #launch(batch: readonly QueuedItem<Item, Result>[]): void {
    this.#underway++;
    void this.#flush(batch).then((late) => {
      this.#options.channels.release();
      if (late.length === 0) this.#finished();
      else void Promise.all(late.map((queued) => this.#single(queued))).then(() => this.#finished());
      if (this.#queue.length > 0) this.#schedule();
    });
  }

  #finished(): void {
    this.#underway--;
    if (this.#underway === 0 && this.#queue.length === 0) for (const done of this.#whenIdle.splice(0)) done();
  }

  #nextBatch(freeChannels: number): QueuedItem<Item, Result>[] {
    const { maxItems, maxBytes, minShare } = this.#options.batch;
    const queue = this.#queue;
    const share = Math.min(maxItems, Math.max(minShare, Math.ceil(queue.length / freeChannels)));
    const batch: QueuedItem<Item, Result>[] = [];
    const held: QueuedItem<Item, Result>[] = [];
    const all = queue.takeAll(share, maxBytes);
    if (all === undefined) {
      for (let bytes = 0; batch.length < share && bytes < maxBytes && queue.length > 0; ) {
        const queued = queue.shift()!;
        const taken = this.#reserve(queued, batch);
        (taken ? batch : held).push(queued);
        if (taken) bytes += queued.bytes;
      }
    } else for (const queued of all) (this.#reserve(queued, batch) ? batch : held).push(queued);
    if (held.length > 0) queue.putBack(held);
    return batch;
  }

  /** false: an item of its key and tenant is in flight, or its key is in the batch, whose results name a key once. */
  #reserve({ item, tenant }: QueuedItem<Item, Result>, batch: readonly QueuedItem<Item, Result>[]): boolean {
    const { key } = this.#options;
    const name = key(item);
    if (name === undefined) return true;
    const holder = this.#inFlight.get(name);
    if (holder === tenant || (this.#beside.size > 0 && this.#beside.has(besideKey(name, tenant)))) return false;
    if (holder === undefined) this.#inFlight.set(name, tenant);
    else if (batch.some((other) => key(other.item) === name)) return false;
    else this.#beside.add(besideKey(name, tenant));
    return true;
  }

  #free({ item, tenant }: QueuedItem<Item, Result>): void {
    const name = this.#options.key(item);
    if (name === undefined) return;
    if (this.#inFlight.get(name) === tenant) this.#inFlight.delete(name);
    else this.#beside.delete(besideKey(name, tenant));
  }

  /** Resolves with the items that have no result yet. */
  async #flush(batch: readonly QueuedItem<Item, Result>[]): Promise<QueuedItem<Item, Result>[]> {
    const late: QueuedItem<Item, Result>[] = [];
    try {
      const results = await this.#options.together(batch.map(({ item }) => item));
      for (const [k, queued] of batch.entries()) {
        const result = results[k];
        if (result === undefined) late.push(queued);
        else {
          this.#free(queued);
          queued.resolve(result);
        }
      }
    } catch (error) {
      for (const queued of batch) {
        this.#free(queued);
        queued.reject(error);
      }
    }
    return late;
  }

  async #single(queued: QueuedItem<Item, Result>): Promise<void> {
    try {
      const result = await this.#options.single(queued.item);
      this.#free(queued);
      queued.resolve(result);
    } catch (error) {
      this.#free(queued);
      queued.reject(error);
    }
    if (this.#queue.length > 0) this.#schedule(); // the next item of its key may wait
  }
}

const besideKey = (key: number, tenant: string): string => `${key} ${tenant}`;
