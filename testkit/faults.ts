import { TapeError } from "../src/model/errors.ts";
import type { Store } from "../src/store/contract/store.ts";

/**
 * What may happen to a call:
 *
 *   before  it never reaches the store; the caller knows that nothing was written
 *   after   it is applied and its response is lost; the caller does not know
 *   hang    it is delayed until it is released; then it is applied and answered
 */
export type Fault = "before" | "after" | "hang";

export interface StoreCall {
  /** Counted from 1, over all methods of all groups. */
  readonly n: number;
  readonly group: "intake" | "claim" | "fenced" | "read";
  readonly method: string;
}

export type FaultPlan = (call: StoreCall) => Fault | undefined;

export interface FaultyStore {
  readonly store: Store;
  /** Every call so far, with its fault. */
  readonly calls: readonly (StoreCall & { readonly fault?: Fault })[];
  /** Resolves when a call hangs. */
  readonly hung: Promise<StoreCall>;
  /** Releases every call that hangs. */
  release(): void;
}

/**
 * Wraps a store so that some of its calls fail, as the plan decides.
 *
 * @example
 * const faulty = faultyStore(store, ({ n }) => (n === 3 ? "after" : undefined));
 * await work(faulty.store); // its third call is applied, and its response lost
 */
export function faultyStore(store: Store, plan: FaultPlan): FaultyStore {
  const calls: (StoreCall & { fault?: Fault })[] = [];
  const pending: (() => void)[] = [];
  let notifyHung: (call: StoreCall) => void = () => {};
  const hung = new Promise<StoreCall>((resolve) => {
    notifyHung = resolve;
  });

  async function forward(group: StoreCall["group"], method: string, work: () => unknown): Promise<unknown> {
    const call = { n: calls.length + 1, group, method };
    const fault = plan(call);
    calls.push(fault === undefined ? call : { ...call, fault });
    const name = `${group}.${method}`;
    switch (fault) {
      case undefined:
        return work();
      case "before":
        throw new TapeError("TAPE_STORE_UNREACHABLE", `${name} was not sent (injected)`, { injected: true });
      case "after":
        await work();
        throw new TapeError("TAPE_OUTCOME_UNKNOWN", `the response of ${name} was lost (injected)`, { injected: true });
      case "hang":
        await new Promise<void>((resolve) => {
          pending.push(resolve);
          notifyHung(call);
        });
        return work();
    }
  }

  function wrap<G extends object>(name: StoreCall["group"], group: G): G {
    return new Proxy(group, {
      get(target, key) {
        const member: unknown = Reflect.get(target, key);
        if (typeof member !== "function" || typeof key !== "string") return member;
        return (...args: unknown[]) => forward(name, key, () => Reflect.apply(member, target, args));
      },
    });
  }

  const { backend, limits, transactionBoundMs, exclusive } = store;
  return {
    store: {
      backend,
      limits,
      transactionBoundMs,
      exclusive,
      intake: wrap("intake", store.intake),
      claim: wrap("claim", store.claim),
      fenced: wrap("fenced", store.fenced),
      read: wrap("read", store.read),
      once: (key) => wrap("intake", store.once(key)),
      health: () => store.health(),
      onWake: (listener) => store.onWake(listener),
      close: () => store.close(),
    },
    calls,
    hung,
    release() {
      for (const resolve of pending.splice(0)) resolve();
    },
  };
}
