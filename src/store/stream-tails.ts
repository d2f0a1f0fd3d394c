import type { Clock } from "../base/clock.ts";
import { TapeError } from "../model/errors.ts";
import { notFound } from "../model/not-found.ts";
import type { Chunk, ChunkPage, ChunkRequest, Store, WakeHint } from "./contract/store.ts";

/** Where a reader starts, and when it stops. */
export interface StreamTarget {
  readonly tenant: string;
  readonly run: string;
  readonly stream: string;
  /** The first offset. */
  readonly from: number;
  readonly signal: AbortSignal;
  /** A reader that falls behind the tail fails, and resumes by its offset. Absent: it reads what it has missed. */
  readonly endSlow?: boolean;
}

/** Wake hints may be lost: tails with readers are read at least this often. */
const pollMs = 1_000;
/** Streams of one query. */
const maxRequests = 250;
/** What a tail keeps for its readers: a reader that is further behind has missed it. */
const keptBytes = 256 * 1024;
/** Bytes of a chunk in memory beside its value. */
const chunkOverhead = 64;

/** A read of one stream, waiting for the next query. */
interface PendingRead {
  readonly request: ChunkRequest;
  readonly resolve: (page: ChunkPage | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** The newest chunks of one stream, for all its readers here. */
interface Tail {
  readonly tenant: string;
  readonly run: string;
  readonly stream: string;
  journal: number | undefined;
  /** In order; what is before the first one has to be read from the store. */
  kept: { readonly chunk: Chunk; readonly bytes: number }[];
  bytes: number;
  /** The offset after everything that is known. */
  next: number;
  ended: boolean;
  /** The last page was full. */
  more: boolean;
  /** There may be news. */
  hinted: boolean;
  reading: boolean;
  error: unknown;
  readonly readers: Set<() => void>;
}

/**
 * Reads streams for all readers of a process. Readers of one stream share a tail, and the tails of a tenant share
 * queries: the store is asked as often with a thousand readers as with one. A reader that starts behind the tail reads
 * from the store until it has caught up.
 */
export class StreamTails {
  readonly #store: Pick<Store, "read" | "onWake">;
  readonly #clock: Clock;
  readonly #tails = new Map<string, Tail>();
  readonly #byJournal = new Map<number, Set<Tail>>();
  readonly #pending = new Map<string, PendingRead[]>();
  #unsubscribe: (() => void) | undefined;
  #cancelPoll: (() => void) | undefined;

  constructor(store: Pick<Store, "read" | "onWake">, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Chunks in order; ends with the run, or with the signal. TAPE_RUN_NOT_FOUND before the first one. */
  async *follow(target: StreamTarget): AsyncGenerator<readonly Chunk[]> {
    const { tenant, run, stream, signal, endSlow = false } = target;
    let next = target.from;
    const tail = this.#tailOf(tenant, run, stream);
    let wake = (): void => {};
    const reader = (): void => wake();
    tail.readers.add(reader);
    const stop = (): void => wake();
    signal.addEventListener("abort", stop, { once: true });
    try {
      let live = false;
      while (!signal.aborted) {
        if (tail.error !== undefined) throw tail.error;
        const first = tail.kept[0]?.chunk.offset ?? tail.next;
        if (tail.journal === undefined || next < first) {
          if (live && endSlow) throw tooSlow(next);
          const page = await this.#read(tenant, { run, stream, from: next });
          if (page === undefined) {
            if (live) return; // it was pruned meanwhile
            throw notFound("run", run);
          }
          this.#advance(tail, page, next);
          if (page.chunks.length > 0) yield page.chunks;
          next = Math.max(next, (page.chunks.at(-1)?.offset ?? -1) + 1);
          if (page.chunks.length === 0 && !page.more) next = Math.max(next, tail.kept[0]?.chunk.offset ?? tail.next);
          continue;
        }
        const news = tail.kept.filter(({ chunk }) => chunk.offset >= next).map(({ chunk }) => chunk);
        if (news.length > 0) {
          next = news.at(-1)!.offset + 1;
          yield news;
          continue;
        }
        if (tail.ended) return;
        live ||= !tail.more;
        await new Promise<void>((resolve) => {
          wake = resolve;
          this.#hint(tail, tail.hinted);
        });
        wake = () => {};
      }
    } finally {
      signal.removeEventListener("abort", stop);
      tail.readers.delete(reader);
      if (tail.readers.size === 0) this.#drop(tail);
    }
  }

  #tailOf(tenant: string, run: string, stream: string): Tail {
    const key = keyOf(tenant, run, stream);
    let tail = this.#tails.get(key);
    if (tail === undefined) {
      tail = {
        ...{ tenant, run, stream, journal: undefined, kept: [], bytes: 0, next: 0, ended: false, more: false },
        ...{ hinted: true, reading: false, error: undefined, readers: new Set() },
      };
      this.#tails.set(key, tail);
      this.#unsubscribe ??= this.#store.onWake((wake) => this.#onWake(wake));
      this.#schedulePoll();
    }
    return tail;
  }

  #drop(tail: Tail): void {
    this.#tails.delete(keyOf(tail.tenant, tail.run, tail.stream));
    const siblings = this.#byJournal.get(tail.journal ?? 0);
    siblings?.delete(tail);
    if (siblings?.size === 0) this.#byJournal.delete(tail.journal ?? 0);
    if (this.#tails.size > 0) return;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#cancelPoll?.();
    this.#cancelPoll = undefined;
  }

  #schedulePoll(): void {
    this.#cancelPoll ??= this.#clock.after(pollMs, () => {
      this.#cancelPoll = undefined;
      if (this.#tails.size === 0) return;
      for (const tail of this.#tails.values()) this.#hint(tail, true);
      this.#schedulePoll();
    });
  }

  #onWake(wake: WakeHint): void {
    if (wake.of === "any") for (const tail of this.#tails.values()) this.#hint(tail, true);
    if (wake.of !== "stream" && wake.of !== "journal") return;
    for (const journal of wake.of === "journal" ? [wake.journal] : wake.journals)
      for (const tail of this.#byJournal.get(journal) ?? []) if (tail.tenant === wake.tenant) this.#hint(tail, true);
  }

  /** Reads the tail if there may be news and readers have taken what is known. */
  #hint(tail: Tail, hinted: boolean): void {
    tail.hinted ||= hinted;
    if (!tail.hinted || tail.reading || tail.ended || tail.journal === undefined) return;
    tail.reading = true;
    tail.hinted = false;
    void this.#refresh(tail);
  }

  async #refresh(tail: Tail): Promise<void> {
    try {
      const page = await this.#read(tail.tenant, { run: tail.run, stream: tail.stream, from: tail.next });
      if (page === undefined) tail.ended = true;
      else this.#advance(tail, page, tail.next);
    } catch (error) {
      tail.error = error;
    }
    tail.reading = false;
    for (const wake of tail.readers) wake(); // they ask again if they need more
  }

