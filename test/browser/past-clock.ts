import { type Clock, systemClock } from "../../src/base/clock.ts";

/** The machine's clock, set back: tests write a history in an instant, and catch up with the present at its end. */
export class PastClock implements Clock {
  readonly #totalMs: number;
  #backMs: number;

  constructor(backMs: number) {
    this.#totalMs = backMs;
    this.#backMs = backMs;
  }

  wall(): number {
    return systemClock.wall() - this.#backMs;
  }

  mono(): number {
    return systemClock.mono() + this.#totalMs - this.#backMs;
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
    this.#backMs = Math.max(0, this.#backMs - ms);
  }

  /** Catches up with the present. */
  arrive(): void {
    this.#backMs = 0;
  }
}
