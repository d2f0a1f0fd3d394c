import type { Clock } from "../../base/clock.ts";
import { afterMicrotasks } from "../../base/microtasks.ts";
import type { TapeError } from "../../model/errors.ts";
import type { JournalRecord } from "../../model/records.ts";
import { endedEarly, neverRequested } from "./divergence.ts";
import type { Delivery, History } from "./history.ts";

/** An operation that the code has requested and that waits for its result. */
export interface PendingOperation {
  readonly pos: number;
  /** Delivers the recorded result to the code. */
  readonly deliver: (delivery: Delivery) => void;
  /** Starts the operation live, once everything recorded has been delivered. */
  readonly begin: () => void;
}

export interface ReplayOptions {
  readonly history: History;
  readonly clock: Clock;
  /** The first recorded operation that the code has not requested. */
  readonly firstUnrequested: () => JournalRecord | undefined;
  /** The run is cancelled, at this point of its journal. */
  readonly onCancel: (at: number) => void;
  /** The code and the journal disagree. */
  readonly onDiverged: (error: TapeError) => void;
  /** How long the code may await something else before it requests what the journal holds next. */
  readonly patienceMs: number;
  /** The code has not requested this record in time. */
  readonly onStalled: (record: JournalRecord) => void;
  /** Operations are not started without {@link onLive}, even if nothing is recorded. */
  readonly held?: boolean;
  /** Asked before operations are started, even if nothing is recorded. false: the drive ends instead. */
  readonly mayGoLive?: () => boolean;
  /** Everything recorded has been delivered: operations are live from now on, unless this ends the drive. */
  readonly onLive: () => void;
}

/**
 * Delivers recorded results one at a time, in journal order, and lets the code run until it waits again in between.
 * Otherwise two parallel branches could call their next operations in another order than at first and get other
 * positions. If a branch already waits for the next result, a whole turn of the event loop passes, as it did at first;
 * sequential code needs only its own microtasks. Operations without a record wait until everything is delivered, then
 * start in the order of their positions.
 */
export class Replay {
  readonly #options: ReplayOptions;
  readonly #waiting = new Map<number, PendingOperation>();
  #next = 0;
  #live: boolean;
  #pausing = false;
  #over = false;
  #onLive: (() => void) | undefined;
  #whenLive: (() => void)[] = [];
  #codeEnded = false;
  #cancelPatience: (() => void) | undefined;

  constructor(options: ReplayOptions) {
    this.#options = options;
    const asks = options.held === true || options.mayGoLive !== undefined;
    this.#live = options.history.deliveries.length === 0 && !asks;
  }

  get live(): boolean {
    return this.#live;
  }

  /** Starts; there may be nothing to deliver, or a cancellation first. */
  start(): void {
    if (this.#live) this.#options.onLive();
    else {
      this.#watch(this.#next);
      this.#pause(false);
    }
  }

  /** Calls back once everything recorded has been delivered, or at once. */
  whenLive(callback: () => void): void {
    if (this.#live) callback();
    else this.#whenLive.push(callback);
  }

  request(operation: PendingOperation): void {
    if (this.#live) operation.begin();
    else {
      this.#waiting.set(operation.pos, operation);
      this.#pause(false);
    }
  }

  /**
   * The workflow has returned or thrown. Operations that it did not wait for (the losers of a race) are still delivered
   * or started; resolves when that is done. Records that it never requested are a divergence.
   */
  async codeEnded(): Promise<void> {
    this.#codeEnded = true;
    const left = this.#options.firstUnrequested();
    if (left !== undefined) return this.#options.onDiverged(endedEarly(left));
    if (this.#live || this.#over) return;
    const live = new Promise<void>((resolve) => {
      this.#onLive = resolve;
    });
    this.#pause(false);
    await live;
  }

  stop(): void {
    this.#over = true;
    this.#cancelPatience?.();
    this.#onLive?.();
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
      this.#options.onCancel(delivery.at);
      this.#pause(true); // waiting operations were rejected: let the code see that first
      return;
    }
    const operation = this.#waiting.get(delivery.pos);
    if (operation === undefined) {
      if (this.#codeEnded) this.#options.onDiverged(neverRequested(delivery.record));
      return; // the request will call this again, or the replay stalls
    }
    this.#next++;
    this.#waiting.delete(delivery.pos);
    operation.deliver(delivery);
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
    if (this.#options.mayGoLive?.() === false) return;
    this.#live = true;
    this.#cancelPatience?.();
    this.#options.onLive();
    if (this.#options.held) return; // the run becomes STUCK instead
    for (const callback of this.#whenLive.splice(0)) callback();
    const ready = [...this.#waiting.values()].sort((a, b) => a.pos - b.pos);
    this.#waiting.clear();
    for (const operation of ready) operation.begin();
    this.#onLive?.();
  }

  /** One timer for the whole replay; it checks whether anything was delivered since it was set. */
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
