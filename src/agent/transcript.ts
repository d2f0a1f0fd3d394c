import { encode, sizeOf } from "../base/codec.ts";
import type { ValuesContext } from "../sdk/context.ts";

/** `next`: the list continues on the following page. */
interface Page<T> {
  readonly items: readonly T[];
  readonly next?: true;
}

interface OpenPage<T> {
  readonly version: number;
  readonly page: Page<T>;
}

/** A run, or what reads and writes values in its place. */
interface Place {
  readonly values: Pick<ValuesContext, "read" | "put">;
}

/** A page is rewritten with each addition, so it is small. */
const maxPageItems = 50;
const maxPageBytes = 128 * 1024;

/**
 * A list that outlives runs, for the messages of a session: values `<key>/<page>`, read and written by operations of a
 * run. A page is replaced by compare-and-set. So of two runs that add to one list at the same time the second one ends
 * with TAPE_VERSION_CONFLICT, and no message is lost or mixed.
 */
export class Transcript<T> {
  readonly #tape: Place;
  readonly #key: string;
  #pages: OpenPage<T>[] | undefined;

  constructor(tape: Place, key: string) {
    this.#tape = tape;
    this.#key = key;
  }

  /** Read once in a run: later calls know what the run has added. */
  async items(): Promise<readonly T[]> {
    return (await this.#load()).flatMap(({ page }) => page.items);
  }

  async append(items: readonly T[]): Promise<void> {
    if (items.length === 0) return;
    const pages = await this.#load();
    const last = pages.at(-1)!;
    const all = [...last.page.items, ...items];
    const fits = all.length <= maxPageItems && sizeOf(encode(all)) <= maxPageBytes;
    if (fits || last.page.items.length === 0) return await this.#put(pages.length - 1, { items: all });
    // The full page is first: its version decides which of two runs continues the list.
    await this.#put(pages.length - 1, { items: last.page.items, next: true });
    pages.push(await this.#read(pages.length));
    await this.#put(pages.length - 1, { items });
  }

  /** Replaces the last `count` items. */
  async replaceLast(count: number, items: readonly T[]): Promise<void> {
    const pages = await this.#load();
    for (let left = count; left > 0; ) {
      const { page } = pages.at(-1)!;
      const taken = Math.min(left, page.items.length);
      if (taken > 0) await this.#put(pages.length - 1, { items: page.items.slice(0, page.items.length - taken) });
      left -= taken;
      if (left === 0 || pages.length === 1) break;
      pages.pop();
      await this.#put(pages.length - 1, { items: pages.at(-1)!.page.items });
    }
    await this.append(items);
  }

  async clear(): Promise<void> {
    await this.replaceLast((await this.items()).length, []);
  }

  async #load(): Promise<OpenPage<T>[]> {
    if (this.#pages !== undefined) return this.#pages;
    const pages = [await this.#read(0)];
    while (pages.at(-1)!.page.next) pages.push(await this.#read(pages.length));
    this.#pages = pages;
    return pages;
  }

  async #read(k: number): Promise<OpenPage<T>> {
    const { version, value } = await this.#tape.values.read(`${this.#key}/${k}`);
    return { version, page: (value as Page<T> | undefined) ?? { items: [] } };
  }

  async #put(k: number, page: Page<T>): Promise<void> {
    const version = await this.#tape.values.put(`${this.#key}/${k}`, page, this.#pages![k]!.version);
    this.#pages![k] = { version, page };
  }
}
