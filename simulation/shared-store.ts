import { DatabaseSync } from "node:sqlite";
import type { Clock } from "../src/base/clock.ts";
import { type Random, seededRandom } from "../src/base/random.ts";
import { openStore } from "../src/host/open-store.ts";
import { TapeError } from "../src/model/errors.ts";
import type { Fence } from "../src/model/fence.ts";
import type { RenewRequest, RenewResult } from "../src/model/lease.ts";
import type { FeedRecord, RunSpec, StepTransaction, Store, WakeHint } from "../src/store/contract/store.ts";
import { feedPages } from "../src/store/read-all.ts";
import { VirtualTime } from "../testkit/kit/virtual-time.ts";
import { type BookingRow, bookingsIn, bookWith, createBookings } from "./bookings.ts";
import { ReusedDatabase } from "./reused-database.ts";
import { tenant } from "./tenants.ts";

/** Calls that do not always write; their result shows whether they did. */
const mayWrite = new Set(["claim.find", "intake.fireTimer", "intake.fireSchedule"]);

const memory = "sqlite::memory:";
const free: ReusedDatabase[] = [];

/** A migrated database as bytes: copying it is twenty times as fast as migrating. */
let blank: Promise<Uint8Array> | undefined;

async function makeBlank(): Promise<Uint8Array> {
  const db = new DatabaseSync(":memory:", { timeout: 0 });
  const store = await openStore(memory, {
    clock: new VirtualTime(),
    random: seededRandom("blank"),
    open: () => db,
  });
  createBookings(db);
  const bytes = db.serialize();
  await store.close();
  return bytes;
}

/** A renewal as the store saw it. */
export interface SeenRenewal {
  readonly journal: number;
  readonly token: bigint;
  readonly at: number;
  readonly ok: boolean;
}

/** A checkpoint that the store accepted. */
export interface SeenCheckpoint {
  readonly journal: number;
  readonly token: bigint;
  readonly at: number;
}

/** The real SQLite store in memory, shared by all processes of a simulation as if it were a server. */
export class SharedStore {
  /** The store as the processes see it. It is shared, so it is not exclusive. */
  readonly bare: Store;
  /** The same for clients beside the processes. In a serverless world their writes set alarms, too. */
  store: Store;
  readonly #time: VirtualTime;
  readonly #random: Random;
  readonly #listeners = new Map<(wake: WakeHint) => void, () => void>();
  #db: DatabaseSync;
  #inner: Store;
  #away = false;
  /** Number of writes so far: without a new one, a reader need not read again. */
  changes = 0;
  /** The last fence used for each journal. */
  readonly fences = new Map<number, Fence>();
  /** Every renewal that reached the store, and whether it was granted. */
  readonly renewals: SeenRenewal[] = [];
  /** Every checkpoint that was moved, in order. */
  readonly checkpoints: SeenCheckpoint[] = [];

  private constructor(time: VirtualTime, random: Random, db: DatabaseSync, behind: Store) {
    this.#time = time;
    this.#random = random;
    this.#db = db;
    this.#inner = behind;
    const { backend, limits, transactionBoundMs } = behind;
    this.bare = {
      backend,
      limits,
      transactionBoundMs,
      exclusive: false,
      intake: this.#group("intake"),
      claim: this.#group("claim"),
      fenced: this.#group("fenced"),
      read: this.#group("read"),
      retention: this.#group("retention"),
      within: {
        ...this.#group("within"),
        step: (_source, body) => this.#step(body),
      },
      once: (key) => this.#proxy("intake", () => this.#inner.once(key)),
      health: () => this.#inner.health(),
      onWake: (listener) => this.#onWake(listener),
      close: async () => {},
    };
    this.store = this.bare;
  }

  /** `fresh`: uses a database of its own. Only such a database can be serialized and rewound. */
  static async open(time: VirtualTime, random: Random, fresh: boolean, clock: Clock = time): Promise<SharedStore> {
    blank ??= makeBlank();
    const bytes = await blank;
    if (fresh) {
      const { db, store } = await openOn(bytes, clock, random);
      return new SharedStore(time, random, db, store);
    }
    const db = free.pop() ?? new ReusedDatabase(bytes, (used) => free.push(used));
    return new SharedStore(time, random, db, await openStore(memory, { clock, random, open: () => db }));
  }

  /** Everything committed at this moment. */
  snapshot(): Uint8Array {
    return this.#db.serialize();
  }

