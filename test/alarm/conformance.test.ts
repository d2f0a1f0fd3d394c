import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import { AlarmKeeper } from "../../src/alarm/alarm-keeper.ts";
import type { Alarm } from "../../src/alarm/alarms.ts";
import { armedStore } from "../../src/alarm/armed-store.ts";
import { silentLog } from "../../src/base/log.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { AgendaItem, Store } from "../../src/store/contract/store.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { storeConformance } from "../../testkit/conformance/index.ts";
import { sampleDay } from "../sample.ts";
import { sampled } from "../sampled-cases.ts";

/** Compares the agenda before and after every write for which no alarm was set. */
class AgendaWatch extends AlarmKeeper {
  readonly found: string[] = [];
  compared = 0;
  readonly #inside = new AsyncLocalStorage<true>();
  #armedCalls = 0;
  #active = 0;

  override async cover<T>(write: () => Promise<T>, openMs?: number): Promise<T> {
    this.#armedCalls++;
    this.#active++;
    try {
      return await super.cover(() => this.#inside.run(true, write), openMs);
    } finally {
      this.#active--;
    }
  }

  watch(store: Store, clock: ManualClock): Store {
    const dueAt = async (): Promise<Map<string, number>> => {
      const items = await store.read.agenda();
      return new Map(items.map(({ reactor, dueInMs }: AgendaItem) => [reactor ?? "expiry", clock.mono() + dueInMs]));
    };
    const group = <G extends object>(name: string, target: G): G => {
      const methods = Object.keys(target).map((key) => {
        const method = Reflect.get(target, key) as (...args: unknown[]) => Promise<unknown>;
        const watched = async (...args: unknown[]): Promise<unknown> => {
          if (this.#inside.getStore()) return method.apply(target, args);
          const calls = this.#armedCalls;
          const before = this.#active === 0 ? await dueAt() : undefined;
          let result: unknown;
          try {
            result = await method.apply(target, args);
            return result;
          } finally {
            const after = before && (await dueAt());
            if (isStalled(result)) {
              // the armed store sets an alarm once it learns of it
            } else if (
              before !== undefined &&
              after !== undefined &&
              calls === this.#armedCalls &&
              this.#active === 0
            ) {
              this.compared++;
              for (const [reactor, at] of after) {
                if (at < (before.get(reactor) ?? Number.POSITIVE_INFINITY))
                  this.found.push(`${name}.${key} put work of ${reactor} on the agenda without an alarm`);
              }
            }
          }
        };
        return [key, watched] as const;
      });
      return { ...target, ...Object.fromEntries(methods) };
    };
    return {
      ...store,
      intake: group("intake", store.intake),
      claim: group("claim", store.claim),
      fenced: group("fenced", store.fenced),
      once: (key) => group("intake", store.once(key)),
    };
  }
}

const isStalled = (result: unknown): boolean =>
  Array.isArray(result) && result.some((one) => one?.error?.code === "TAPE_LEASE_STALLED");

const alarmsSet: Alarm[] = [];
let compared = 0;

// Every case reads the agenda around its writes, which takes a while: one case in eight runs, every day others.
storeConformance(`armed, on SQLite in memory, the sample of ${sampleDay}`, sampled(8), async () => {
  const clock = new ManualClock();
  const { within: _within, ...inner } = await openStore("memory:", { clock });
  const alarms = { furthestMs: 30 * 86_400_000, set: async (alarm: Alarm) => void alarmsSet.push(alarm) };
  const watch = new AgendaWatch({ alarms, tenant: "acme", clock, log: silentLog, transactionBoundMs: 0 });
  const store = armedStore(watch.watch(inner, clock), watch);
  return {
    store,
    another: async () => store,
    elapse: (ms) => clock.elapse(ms),
    close: async () => {
      await store.close();
      compared += watch.compared;
      expect(watch.found).toEqual([]);
    },
  };
});

describe("the armed store under conformance", () => {
  it("has set alarms, and has compared the agenda around writes without one", () => {
    expect(alarmsSet.length).toBeGreaterThan(30);
    expect(compared).toBeGreaterThan(30);
  });
});