  /** A page that continues the tail becomes part of it. The first page decides where the tail begins. */
  #advance(tail: Tail, { journal, chunks, more, ended }: ChunkPage, from: number): void {
    if (tail.journal === undefined) {
      if (journal === 0) return;
      tail.journal = journal;
      this.#byJournal.set(journal, (this.#byJournal.get(journal) ?? new Set()).add(tail));
      tail.next = from;
    }
    if (from > tail.next) return;
    for (const chunk of chunks) {
      if (chunk.offset < tail.next) continue;
      const bytes = chunkOverhead + ("value" in chunk ? sizeOfValue(chunk.value) : 0);
      tail.kept.push({ chunk, bytes });
      tail.bytes += bytes;
      tail.next = chunk.offset + 1;
    }
    while (tail.bytes > keptBytes && tail.kept.length > 1) tail.bytes -= tail.kept.shift()!.bytes;
    tail.more = more;
    if (more) tail.hinted = true;
    if (ended && !more) tail.ended = true;
  }

  /** One query for the reads of a tenant that arrive in one turn of the event loop: a hint names many runs. */
  #read(tenant: string, request: ChunkRequest): Promise<ChunkPage | undefined> {
    return new Promise((resolve, reject) => {
      const read = { request, resolve, reject };
      const pending = this.#pending.get(tenant);
      if (pending !== undefined) return void pending.push(read);
      this.#pending.set(tenant, [read]);
      this.#clock.immediate(() => void this.#query(tenant));
    });
  }

  async #query(tenant: string): Promise<void> {
    const reads = this.#pending.get(tenant) ?? [];
    this.#pending.delete(tenant);
    for (let k = 0; k < reads.length; k += maxRequests) {
      const some = reads.slice(k, k + maxRequests);
      try {
        const pages = await this.#store.read.chunks(
          tenant,
          some.map(({ request }) => request),
        );
        for (const [n, { resolve }] of some.entries()) resolve(pages[n]);
      } catch (error) {
        for (const { reject } of some) reject(error);
      }
    }
  }
}

const keyOf = (tenant: string, run: string, stream: string): string => JSON.stringify([tenant, run, stream]);

function tooSlow(next: number): TapeError {
  const message = `the reader is more than ${keptBytes} bytes behind: resume from offset ${next}`;
  return new TapeError("TAPE_OVERLOADED", message, { next });
}

/** Texts are what models stream; other values are small. */
function sizeOfValue(value: unknown): number {
  if (typeof value === "string") return value.length;
  return typeof value === "object" && value !== null ? (JSON.stringify(value)?.length ?? 0) : 8;
}

/** `from` of a reader, checked. */
export function assertOffset(what: string, from: unknown): asserts from is number {
  if (Number.isSafeInteger(from) && (from as number) >= 0) return;
  throw new TapeError("TAPE_BAD_INPUT", `${what} must be an offset: an integer of at least 0`, { field: "from" });
}