  /**
   * Replaces the store by its snapshot, as after a restore or a failover to a lagging standby. It is unreachable until
   * `declare`, the operator's first step, is done. Returns the feed as it was before.
   */
  async rewind(snapshot: Uint8Array, declare: (store: Store) => Promise<void>): Promise<FeedRecord[]> {
    this.#away = true;
    await this.#time.sleep(1); // it commits what it has accepted
    const before = this.#inner;
    const feed = await wholeFeed(before);
    const { db, store } = await openOn(snapshot, this.#time, this.#random);
    await declare(store);
    this.#db = db;
    this.#inner = store;
    this.#away = false;
    this.changes++;
    for (const [listener, unsubscribe] of this.#listeners) {
      unsubscribe();
      this.#listeners.set(listener, store.onWake(listener));
    }
    await before.close();
    return feed;
  }

  /** true while the store is unreachable. */
  get away(): boolean {
    return this.#away;
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  #onWake(listener: (wake: WakeHint) => void): () => void {
    this.#listeners.set(listener, this.#inner.onWake(listener));
    return () => {
      this.#listeners.get(listener)?.();
      this.#listeners.delete(listener);
    };
  }

  #group<G extends "intake" | "claim" | "fenced" | "read" | "within" | "retention">(group: G): NonNullable<Store[G]> {
    return this.#proxy<NonNullable<Store[G]>>(group, () => this.#inner[group]!);
  }

  /** A transactional step on the current database, as if the process had a connection of its own to it. */
  #step(body: (client: unknown) => unknown): StepTransaction {
    const target = () => ({
      execute: async () => {},
      commit: (...args: Parameters<StepTransaction["commit"]>) => {
        this.#rememberFence(args[0]);
        return this.#inner.within!.step(this.#db, body).commit(...args);
      },
      rollback: async () => {},
      abort: () => {},
    });
    return this.#proxy("step", target);
  }

  /** A transaction of a caller, in one turn: a row, and a run that must exist if and only if the row does. */
  async startInTransaction(of: string, spec: RunSpec, commits: boolean): Promise<void> {
    const db = this.#db;
    const row = { run: "", booking: spec.id };
    const created = bookWith(db, row, commits, () => this.#inner.within!.createRun(db, of, spec));
    this.changes++;
    await created;
  }

  get bookings(): BookingRow[] {
    return bookingsIn(this.#db);
  }

  #proxy<T extends object>(group: string, target: () => T): T {
    const methods = new Map<string, unknown>();
    return new Proxy(target(), {
      get: (_, key) => {
        if (typeof key !== "string") return undefined;
        const made = methods.get(key) ?? this.#method(`${group}.${key}`, key, target);
        methods.set(key, made);
        return made;
      },
    });
  }

  /** Keeps the newest fence last. */
  #rememberFence(fence: Fence): void {
    if (fence.tenant !== tenant) return;
    this.fences.delete(fence.journal);
    this.fences.set(fence.journal, fence);
  }

  async #recordRenewals(requests: readonly RenewRequest[], result: Promise<RenewResult[]>): Promise<RenewResult[]> {
    const verdicts = await result;
    const at = this.#time.wall();
    for (const [k, { fence }] of requests.entries()) {
      this.#rememberFence(fence);
      this.renewals.push({ journal: fence.journal, token: fence.token, at, ok: verdicts[k]?.ok === true });
    }
    return verdicts;
  }

  #recordCheckpoint({ journal, token }: Fence): void {
    this.checkpoints.push({ journal, token, at: this.#time.wall() });
  }

  #method<T extends object>(name: string, key: string, target: () => T): unknown {
    const call = (args: unknown[]): unknown => {
      if (this.#away)
        return Promise.reject(new TapeError("TAPE_STORE_UNREACHABLE", "the store is unreachable (injected)"));
      const on = target();
      return Reflect.apply(Reflect.get(on, key) as (...all: unknown[]) => unknown, on, args);
    };
    // A renewal changes only the expiry of a term.
    if (name === "claim.renew") {
      return (requests: readonly RenewRequest[]) =>
        this.#recordRenewals(requests, call([requests]) as Promise<RenewResult[]>);
    }
    if (name.startsWith("read.")) return (...args: unknown[]) => call(args);
    return async (...args: unknown[]) => {
      if (name === "fenced.append") this.#rememberFence(args[0] as Fence);
      if (name === "fenced.appendAll") for (const [fence] of args[0] as [Fence][]) this.#rememberFence(fence);
      const result = await call(args);
      if (name === "fenced.checkpoint") this.#recordCheckpoint(args[0] as Fence);
      const idle = mayWrite.has(name) && (result === false || (Array.isArray(result) && result.length === 0));
      if (!idle) this.changes++;
      return result;
    };
  }
}

/** Every record in order, of all tenants or of one. */
export async function wholeFeed(store: Store, of?: string): Promise<FeedRecord[]> {
  const feed: FeedRecord[] = [];
  for await (const page of feedPages(store.read, { tenant: of })) feed.push(...page);
  return feed;
}

async function openOn(
  bytes: Uint8Array,
  clock: Clock,
  random: Random,
): Promise<{ readonly db: DatabaseSync; readonly store: Store }> {
  const db = new DatabaseSync(":memory:", { timeout: 0 });
  db.deserialize(bytes);
  return { db, store: await openStore(memory, { clock, random, open: () => db }) };
}
