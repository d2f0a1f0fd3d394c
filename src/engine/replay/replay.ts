import type { Clock } from "../../base/clock.ts";
import { afterMicrotasks } from "../../base/microtasks.ts";
import type { TapeError } from "../../model/errors.ts";
import type { JournalRecord } from "../../model/records.ts";
import { endedEarly, neverRequested } from "./divergence.ts";
import type { Delivery, History } from "./history.ts";

/** An operation that the code has asked for and that waits for its result. */
export interface PendingOperation {
  readonly pos: number;
  /** Hands the recorded result to the code. */
  readonly deliver: (delivery: Delivery) => void;
  /** Begins the operation for real, once the journal has nothing more to say. */
  readonly begin: () => void;
}

export interface ReplayOptions {
  readonly history: History;
  readonly clock: Clock;
  /** A record that the code has not asked for, now that it has ended. */
  readonly unasked: () => JournalRecord | undefined;
  /** The run is cancelled, at this point of its journal. */
  readonly onCancel: () => void;
  /** The code and the journal disagree. */
  readonly onDiverged: (error: TapeError) => void;
  /** How long the code may wait for something of its own before it asks for what the journal holds next. */
  readonly patienceMs: number;
  /** It has not asked for it. */
  readonly onStalled: (record: JournalRecord) => void;
  /** Everything recorded has been handed out: operations go live. */
  readonly onLive: () => void;
}

/**
 * Replay. Results are handed out one at a time in journal order, and the code runs to its next rest in between: else two
 * parallel branches would call their next operations in another order than they did at first, and get other positions.
 * Where a branch is already waiting for the next result a whole turn of the event loop passes, as it did at first;
 * sequential code needs no more than its own microtasks. Operations without a record wait until everything is handed
 * out, then begin in the order of their positions.
 */
export class Replay {
  readonly #options: ReplayOptions;
  readonly #waiting = new Map<number, PendingOperation>();
  #next = 0;
  #live: boolean;
  #pausing = false;
  #over = false;
  #tellLive: (() => void) | undefined;
  #codeEnded = false;
  #cancelPatience: (() => void) | undefined;

  constructor(options: ReplayOptions) {
    this.#options = options;
    this.#live = options.history.deliveries.length === 0;
  }

  get live(): boolean {
    return this.#live;
  }

  /** Begins: there may be nothing to hand out, or a cancellation first. */
  start(): void {
    if (this.#live) this.#options.onLive();
    else {
      this.#watch(this.#next);
      this.#pause(false);
    }
  }

  request(asked: PendingOperation): void {
    if (this.#live) asked.begin();
    else {
      this.#waiting.set(asked.pos, asked);
      this.#pause(false);
    }
  }

  /**
   * The workflow has returned or thrown. What it asked for and did not wait for (the losers of a race) is handed out or
   * begun all the same; resolves when that is done. Records it never asked for are a divergence.
   */
  async codeEnded(): Promise<void> {
    this.#codeEnded = true;
    const left = this.#options.unasked();
    if (left !== undefined) return this.#options.onDiverged(endedEarly(left));
    if (this.#live || this.#over) return;
    const live = new Promise<void>((resolve) => {
      this.#tellLive = resolve;
    });
    this.#pause(false);
    await live;
  }

  stop(): void {
    this.#over = true;
    this.#cancelPatience?.();
    this.#tellLive?.();
  }

  #advance(): void {
    if (this.#over || this.#live) return;
    const { deliveries } = this.#options.history;
    const delivery = deliveries[this.#next];
    if (delivery === undefined) {
      this.#goLive();
      return;
    }
    if (delivery.pos === undefined) {
      this.#next++;
      this.#options.onCancel();
      this.#pause(true); // what was waiting has been refused: let the code see it first
      return;
    }
    const asked = this.#waiting.get(delivery.pos);
    if (asked === undefined) {
      if (this.#codeEnded) this.#options.onDiverged(neverRequested(delivery.record));
      return; // the code asks for it, which calls us again, or patience runs out
    }
    this.#next++;
    this.#waiting.delete(delivery.pos);
    asked.deliver(delivery);
    const upcoming = deliveries[this.#next];
    this.#pause(upcoming === undefined || upcoming.pos === undefined || this.#waiting.has(upcoming.pos));
  }

  #pause(wholeTurn: boolean): void {
    if (this.#pausing || this.#over) return;
    this.#pausing = true;
    const go = (): void => {
      this.#pausing = false;
      this.#advance();
    };
    if (wholeTurn) this.#options.clock.immediate(go);
    else afterMicrotasks(go);
  }

  #goLive(): void {
    this.#live = true;
    this.#cancelPatience?.();
    this.#options.onLive();
    const ready = [...this.#waiting.values()].sort((a, b) => a.pos - b.pos);
    this.#waiting.clear();
    for (const asked of ready) asked.begin();
    this.#tellLive?.();
  }

  /** One timer for the whole replay: whether anything was handed out since it was set. */
  #watch(from: number): void {
    this.#cancelPatience = this.#options.clock.after(this.#options.patienceMs, () => {
      if (this.#over || this.#live) return;
      if (this.#next > from) return this.#watch(this.#next);
      const delivery = this.#options.history.deliveries[this.#next];
      if (delivery?.pos === undefined || this.#waiting.has(delivery.pos)) return this.#watch(this.#next);
      this.#options.onStalled(delivery.record);
    });
  }
}
