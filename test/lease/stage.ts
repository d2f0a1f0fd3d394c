import { expect, onTestFinished } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import type { Identity } from "../../src/lease/identity.ts";
import { type KeeperOptions, LeaseKeeper, type LeaseStore } from "../../src/lease/keeper.ts";
import type { Lease, LeaseTransition } from "../../src/lease/lease.ts";
import { TapeError } from "../../src/model/errors.ts";
import type { AcquireRequest, RenewRequest, TermView } from "../../src/model/lease.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { ManualClock, settled } from "../../testkit/clock.ts";
import { openBlank } from "../blank-database.ts";

/**
 * The fate of a call to the store:
 *
 *   before           not executed, and the caller learns so
 *   busy             likewise
 *   after            executed, and its result is lost
 *   vanished         not executed, and the caller cannot know
 *   hang             never executed, never returns
 *   { lateMs }       executed at once, returns late
 *   { until }        in flight until then; executed and returned after that
 */
export type Fate =
  | "before"
  | "busy"
  | "after"
  | "vanished"
  | "hang"
  | { readonly lateMs: number }
  | { readonly until: Promise<void> };
type Method = "acquire" | "renew" | "append";

/** The store as a keeper sees it. It counts the calls of the keeper and injects faults. */
export class Probe implements LeaseStore {
  readonly transactionBoundMs: number;
  readonly limits: Store["limits"];
  /** Fates of the next calls, consumed one by one; then the standing fates apply. */
  readonly next: Record<Method, Fate[]> = { acquire: [], renew: [], append: [] };
  readonly standing: Partial<Record<Method, Fate>> = {};
  readonly acquires: AcquireRequest[] = [];
  readonly renewals: (readonly RenewRequest[])[] = [];
  appends = 0;
  /** Notifications are lost. */
  unsubscribe = false;
  /** Runs at each call of any keeper, before and after its execution. */
  onCall = () => {};
  readonly #store: Store;
  readonly #clock: ManualClock;

  constructor(store: Store, clock: ManualClock, transactionBoundMs = store.transactionBoundMs) {
    this.#store = store;
    this.#clock = clock;
    this.transactionBoundMs = transactionBoundMs;
    this.limits = store.limits;
  }

  readonly claim: LeaseStore["claim"] = {
    acquire: (tenant, request) => {
      this.acquires.push(request);
      return this.#meet("acquire", () => this.#store.claim.acquire(tenant, request));
    },
    renew: (renewals) => {
      this.renewals.push(renewals);
      return this.#meet("renew", () => this.#store.claim.renew(renewals));
    },
  };

  readonly fenced: LeaseStore["fenced"] = {
    append: (fence, entry) => {
      this.appends++;
      return this.#meet("append", () => this.#store.fenced.append(fence, entry));
    },
    checkpoint: (fence, text) => this.#store.fenced.checkpoint(fence, text),
  };

  onWake(listener: Parameters<LeaseStore["onWake"]>[0]): () => void {
    return this.#store.onWake((wake) => {
      if (!this.unsubscribe) listener(wake);
    });
  }

  async #meet<T>(method: Method, work: () => Promise<T>): Promise<T> {
    this.onCall();
    const fate = this.next[method].shift() ?? this.standing[method];
    const injected = { method };
    if (fate === "before") throw new TapeError("TAPE_STORE_UNREACHABLE", "not sent", injected);
    if (fate === "busy") throw new TapeError("TAPE_STORE_BUSY", "not its turn", injected);
    if (fate === "vanished") throw new TapeError("TAPE_OUTCOME_UNKNOWN", "lost on the way", injected);
    if (fate === "hang") return new Promise<T>(() => {});
    if (typeof fate === "object" && "until" in fate) await fate.until;
    const answer = await work();
    this.onCall();
    if (fate === "after") throw new TapeError("TAPE_OUTCOME_UNKNOWN", "the answer was lost", injected);
    if (typeof fate === "object" && "lateMs" in fate) await this.#clock.sleep(fate.lateMs);
    return answer;
  }
}

/** Counts unfinished sleeps. Each would keep a real process alive. */
export class StageClock extends ManualClock {
  asleep = 0;

  override async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.asleep++;
    await super.sleep(ms, signal);
    this.asleep--;
  }
}

export interface Stage {
  readonly clock: StageClock;
  readonly store: Store;
  readonly probe: Probe;
  /** Events that keepers logged. */
  readonly logged: string[];
  keeper(label?: string, more?: Partial<KeeperOptions>): LeaseKeeper;
  /** Milliseconds of virtual time since the start of the test. */
  now(): number;
  terms(name?: string): Promise<TermView[]>;
}

export const name = "sweeper";
export const tenant = "default";
/** The defaults, in round numbers: heartbeat, trust and TTL. */
export const [beat, trust, ttl] = [10_000, 25_000, 30_000];

let incarnations = 0;
export const identityOf = (label: string): Identity => ({ owner: `${label}/${++incarnations}`, label });

/** A SQLite store in memory and keepers on it, all in virtual time. */
export async function setStage(): Promise<Stage> {
  const clock = new StageClock();
  const store = await openSqlite({ file: ":memory:", clock, open: openBlank });
  const probe = new Probe(store, clock);
  const keepers: LeaseKeeper[] = [];
  const logged: string[] = [];
  const start = clock.mono();
  let seed = 0;
  onTestFinished(async () => {
    for (const keeper of keepers) keeper.close();
    await store.close();
  });
  return {
    clock,
    store,
    probe,
    logged,
    keeper(label = "a", more = {}) {
      const random = seededRandom(++seed);
      const log = (_level: string, event: string) => void logged.push(event);
      const keeper = new LeaseKeeper({ store: probe, identity: identityOf(label), clock, random, log, ...more });
      keepers.push(keeper);
      return keeper;
    },
    now: () => clock.mono() - start,
    terms: (of = name) => store.read.terms(tenant, { name: of }),
  };
}

/** The lease. Fails a test that cannot continue without it. */
export async function granted(attempt: Promise<Lease | undefined>): Promise<Lease> {
  const lease = await attempt;
  if (lease === undefined) throw new Error("the lease was not granted");
  return lease;
}

/** Every change of a lease, with the time of its notification. */
export function changesOf(lease: Lease, now: () => number): [number, LeaseTransition["to"]][] {
  const changes: [number, LeaseTransition["to"]][] = [];
  lease.onChange(({ to }) => void changes.push([now(), to]));
  return changes;
}

/** The owner of each term of the lease, and why the term started and ended. */
export const storyOf = (terms: readonly TermView[]): unknown[] =>
  terms.map(({ token, label, startReason, endReason }) => [token, label, startReason, endReason]);

export const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "accepted",
    (error: unknown) => (error instanceof TapeError ? error.code : error),
  );

export function expectLost(lease: Lease): void {
  expect(() => lease.assert()).toThrow("TAPE_LEASE_LOST");
  expect(lease.belief).toBe("lost");
  expect(lease.remainingMs()).toBe(0);
}

/** Writes as the holder does, without checking its own clocks first. */
export const writeAs = (store: Store, lease: Lease): Promise<unknown> =>
  store.fenced.append(lease.fence, {
    after: lease.head,
    records: [{ kind: "operator.action", data: { by: lease.name, action: "test", reason: "test" } }],
  });

/** Waits until promise chains and commits have finished. No virtual time passes. */
export const calm = (): Promise<void> => settled(20);
