import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import type { TapeEvent } from "./event.ts";
import type { PendingEvent } from "./low-water.ts";
import { type Delivery, defaultBatchBytes, type Sink } from "./sink.ts";

/** An event in a lane. */
export interface LaneItem {
  readonly event: TapeEvent;
  readonly bytes: number;
  /** Its record, for a dead letter. */
  readonly source: { readonly journal: number; readonly seq: number; readonly inbox: boolean; readonly kind: string };
  /** Its place in the low-water mark; absent: a replay, which no checkpoint waits for. */
  readonly pending?: PendingEvent;
}

/** Why an event is a dead letter. */
export interface Refusal {
  readonly attempts: number;
  readonly code: string;
  readonly error: unknown;
}

/** What a lane reports to its fan-out. */
export interface LaneCallbacks {
  /** Throws unless the fan-out may send at this moment. */
  assert(): void;
  /** A replay returns a promise: it is written that it was sent. */
  delivered(item: LaneItem): Promise<void> | undefined;
  /** Stores a dead letter; the lane continues only once it is stored. */
  refused(item: LaneItem, refusal: Refusal): Promise<void>;
  retrying(attempt: number, delayMs: number, error: unknown): void;
  recovered(): void;
  /** The sink takes no more events. */
  pause(reason: unknown): void;
  /** The lane cannot continue: the lease is lost. */
  failed(error: unknown): void;
}

export interface LanesOptions {
  readonly sink: Sink;
  readonly lanes: number;
  readonly token: bigint;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly random: Random;
  readonly callbacks: LaneCallbacks;
  /** A send that takes longer is aborted. */
  readonly sendMs: number;
}

/** An event that the sink refuses this often in a row is a dead letter: the first refusals may be a faulty deployment. */
const maxRefusals = 3;
const retryBackoff = { baseMs: 1_000, capMs: 60_000 };

/**
 * Sends events in parallel lanes. All events of one run are in the same lane, which sends them in order: nothing
 * overtakes an event that the sink has not received.
 */
export class Lanes {
  readonly #signal: AbortSignal;
  readonly #lanes: Lane[];
  #count = 0;
  #bytes = 0;
  #wakeUp: (() => void) | undefined;

  constructor(options: LanesOptions) {
    this.#signal = options.signal;
    const free = (items: readonly LaneItem[]): void => this.#free(items);
    this.#lanes = Array.from({ length: options.lanes }, () => new Lane(options, free));
    options.signal.addEventListener("abort", () => this.#wakeUp?.(), { once: true });
  }

  /** Events that were read and are not settled. */
  get count(): number {
    return this.#count;
  }

  /** Bytes of these events. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Events with the same hash are sent in order. */
  add(hash: number, item: LaneItem): void {
    this.#count++;
    this.#bytes += item.bytes;
    this.#lanes[hash % this.#lanes.length]!.add(item);
  }

  /** Waits until there is room. Writers of the store never wait for a sink: only reading stops. */
  async room(hasRoom: () => boolean): Promise<void> {
    while (!this.#signal.aborted && !hasRoom()) await this.#freed();
  }

  /** Has `room` check again. */
  check(): void {
    this.#wakeUp?.();
    this.#wakeUp = undefined;
  }

  /** Waits until every event is settled, or the signal aborts. */
  async settled(): Promise<void> {
    while (!this.#signal.aborted && this.#count > 0) await this.#freed();
  }

  #freed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wakeUp = resolve;
    });
  }

  #free(items: readonly LaneItem[]): void {
    this.#count -= items.length;
    for (const { bytes } of items) this.#bytes -= bytes;
    this.check();
  }
}

/** One lane: its events in order, and at most one send at a time. */
class Lane {
  readonly #options: LanesOptions;
  readonly #free: (items: readonly LaneItem[]) => void;
  readonly #queue: LaneItem[] = [];
  #active = false;
  /** Attempts on the first event, and refusals of it. */
  #attempts = 0;
  #refusals = 0;
  /** A refused batch is sent again one by one, for this many events: only one of them may be to blame. */
  #single = 0;

  constructor(options: LanesOptions, free: (items: readonly LaneItem[]) => void) {
    this.#options = options;
    this.#free = free;
  }

