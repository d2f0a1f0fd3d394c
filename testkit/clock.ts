import { type Clock, systemClock } from "../src/base/clock.ts";

/**
 * A clock that moves only when a test moves it. Timers due on the way fire in order.
 *
 * @example
 * const clock = new ManualClock();
 * const store = await openStore("memory:", { clock });
 * await clock.elapse(30_000);
 */
export class ManualClock implements Clock {
  #mono: number;
  #wall: number;
  #slept = 0;
  #boot: string;
  #timers: { at: number; order: number; fn: () => void }[] = [];
  #order = 0;

  /** The readings at which it starts, in milliseconds. */
  constructor(options: { mono?: number; wall?: number; boot?: string } = {}) {
    this.#mono = options.mono ?? 1_000;
    this.#wall = options.wall ?? 1_700_000_000_000;
    this.#boot = options.boot ?? "boot-1";
  }

  mono(): number {
    return this.#mono;
  }

  wall(): number {
    return this.#wall;
  }

  up(): number {
    return this.#mono + this.#slept;
  }

  boot(): string {
    return this.#boot;
  }

  after(ms: number, fn: () => void): () => void {
    const timer = { at: this.#mono + Math.max(0, ms), order: this.#order++, fn };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  immediate(fn: () => void): void {
    systemClock.immediate(fn); // no time passes: what was submitted in one turn stays together
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        cancel();
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const cancel = this.after(ms, done);
      signal?.addEventListener("abort", done, { once: true });
    });
  }

  /** Lets `ms` pass, firing due timers, with promises settled in between. */
  async elapse(ms: number): Promise<void> {
    const until = this.#mono + ms;
    for (;;) {
      await settled();
      const due = this.#timers.filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at || a.order - b.order)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== due);
      this.#advance(Math.max(0, due.at - this.#mono)); // overdue after a stall: time never goes back
      due.fn();
    }
    this.#advance(until - this.#mono);
    await settled();
  }

  /** A synchronous stall: time passes, and no timer fires until the next `elapse`. */
  stall(ms: number): void {
    this.#advance(ms);
  }

  /** Sets the wall clock forward or back. */
  stepWall(ms: number): void {
    this.#wall += ms;
  }

  /** Suspends the machine: wall time passes, monotonic time does not. */
  suspend(ms: number): void {
    this.#wall += ms;
    this.#slept += ms;
  }

  /** Reboots the machine: another boot id, and monotonic time restarts. */
  reboot(boot: string): void {
    this.#boot = boot;
    this.#mono = 10;
    this.#slept = 0;
  }

  #advance(ms: number): void {
    this.#mono += ms;
    this.#wall += ms;
  }
}

/** Waits a few turns of the event loop, so that group commits and promise chains settle. */
export async function settled(turns = 5): Promise<void> {
  for (let k = 0; k < turns; k++) await new Promise<void>((resolve) => systemClock.immediate(resolve));
}
