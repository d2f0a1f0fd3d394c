export interface Queued {
  /** Whose it is; absent: the store's own, which takes its turns as one more tenant. */
  readonly tenant: string | undefined;
  readonly bytes: number;
  /** How many writes of usual cost it stands for. */
  readonly writes: number;
}

export interface QueueBounds {
  readonly pendingItems: number;
  readonly pendingBytes: number;
}

/** What one tenant waits for, in order of arrival. */
interface Lane<Item> {
  readonly tenant: string | undefined;
  items: Item[];
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
  /** Those that have something waiting, the next one in turn first; of the others none but the latest. */
  readonly #lanes = new Map<string | undefined, Lane<Item>>();
  /** The lane of the latest item: most come in a row. */
  #latest: Lane<Item> | undefined;
  #length = 0;
  #bytes = 0;
  #writes = 0;

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
    const latest = this.#latest;
    const lane = latest !== undefined && latest.tenant === item.tenant ? latest : this.#laneOf(item.tenant);
    lane.items.push(item);
    lane.bytes += item.bytes;
    this.#length++;
    this.#bytes += item.bytes;
    this.#writes += item.writes;
  }

  /** Everything, if it is one tenant's and no more than so many writes. As a rule it is, and costs no more than a list. */
  takeAll(most: number): Item[] | undefined {
    const lane = this.#latest;
    if (lane === undefined || lane.taken > 0 || lane.items.length !== this.#length || this.#writes > most) return;
    const { items } = lane;
    lane.items = [];
    lane.bytes = this.#length = this.#bytes = this.#writes = 0;
    return items;
  }

  /** The next in turn, which is taken out. */
  shift(): Item | undefined {
    const lane = this.#next();
    if (lane === undefined) return undefined;
    const item = lane.items[lane.taken++]!;
    this.#length--;
    this.#bytes -= item.bytes;
    this.#writes -= item.writes;
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

  #laneOf(tenant: string | undefined): Lane<Item> {
    if (this.#latest !== undefined && isEmpty(this.#latest)) this.#drop(this.#latest);
    let lane = this.#lanes.get(tenant);
    if (lane === undefined) {
      lane = { tenant, items: [], taken: 0, bytes: 0 };
      this.#lanes.set(tenant, lane);
    }
    this.#latest = lane;
    return lane;
  }

  #next(): Lane<Item> | undefined {
    for (const lane of this.#lanes.values()) if (!isEmpty(lane)) return lane;
    return undefined;
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

const isEmpty = <Item>({ items, taken }: Lane<Item>): boolean => taken === items.length;
