import { type Clock, systemClock } from "../../src/base/clock.ts";

interface Event {
  readonly at: number;
  readonly order: number;
  readonly fn: () => void;
  cancelled: boolean;
}

/** More events than this without time moving are an endless loop. */
const maxIdleEvents = 100_000;

/** Wall time at which virtual time starts. */
export const startWallMs = 1_700_000_000_000;

/**
 * Virtual time as a heap of events. Events run one at a time, with all promises settled in between, in an order that
 * depends on nothing but the calls. An idle hour costs nothing.
 *
 * @example
 * const time = new VirtualTime();
 * await time.during(time.sleep(86_400_000)); // a day
 */
export class VirtualTime implements Clock {
  #now = 0;
  readonly #startWallMs: number;
  #immediates: (() => void)[] = [];
  #nextImmediate = 0;
  #heap: Event[] = [];
  #order = 0;
  #idleEvents = 0;
  /** Real work in progress, and the callback for its end. */
  #outside = 0;
  #onOutsideDone = (): void => {};
  /** Number of events so far: the cost of a simulation. */
  events = 0;

  /** The time at which it starts, in milliseconds since 1970. */
  constructor(wall = startWallMs) {
    this.#startWallMs = wall;
  }

  /** Milliseconds since the start. */
  get now(): number {
    return this.#now;
  }

  mono(): number {
    return 1_000 + this.#now;
  }

  wall(): number {
    return this.#startWallMs + this.#now;
  }

  boot(): string {
    return "virtual";
  }

  after(ms: number, fn: () => void): () => void {
    const event: Event = { at: this.#now + Math.max(0, ms), order: this.#order++, fn, cancelled: false };
    push(this.#heap, event);
    return () => {
      event.cancelled = true;
    };
  }

  immediate(fn: () => void): void {
    this.#immediates.push(fn);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  /** Runs events until the work is done. Throws if no event is left that could finish it. */
  async during<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const settle = (): void => {
      done = true;
    };
    work.then(settle, settle);
    await settlePromises();
    while (!done) {
      if (!this.#step()) {
        if (this.#outside === 0) throw new Error("this would wait forever: no event is left");
        await new Promise<void>((resolve) => {
          this.#onOutsideDone = resolve;
        });
      }
      await settlePromises();
    }
    return work;
  }

  /** Work that takes real time, such as a query to a server. No event runs until it is done. */
  async outside<T>(work: () => Promise<T>): Promise<T> {
    this.#outside++;
    try {
      return await work();
    } finally {
      this.#outside--;
      this.#onOutsideDone();
    }
  }

  /** Lets `ms` pass, running everything that falls due. */
  elapse(ms: number): Promise<void> {
    return this.during(this.sleep(ms));
  }

  /** Lets `ms` pass at once, as if the machine had been suspended. What fell due meanwhile runs late, in order. */
  jump(ms: number): void {
    this.#now += Math.max(0, ms);
  }

  #step(): boolean {
    if (this.#outside > 0) return false;
    this.events++;
    const soon = this.#immediates[this.#nextImmediate];
    if (soon !== undefined) {
      this.#nextImmediate++;
      if (this.#nextImmediate === this.#immediates.length) {
        this.#immediates = [];
        this.#nextImmediate = 0;
      }
      if (++this.#idleEvents > maxIdleEvents) throw new Error("time stands still: events never stop");
      soon();
      return true;
    }
    for (let event = pop(this.#heap); event !== undefined; event = pop(this.#heap)) {
      if (event.cancelled) continue;
      if (event.at > this.#now) this.#idleEvents = 0;
      else if (++this.#idleEvents > maxIdleEvents) {
        throw new Error("time stands still: events never stop");
      }
      this.#now = Math.max(this.#now, event.at);
      event.fn();
      return true;
    }
    return false;
  }
}

/** Resolves after all pending promise callbacks. */
function settlePromises(): Promise<void> {
  return new Promise((resolve) => systemClock.immediate(resolve));
}

/** `sleep` for a clock that has `after`. */
export function sleepOn(clock: Pick<Clock, "after">, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const cancel = clock.after(ms, done);
    signal?.addEventListener("abort", done, { once: true });
  });
}

const sooner = (a: Event, b: Event): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);

function push(heap: Event[], event: Event): void {
  let k = heap.push(event) - 1;
  while (k > 0) {
    const above = (k - 1) >> 1;
    if (!sooner(event, heap[above]!)) break;
    heap[k] = heap[above]!;
    k = above;
  }
  heap[k] = event;
}

function pop(heap: Event[]): Event | undefined {
  const top = heap[0];
  const last = heap.pop();
  if (top === undefined || last === undefined || heap.length === 0) return top;
  let k = 0;
  for (;;) {
    let below = 2 * k + 1;
    if (below >= heap.length) break;
    if (below + 1 < heap.length && sooner(heap[below + 1]!, heap[below]!)) below++;
    if (!sooner(heap[below]!, last)) break;
    heap[k] = heap[below]!;
    k = below;
  }
  heap[k] = last;
  return top;
}
