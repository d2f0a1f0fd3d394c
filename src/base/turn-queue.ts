export interface QueueItem {
  /** The item's tenant; absent: the store's own item, which takes turns like one more tenant. */
  readonly tenant: string | undefined;
  readonly bytes: number;
  /** Its cost, in writes of usual size. */
  readonly writes: number;
}

export interface QueueBounds {
  readonly pendingItems: number;
  readonly pendingBytes: number;
}

/** The waiting items of one tenant, in order of arrival. */
interface TenantLine<Item> {
  readonly tenant: string | undefined;
  items: Item[];
  /** How many of `items` were taken already. */
  taken: number;
  /** Bytes of the items that wait. */
  bytes: number;
}

/** Taken items are removed in chunks of this size: to shift a long list for each item would be quadratic. */
const removeChunk = 4_096;

/** Beyond its bounds the queue accepts an eighth more, for tenants with less than an eighth waiting: a flood alone is refused. */
const reserved = 8;

/**
 * A queue in which tenants take turns; the items of one tenant stay in order of arrival. However many items other tenants
 * have queued, a tenant's next item waits for at most one of each.
 */
export class TurnQueue<Item extends QueueItem> {
  readonly #bounds: QueueBounds;
  /** Lines of tenants with waiting items, the next in turn first. `#latest` may be here although it is empty. */
  readonly #lines = new Map<string | undefined, TenantLine<Item>>();
  /** The line of the latest item, cached because most items of a tenant arrive in a row. */
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

  /** Whether the queue accepts one more item of this tenant, of `bytes` bytes. */
  hasRoom(tenant: string | undefined, bytes: number): boolean {
    const { pendingItems, pendingBytes } = this.#bounds;
    const full = this.#length >= pendingItems || this.#bytes + bytes > pendingBytes;
    return !full || this.#hasReserve(tenant, bytes);
  }

  #hasReserve(tenant: string | undefined, bytes: number): boolean {
    const { pendingItems, pendingBytes } = this.#bounds;
    const items = Math.floor(pendingItems / reserved);
    const reservedBytes = Math.floor(pendingBytes / reserved);
    if (this.#length >= pendingItems + items || this.#bytes + bytes > pendingBytes + reservedBytes) return false;
    const line = this.#lines.get(tenant);
    const waiting = line === undefined ? 0 : line.items.length - line.taken;
    return waiting < items && (line?.bytes ?? 0) + bytes <= reservedBytes;
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
   * Takes everything if it belongs to one tenant and is within `maxWrites` and `maxBytes`. That is the usual case, and
   * costs no more than a list.
   */
  takeAll(maxWrites: number, maxBytes = Number.POSITIVE_INFINITY): Item[] | undefined {
    const line = this.#latest;
    if (line === undefined || line.taken > 0 || line.items.length !== this.#length) return;
    if (this.#writes > maxWrites || this.#bytes > maxBytes) return;
    const { items } = line;
    line.items = [];
    line.bytes = this.#length = this.#bytes = this.#writes = 0;
    return items;
  }

  /** Takes the next item in turn, of the tenants that `may` allows. */
  shift(may?: (tenant: string | undefined) => boolean): Item | undefined {
    const line = this.#next(may);
    return line === undefined ? undefined : this.#takeFrom(line);
  }

  /** Takes the first item of this tenant; it counts as the tenant's turn. */
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
      if (line.taken >= removeChunk) line.taken -= line.items.splice(0, line.taken).length;
      if (this.#lines.size > 1) this.#toTheEnd(line);
    }
    return item;
  }

  /** Returns items that cannot be served yet to the front of their tenant's line, in the order given. */
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

  /** Takes everything, in turn. */
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
