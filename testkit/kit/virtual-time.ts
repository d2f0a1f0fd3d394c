import { type Clock, systemClock } from "../../src/base/clock.ts";

interface Event {
  readonly at: number;
  readonly order: number;
  readonly fn: () => void;
  cancelled: boolean;
}

/** So many events without time moving are a loop that rests nowhere. */
const standstill = 100_000;

/** When virtual time begins, by the calendar. */
export const beginning = 1_700_000_000_000;

/**
 * Virtual time as a heap of events: nothing happens unless it is run, one event at a time with all promises settled in
 * between, in an order that depends on nothing but the calls. An hour in which nothing happens costs nothing.
 *
 * @example
 * const time = new VirtualTime();
 * await time.during(time.sleep(86_400_000)); // a day
 */
export class VirtualTime implements Clock {
  #now = 0;
  readonly #began: number;
  #soon: (() => void)[] = [];
  #next = 0;
  #heap: Event[] = [];
  #order = 0;
  #idleEvents = 0;
  /** Work of the real world under way, and who waits for some of it to be done. */
  #outside = 0;
  #landed = (): void => {};
  /** Events run so far: what a simulation cost. */
  events = 0;

  constructor(wall = beginning) {
    this.#began = wall;
  }

  /** Milliseconds since the beginning. */
  get now(): number {
    return this.#now;
  }

  mono(): number {
    return 1_000 + this.#now;
  }

  wall(): number {
    return this.#began + this.#now;
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
    this.#soon.push(fn);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  /** Runs events until the work is done. Throws if nothing is left that could ever finish it. */
  async during<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const settle = (): void => {
      done = true;
    };
    work.then(settle, settle);
    await rest();
    while (!done) {
      if (!this.#step()) {
        if (this.#outside === 0) throw new Error("this would wait for ever: nothing is left to happen");
        await new Promise<void>((resolve) => {
          this.#landed = resolve;
        });
      }
      await rest();
    }
    return work;
  }

  /** Work that takes real time, such as a query to a server: until it is done, nothing else happens. */
  async outside<T>(work: () => Promise<T>): Promise<T> {
    this.#outside++;
    try {
      return await work();
    } finally {
      this.#outside--;
      this.#landed();
    }
  }

  /** Lets `ms` pass with everything that falls due on the way. */
  elapse(ms: number): Promise<void> {
    return this.during(this.sleep(ms));
  }

  /** Lets `ms` pass at once, as if the machine had slept: what fell due on the way happens late, in order. */
  jump(ms: number): void {
    this.#now += Math.max(0, ms);
  }

  #step(): boolean {
    if (this.#outside > 0) return false;
    this.events++;
    const soon = this.#soon[this.#next];
    if (soon !== undefined) {
      this.#next++;
      if (this.#next === this.#soon.length) {
        this.#soon = [];
        this.#next = 0;
      }
      if (++this.#idleEvents > standstill) throw new Error("time stands still: something goes on without ever resting");
      soon();
      return true;
    }
    for (let event = pop(this.#heap); event !== undefined; event = pop(this.#heap)) {
      if (event.cancelled) continue;
      if (event.at > this.#now) this.#idleEvents = 0;
      else if (++this.#idleEvents > standstill) {
        throw new Error("time stands still: something goes on without ever resting");
      }
      this.#now = Math.max(this.#now, event.at);
      event.fn();
      return true;
    }
    return false;
  }
}

/** Everything that promises can do by themselves is done. */
function rest(): Promise<void> {
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