  add(item: LaneItem): void {
    this.#queue.push(item);
    if (this.#active) return;
    this.#active = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    const { signal, callbacks } = this.#options;
    // What is read together is sent together.
    await Promise.resolve();
    try {
      while (this.#queue.length > 0 && !signal.aborted) await this.#turn();
    } catch (error) {
      if (!signal.aborted) callbacks.failed(error);
    } finally {
      this.#active = false;
    }
  }

  async #turn(): Promise<void> {
    const { callbacks, sink, signal } = this.#options;
    const maxBytes = sink.limits?.bytes ?? defaultBatchBytes;
    const batch = this.#batch(sink.limits?.events ?? 1, maxBytes);
    const [first] = batch;
    if (first!.bytes > maxBytes) {
      const error = `the event takes ${first!.bytes} bytes, and the sink at most ${maxBytes}`;
      return this.#refuse(first!, { attempts: this.#attempts, code: "too_large", error });
    }
    this.#attempts++;
    callbacks.assert();
    const deliveries = await this.#send(batch);
    if (signal.aborted) return; // a successor may have sent them again already: nothing of this counts
    for (const [k, item] of batch.entries()) {
      const delivery = deliveries[k] ?? { later: "the sink reported no delivery for this event" };
      if (delivery !== "ok") {
        this.#remove(batch.slice(0, k));
        return this.#fail(item, delivery, batch.length);
      }
      const written = callbacks.delivered(item);
      if (written !== undefined) await written;
    }
    this.#remove(batch);
  }

  /** As many as the sink takes, but at least one. */
  #batch(maxEvents: number, maxBytes: number): LaneItem[] {
    const count = this.#single > 0 ? 1 : maxEvents;
    const batch: LaneItem[] = [];
    let bytes = 0;
    for (const item of this.#queue) {
      bytes += item.bytes;
      if (batch.length >= count || (batch.length > 0 && bytes > maxBytes)) break;
      batch.push(item);
    }
    return batch;
  }

  async #send(batch: readonly LaneItem[]): Promise<readonly Delivery[]> {
    const { sink, token, signal, clock, sendMs } = this.#options;
    const late = new AbortController();
    const cancel = clock.after(sendMs, () => late.abort(new Error(`no response within ${sendMs} ms`)));
    const stop = (): void => late.abort(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    try {
      const events = batch.map(({ event }) => event);
      const result = await sink.send(events, { signal: late.signal, attempt: this.#attempts, token });
      return result ?? batch.map(() => "ok");
    } catch (error) {
      return batch.map(() => ({ later: late.signal.aborted ? late.signal.reason : error }));
    } finally {
      cancel();
      signal.removeEventListener("abort", stop);
    }
  }

  async #fail(item: LaneItem, delivery: Exclude<Delivery, "ok">, sent: number): Promise<void> {
    if ("pause" in delivery) {
      this.#options.callbacks.pause(delivery.pause);
      return;
    }
    this.#attempts ||= 1; // events before this one were delivered
    if ("later" in delivery) return this.#rest(delivery.later, delivery.afterMs ?? 0);
    if (sent > 1) this.#single = sent;
    else if (++this.#refusals >= maxRefusals) {
      const { never: error, code = "refused" } = delivery;
      return this.#refuse(item, { attempts: this.#attempts, code, error });
    }
    await this.#rest(delivery.never, 0);
  }

  async #rest(error: unknown, afterMs: number): Promise<void> {
    const { clock, random, callbacks, signal } = this.#options;
    const delayMs = Math.max(afterMs, backoffMs(this.#attempts, retryBackoff, random));
    callbacks.retrying(this.#attempts, delayMs, error);
    await clock.sleep(delayMs, signal);
  }

  async #refuse(item: LaneItem, refusal: Refusal): Promise<void> {
    await this.#options.callbacks.refused(item, refusal);
    this.#remove([item]);
  }

  /** Removes settled events from the front. */
  #remove(items: readonly LaneItem[]): void {
    if (items.length === 0) return;
    if (this.#attempts > 1) this.#options.callbacks.recovered();
    this.#queue.splice(0, items.length);
    this.#attempts = 0;
    this.#refusals = 0;
    this.#single = Math.max(0, this.#single - items.length);
    this.#free(items);
  }
}
