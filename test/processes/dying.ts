import type { Waker } from "../../src/push/waker.ts";
import type { Store } from "../../src/store/contract/store.ts";

/**
 * Where a writer dies by SIGKILL: once its alarm is set, while its write may be under way, once it is committed, or when
 * it sends the wake-up.
 */
export const deaths = ["armed", "sent", "committed", "woken"] as const;
export type Death = (typeof deaths)[number];

export interface DeathPlan {
  /** Where this process dies; undefined: not now. */
  death(): Death | undefined;
  /** The write is under way: the parent is asked to kill this process. */
  sent(): void;
  /** The write is committed. */
  committed?(): void;
}

/** Nothing runs after this line, not even what is queued. */
const die = (): void => void process.kill(process.pid, "SIGKILL");

/** A store whose process dies while it creates a run. An alarm is set before the store is called. */
export const dyingStore = (inner: Store, { death, sent, committed }: DeathPlan): Store => ({
  ...inner,
  intake: {
    ...inner.intake,
    createRuns: async (...args: Parameters<typeof inner.intake.createRuns>) => {
      if (death() === "armed") die();
      const results = inner.intake.createRuns(...args);
      if (death() === "sent") sent();
      await results;
      committed?.();
      if (death() === "committed") die();
      return results;
    },
  },
});

/** A waker whose process dies instead of waking. */
export const dyingWaker = (inner: Pick<Waker, "wake"> | undefined, { death }: DeathPlan): Pick<Waker, "wake"> => ({
  wake: async (reactor, requests) => {
    if (death() === "woken") die();
    await inner?.wake(reactor, requests);
  },
});
