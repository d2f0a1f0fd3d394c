import type { Clock } from "../base/clock.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import type { Limits } from "../model/limits.ts";

/** One thing to send with others, as the text that goes over the wire. */
export interface BatchItem {
  readonly text: string;
  /** Only one parcel of a journal is under way at a time: the next one's predecessor must be there. */
  readonly journal?: number;
}

interface QueuedRequest<Answer> {
  readonly parcel: BatchItem;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export interface RequestBatcherOptions<Answer> {
  /** An answer for each text, in order. */
  readonly send: (texts: readonly string[]) => Promise<readonly Answer[]>;
  readonly clock: Clock;
  readonly limits: Limits;
  /** Requests under way at once. */
  readonly lanes: number;
}

const maxItems = 256;
/** Below this a batch is not split among free lanes: a request costs more than it saves. */
const minShare = 32;
/** Letters in one request, unless one parcel alone has more: far below what a server takes. */
const maxChars = 1024 * 1024;

/** What one bad parcel among many is told by: then each goes alone, and only the bad one is refused. */
const perItemErrors = ["TAPE_BAD_INPUT", "TAPE_TOO_LARGE", "TAPE_NOT_ENCODABLE"] as const;

/**
 * What is asked for in one turn of the event loop, or while requests are under way, travels together in the next one: a
 * remote driver shares requests as an embedded one shares commits. An idle client adds no delay.
 */
export class RequestBatcher<Answer> {
  readonly #options: RequestBatcherOptions<Answer>;
  #queue: QueuedRequest<Answer>[] = [];
  #letters = 0;
  #lanes = 0;
  #scheduled = false;
  #closed = false;
  #idle: () => void = () => {};
  readonly #underWay = new Set<number>();

  constructor(options: RequestBatcherOptions<Answer>) {
    this.#options = options;
  }

  submit(parcel: BatchItem): Promise<Answer> {
    if (this.#closed) return Promise.reject(new TapeError("TAPE_STORE_CLOSED", "this store handle is closed"));
    const { pendingItems, pendingBytes } = this.#options.limits;
    if (this.#queue.length >= pendingItems || this.#letters + parcel.text.length > pendingBytes) {
      return Promise.reject(new TapeError("TAPE_OVERLOADED", `${this.#queue.length} writes wait to be sent`));
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ parcel, resolve, reject });
      this.#letters += parcel.text.length;
      this.#schedule();
    });
  }

  /** Takes nothing more; resolves when everything that was taken is answered. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#queue.length === 0 && this.#lanes === 0) return;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#options.clock.immediate(() => this.#pump());
  }

  #pump(): void {
    this.#scheduled = false;
    const { lanes } = this.#options;
    while (this.#lanes < lanes && this.#queue.length > 0) {
      const batch = this.#next(lanes - this.#lanes);
      if (batch.length === 0) return; // what waits is held back by its journal's parcel under way
      this.#lanes++;
      void this.#carry(batch).finally(() => {
        this.#lanes--;
        if (this.#queue.length > 0) this.#schedule();
        else if (this.#lanes === 0) this.#idle();
      });
    }
  }

  #next(freeLanes: number): QueuedRequest<Answer>[] {
    const most = Math.min(maxItems, Math.max(minShare, Math.ceil(this.#queue.length / freeLanes)));
    const batch: QueuedRequest<Answer>[] = [];
    const rest: QueuedRequest<Answer>[] = [];
    let letters = 0;
    let full = false;
    for (const waiting of this.#queue) {
      const { text, journal } = waiting.parcel;
      // From the first that does not fit on nothing goes: a journal's second parcel must not overtake its first.
      full ||= batch.length >= most || (batch.length > 0 && letters + text.length > maxChars);
      if (full || (journal !== undefined && this.#underWay.has(journal))) {
        rest.push(waiting);
        continue;
      }
      if (journal !== undefined) this.#underWay.add(journal);
      batch.push(waiting);
      letters += text.length;
    }
    this.#queue = rest;
    this.#letters -= letters;
    return batch;
  }

  async #carry(batch: readonly QueuedRequest<Answer>[]): Promise<void> {
    try {
      const answers = await this.#options.send(batch.map(({ parcel }) => parcel.text));
      for (const [k, waiting] of batch.entries()) this.#settle(waiting, () => waiting.resolve(answers[k]!));
    } catch (error) {
      if (batch.length > 1 && perItemErrors.some((code) => isTapeError(error, code))) {
        await Promise.all(batch.map((waiting) => this.#carry([waiting])));
      } else for (const waiting of batch) this.#settle(waiting, () => waiting.reject(error));
    }
  }

  #settle({ parcel }: QueuedRequest<Answer>, tell: () => void): void {
    if (parcel.journal !== undefined) this.#underWay.delete(parcel.journal);
    tell();
  }
}
