import { type Clock, systemClock } from "../../src/base/clock.ts";

/** The machine's clock, some time ago: a history is written in a moment, and by its end it is now. */
export class PastClock implements Clock {
  readonly #whole: number;
  #back: number;

  constructor(back: number) {
    this.#whole = back;
    this.#back = back;
  }

  wall(): number {
    return systemClock.wall() - this.#back;
  }

  mono(): number {
    return systemClock.mono() + this.#whole - this.#back;
  }

  boot(): string {
    return systemClock.boot();
  }

  after(ms: number, fn: () => void): () => void {
    return systemClock.after(ms, fn);
  }

  immediate(fn: () => void): void {
    systemClock.immediate(fn);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return systemClock.sleep(ms, signal);
  }

  elapse(ms: number): void {
    this.#back = Math.max(0, this.#back - ms);
  }

  /** The present. */
  arrive(): void {
    this.#back = 0;
  }
}
