export interface Queued {
  /** Whose it is; absent: the store's own, which takes its turns as one more tenant. */
  readonly tenant: string | undefined;
  readonly bytes: number;
}

export interface QueueBounds {
  readonly pendingItems: number;
  readonly pendingBytes: number;
}

/** What one tenant waits for, in order of arrival. */
interface Lane<Item> {
  readonly tenant: string | undefined;
  readonly items: Item[];
  /** How many of `items` have been taken already. */
  taken: number;
  /** Of those that wait. */
  bytes: number;
}

/** Taken items are forgotten so many at a time: to move the rest of a long lane for each would be quadratic. */
const takenAtOnce = 4_096;

/** Beyond a full queue stands an eighth of it, for tenants with less than an eighth waiting: a flood is refused, not they. */
const reserved = 8;

/**
 * What waits for the same thing: each tenant's in order of arrival, the tenants in turn. However much one of them has
 * brought, another's next item waits for one of its items, not for all of them.
 */
export class TurnQueue<Item extends Queued> {
  readonly #bounds: QueueBounds;
  /** Those that have something waiting, the next one in turn first. */
  readonly #lanes = new Map<string | undefined, Lane<Item>>();
  /** The lane of the latest item: most come in a row. */
  #latest: Lane<Item> | undefined;
  #length = 0;
  #bytes = 0;

  constructor(bounds: QueueBounds) {
    this.#bounds = bounds;
  }

  get length(): number {
    return this.#length;
  }

  /** Whether one more of this tenant's, of so many bytes, may wait. */
  hasRoom(tenant: string | undefined, bytes: number): boolean {
    const { pendingItems, pendingBytes } = this.#bounds;
    const full = this.#length >= pendingItems || this.#bytes + bytes > pendingBytes;
    return !full || this.#hasReserve(tenant, bytes);
  }

  #hasReserve(tenant: string | undefined, bytes: number): boolean {
    const { pendingItems, pendingBytes } = this.#bounds;
    const items = Math.floor(pendingItems / reserved);
    const most = Math.floor(pendingBytes / reserved);
    if (this.#length >= pendingItems + items || this.#bytes + bytes > pendingBytes + most) return false;
    const lane = this.#lanes.get(tenant);
    const waiting = lane === undefined ? 0 : lane.items.length - lane.taken;
    return waiting < items && (lane?.bytes ?? 0) + bytes <= most;
  }

  push(item: Item): void {
    const { tenant } = item;
    let lane = this.#latest;
    if (lane === undefined || lane.tenant !== tenant) {
      lane = this.#lanes.get(tenant);
      if (lane === undefined) {
        lane = { tenant, items: [], taken: 0, bytes: 0 };
        this.#lanes.set(tenant, lane);
      }
      this.#latest = lane;
    }
    lane.items.push(item);
    this.#length++;
    this.#bytes += item.bytes;
    lane.bytes += item.bytes;
  }

  /** The next in turn, which is taken out. */
  shift(): Item | undefined {
    const lane = this.#next();
    if (lane === undefined) return undefined;
    const item = lane.items[lane.taken++]!;
    this.#length--;
    this.#bytes -= item.bytes;
    lane.bytes -= item.bytes;
    if (lane.taken === lane.items.length) this.#drop(lane);
    else {
      if (lane.taken >= takenAtOnce) lane.taken -= lane.items.splice(0, lane.taken).length;
      if (this.#lanes.size > 1) this.#toTheEnd(lane);
    }
    return item;
  }

  /** Everything, in turn. */
  drain(): Item[] {
    const items: Item[] = [];
    while (this.#length > 0) items.push(this.shift()!);
    return items;
  }

  #next(): Lane<Item> | undefined {
    if (this.#lanes.size === 1 && this.#latest !== undefined) return this.#latest;
    return this.#lanes.values().next().value;
  }

  #toTheEnd(lane: Lane<Item>): void {
    this.#lanes.delete(lane.tenant);
    this.#lanes.set(lane.tenant, lane);
  }

  #drop(lane: Lane<Item>): void {
    this.#lanes.delete(lane.tenant);
    if (this.#latest === lane) this.#latest = undefined;
  }
}
