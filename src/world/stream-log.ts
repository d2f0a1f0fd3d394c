import { isTapeError } from "../model/errors.ts";
import type { StoredValue } from "../store/contract/store.ts";
import { numberIn } from "./keys.ts";
import type { WorldDeps } from "./run-log.ts";

/** Some chunks of a stream, which were written together, or its end. */
export interface StreamEntry {
  /** The number of the first chunk. */
  readonly first: number;
  readonly chunks: readonly Uint8Array[];
  readonly end: boolean;
  readonly key: string;
}

/** Where the next chunk goes. */
export interface Tail {
  readonly next: number;
  readonly closed: boolean;
}

/** Names that `list` returns. */
const maxNames = 10_000;

/** The entries of one stream: values under numbered keys, each created once. A writer that is behind finds its number taken. */
export class StreamLog {
  readonly #deps: WorldDeps;
  readonly #run: string;
  readonly #name: string;

  constructor(deps: WorldDeps, run: string, name: string) {
    this.#deps = deps;
    this.#run = run;
    this.#name = name;
  }

  get prefix(): string {
    return this.#deps.keys.chunks(this.#run, this.#name);
  }

  /** Appends chunks at the tail; returns the new one, or undefined if another writer was there first. */
  async append({ next }: Tail, chunks: readonly Uint8Array[], end: boolean): Promise<Tail | undefined> {
    const { store, tenant, keys } = this.#deps;
    if (next === 0) await this.#announce();
    try {
      const entry = { chunks, ...(end && { end }) };
      await store.intake.putValue(tenant, keys.chunk(this.#run, this.#name, next), entry, "must_create");
      return { next: next + chunks.length, closed: end };
    } catch (error) {
      if (!isTapeError(error, "TAPE_VERSION_CONFLICT")) throw error;
      return undefined;
    }
  }

  async tail(): Promise<Tail> {
    const { store, tenant } = this.#deps;
    const [last] = await store.read.values(tenant, this.prefix, 1, undefined, "desc");
    if (last === undefined) return { next: 0, closed: false };
    const { first, chunks, end } = entryOf(last);
    return { next: first + chunks.length, closed: end };
  }

  /** A page of entries after the one with this key. */
  async after(key: string | undefined): Promise<{ readonly entries: readonly StreamEntry[]; readonly more: boolean }> {
    const { store, tenant } = this.#deps;
    const page = await store.read.values(tenant, this.prefix, undefined, key, "asc");
    return { entries: page.map(entryOf), more: page.more === true };
  }

  /** The entry with this chunk, or the last one before it. */
  async around(chunk: number): Promise<StreamEntry | undefined> {
    const { store, tenant, keys } = this.#deps;
    const above = keys.chunk(this.#run, this.#name, chunk + 1);
    const [found] = await store.read.values(tenant, this.prefix, 1, above, "desc");
    return found === undefined ? undefined : entryOf(found);
  }

  /** The name is stored before the first chunk, so that a stream with chunks is in the list of its run. */
  async #announce(): Promise<void> {
    const { store, tenant, keys } = this.#deps;
    const value = { name: this.#name };
    await store.intake.putValue(tenant, keys.stream(this.#run, this.#name), value, "unconditional");
  }
}

/** The streams of a run, by name. */
export async function streamNames({ store, tenant, keys }: WorldDeps, run: string): Promise<string[]> {
  const names: string[] = [];
  for (let above: string | undefined; names.length < maxNames; ) {
    const page = await store.read.values(tenant, keys.streams(run), undefined, above, "asc");
    names.push(...page.map(({ value }) => (value as { name: string }).name));
    if (page.more !== true) break;
    above = page.at(-1)!.key;
  }
  return names.slice(0, maxNames);
}

function entryOf({ key, value }: StoredValue): StreamEntry {
  const { chunks, end = false } = value as { chunks: Uint8Array[]; end?: true };
  return { first: numberIn(key), chunks, end, key };
}

/** The chunks of an entry, each with its number. */
export const numberedChunks = ({ first, chunks }: StreamEntry): [number, Uint8Array][] =>
  chunks.map((chunk, k) => [first + k, chunk]);
