import type { Clock } from "../../base/clock.ts";

/** Interval between two hints. */
const everyMs = 50;

/** Hints that slots of queues are free. This process polls anyway; others need to know now and then. */
export class SlotHints {
  readonly #clock: Clock;
  readonly #send: (tenant: string) => void;
  readonly #due = new Map<string, () => void>();

  constructor(clock: Clock, send: (tenant: string) => void) {
    this.#clock = clock;
    this.#send = send;
  }

  freed(tenant: string): void {
    if (this.#due.has(tenant)) return;
    const send = (): void => {
      this.#due.delete(tenant);
      this.#send(tenant);
    };
    this.#due.set(tenant, this.#clock.after(everyMs, send));
  }

  close(): void {
    for (const cancel of this.#due.values()) cancel();
    this.#due.clear();
  }
}
