import { systemClock } from "../../../src/base/clock.ts";
import { isTapeError } from "../../../src/model/errors.ts";
import type { Store } from "../../../src/store/contract/store.ts";
import type { Rule } from "../judge.ts";

const tenant = "pulse";
const everyMs = 50;

/** Writes small values one after the other, and remembers when each was acknowledged. */
export class Pulse {
  readonly #store: Store;
  readonly #acknowledged: number[] = [];
  #stopped = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(store: Store) {
    this.#store = store;
  }

  start(): void {
    this.#writing = this.#write();
  }

  async #write(): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      await this.#put(n);
      this.#acknowledged.push(systemClock.mono());
      await systemClock.sleep(everyMs);
    }
  }

  async #put(n: number): Promise<void> {
    for (;;) {
      try {
        await this.#store.intake.putValue(tenant, keyOf(n), n, "unconditional");
        return;
      } catch (error) {
        if (!isTapeError(error) || error.retry === "no" || this.#stopped) throw error;
        await systemClock.sleep(20);
      }
    }
  }

  /** The longest time without an acknowledged write since that moment. */
  gapSince(from: number): number {
    const later = this.#acknowledged.findIndex((at) => at >= from);
    const times = later < 0 ? [] : this.#acknowledged.slice(Math.max(0, later - 1));
    return Math.max(0, ...times.slice(1).map((at, k) => at - times[k]!));
  }

  /** The last write that was acknowledged. */
  get last(): number {
    return this.#acknowledged.at(-1) ?? 0;
  }

  async finish(): Promise<void> {
    this.#stopped = true;
    await this.#writing.catch(() => {});
  }

  /** Reads every acknowledged value. */
  async judge(store: Store): Promise<Rule> {
    const broken: string[] = [];
    for (const n of this.#acknowledged.keys()) {
      const found = await store.read.value(tenant, keyOf(n));
      if (found?.value !== n) broken.push(`the acknowledged write ${n} is lost`);
    }
    return { rule: "every acknowledged write is there", checked: this.#acknowledged.length, broken };
  }
}

const keyOf = (n: number): string => `pulse-${n}`;
