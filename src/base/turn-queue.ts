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
interface TenantLine<Item> {
  readonly tenant: string | undefined;
  items: Item[];
  /** How many of `items` have been taken already. */
  taken: number;
  /** Of those that wait. */
  bytes: number;
}

/** Taken items are forgotten so many at a time: to move the rest of a long line for each would be quadratic. */
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
  readonly #lines = new Map<string | undefined, TenantLine<Item>>();
  /** The line of the latest item: most come in a row. */
  #latest: TenantLine<Item> | undefined;
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
    const line = this.#lines.get(tenant);
    const waiting = line === undefined ? 0 : line.items.length - line.taken;
    return waiting < items && (line?.bytes ?? 0) + bytes <= most;
  }

  push(item: Item): void {
    const latest = this.#latest;
    const line = latest !== undefined && latest.tenant === item.tenant ? latest : this.#lineOf(item.tenant);
    line.items.push(item);
    line.bytes += item.bytes;
    this.#length++;
    this.#bytes += item.bytes;
    this.#writes += item.writes;
  }

  /**
   * Everything, if it is one tenant's and no more than so many writes and bytes. As a rule it is, and costs no more than a
   * list.
   */
  takeAll(most: number, mostBytes = Number.POSITIVE_INFINITY): Item[] | undefined {
    const line = this.#latest;
    if (line === undefined || line.taken > 0 || line.items.length !== this.#length) return;
    if (this.#writes > most || this.#bytes > mostBytes) return;
    const { items } = line;
    line.items = [];
    line.bytes = this.#length = this.#bytes = this.#writes = 0;
    return items;
  }

  /** The next in turn, which is taken out; only of tenants that may have one now. */
  shift(may?: (tenant: string | undefined) => boolean): Item | undefined {
    const line = this.#next(may);
    return line === undefined ? undefined : this.#takeFrom(line);
  }

  /** The first of this tenant's, which is taken out. As any other it was the tenant's turn. */
  shiftOf(tenant: string | undefined): Item | undefined {
    const line = this.#lines.get(tenant);
    return line === undefined || isEmpty(line) ? undefined : this.#takeFrom(line);
  }

  #takeFrom(line: TenantLine<Item>): Item {
    const item = line.items[line.taken++]!;
    this.#length--;
    this.#bytes -= item.bytes;
    this.#writes -= item.writes;
    line.bytes -= item.bytes;
    if (line.taken === line.items.length) this.#drop(line);
    else {
      if (line.taken >= takenAtOnce) line.taken -= line.items.splice(0, line.taken).length;
      if (this.#lines.size > 1) this.#toTheEnd(line);
    }
    return item;
  }

  /** What was taken and cannot be served yet: each tenant's goes back to the front of its line, in the order given. */
  putBack(items: readonly Item[]): void {
    for (const [tenant, back] of Map.groupBy(items, (item) => item.tenant)) {
      const line = this.#lineOf(tenant);
      line.items = back.concat(line.items.slice(line.taken));
      line.taken = 0;
      for (const { bytes, writes } of back) {
        line.bytes += bytes;
        this.#bytes += bytes;
        this.#writes += writes;
      }
      this.#length += back.length;
    }
  }

  /** Everything, in turn. */
  drain(): Item[] {
    const items: Item[] = [];
    while (this.#length > 0) items.push(this.shift()!);
    return items;
  }

  #lineOf(tenant: string | undefined): TenantLine<Item> {
    if (this.#latest !== undefined && isEmpty(this.#latest)) this.#drop(this.#latest);
    let line = this.#lines.get(tenant);
    if (line === undefined) {
      line = { tenant, items: [], taken: 0, bytes: 0 };
      this.#lines.set(tenant, line);
    }
    this.#latest = line;
    return line;
  }

  #next(may?: (tenant: string | undefined) => boolean): TenantLine<Item> | undefined {
    for (const line of this.#lines.values()) if (!isEmpty(line) && (may === undefined || may(line.tenant))) return line;
    return undefined;
  }

  #toTheEnd(line: TenantLine<Item>): void {
    this.#lines.delete(line.tenant);
    this.#lines.set(line.tenant, line);
  }

  #drop(line: TenantLine<Item>): void {
    this.#lines.delete(line.tenant);
    if (this.#latest === line) this.#latest = undefined;
  }
}

const isEmpty = <Item>({ items, taken }: TenantLine<Item>): boolean => taken === items.length;
