import { DatabaseSync } from "node:sqlite";
import type { Clock } from "../src/base/clock.ts";
import { type Random, seededRandom } from "../src/base/random.ts";
import { openStore } from "../src/host/open-store.ts";
import { TapeError } from "../src/model/errors.ts";
import type { Fence } from "../src/model/fence.ts";
import type { RenewRequest, RenewResult } from "../src/model/lease.ts";
import type { FeedRecord, Store, WakeHint } from "../src/store/contract/store.ts";
import { feedPages } from "../src/store/read-all.ts";
import { VirtualTime } from "../testkit/kit/virtual-time.ts";
import { ReusedDatabase } from "./reused-database.ts";
import { tenant } from "./tenants.ts";

/** Calls that write only now and then, and by whose answer one can tell. */
const mayWrite = new Set(["claim.find", "intake.fireTimer", "intake.fireSchedule"]);

const memory = "sqlite::memory:";
const free: ReusedDatabase[] = [];

/** A freshly migrated database, as bytes: to copy it is twenty times as fast as to migrate anew. */
let blank: Promise<Uint8Array> | undefined;

async function makeBlank(): Promise<Uint8Array> {
  const db = new DatabaseSync(":memory:", { timeout: 0 });
  const store = await openStore(memory, {
    clock: new VirtualTime(),
    random: seededRandom("blank"),
    open: () => db,
  });
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

/** The real SQLite store in memory, which all processes of one simulation share as if it were a server. */
export class SharedStore {
  /** What the processes see. They are many: nobody has it for itself. */
  readonly store: Store;
  readonly #time: VirtualTime;
  readonly #random: Random;
  readonly #listeners = new Map<(wake: WakeHint) => void, () => void>();
  #db: DatabaseSync;
  #behind: Store;
  #away = false;
  /** Writes so far: whoever has looked since need not look again. */
  changes = 0;
  /** The last fence that somebody came with, of each journal. */
  readonly fences = new Map<number, Fence>();
  /** Every renewal that reached the store, and whether it agreed. */
  readonly renewals: SeenRenewal[] = [];

  private constructor(time: VirtualTime, random: Random, db: DatabaseSync, behind: Store) {
    this.#time = time;
    this.#random = random;
    this.#db = db;
    this.#behind = behind;
    const { backend, limits, transactionBoundMs } = behind;
    this.store = {
      backend,
      limits,
      transactionBoundMs,
      exclusive: false,
      intake: this.#through("intake"),
      claim: this.#through("claim"),
      fenced: this.#through("fenced"),
      read: this.#through("read"),
      once: (key) => this.#counted("intake", () => this.#behind.once(key)),
      health: () => this.#behind.health(),
      onWake: (listener) => this.#onWake(listener),
      close: async () => {},
    };
  }

  /** `fresh`: in a database of its own, which alone can tell what was committed and go back to it. */
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

  /** Everything that is committed at this moment. */
  snapshot(): Uint8Array {
    return this.#db.serialize();
  }

  /**
   * From here on the store is what it was then: as after a failover to a standby that was behind, or a restore. Nobody
   * reaches it until `declare`, what its operator does first, is done. Answers the feed as it was.
   */
  async rewind(snapshot: Uint8Array, declare: (store: Store) => Promise<void>): Promise<FeedRecord[]> {
    this.#away = true;
    await this.#time.sleep(1); // what it has taken it commits
    const before = this.#behind;
    const feed = await wholeFeed(before);
    const { db, store } = await openOn(snapshot, this.#time, this.#random);
    await declare(store);
    this.#db = db;
    this.#behind = store;
    this.#away = false;
    this.changes++;
    for (const [listener, unsubscribe] of this.#listeners) {
      unsubscribe();
      this.#listeners.set(listener, store.onWake(listener));
    }
    await before.close();
    return feed;
  }

  /** true: nobody reaches it. */
  get away(): boolean {
    return this.#away;
  }

  close(): Promise<void> {
    return this.#behind.close();
  }

  #onWake(listener: (wake: WakeHint) => void): () => void {
    this.#listeners.set(listener, this.#behind.onWake(listener));
    return () => {
      this.#listeners.get(listener)?.();
      this.#listeners.delete(listener);
    };
  }

  #through<G extends "intake" | "claim" | "fenced" | "read">(group: G): Store[G] {
    return this.#counted(group, () => this.#behind[group]);
  }

  #counted<T extends object>(group: string, target: () => T): T {
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

  /** The newest at the end. */
  #notice(fence: Fence): void {
    if (fence.tenant !== tenant) return;
    this.fences.delete(fence.journal);
    this.fences.set(fence.journal, fence);
  }

  async #renewed(asked: readonly RenewRequest[], answer: Promise<RenewResult[]>): Promise<RenewResult[]> {
    const verdicts = await answer;
    const at = this.#time.wall();
    for (const [k, { fence }] of asked.entries()) {
      this.#notice(fence);
      this.renewals.push({ journal: fence.journal, token: fence.token, at, ok: verdicts[k]?.ok === true });
    }
    return verdicts;
  }

  #method<T extends object>(name: string, key: string, target: () => T): unknown {
    const call = (args: unknown[]): unknown => {
      if (this.#away) return Promise.reject(new TapeError("TAPE_STORE_UNREACHABLE", "the store is away (injected)"));
      const on = target();
      return Reflect.apply(Reflect.get(on, key) as (...all: unknown[]) => unknown, on, args);
    };
    // A renewal moves nothing but the end of a term.
    if (name === "claim.renew") {
      return (asked: readonly RenewRequest[]) => this.#renewed(asked, call([asked]) as Promise<RenewResult[]>);
    }
    if (name.startsWith("read.")) return (...args: unknown[]) => call(args);
    return async (...args: unknown[]) => {
      if (name === "fenced.append") this.#notice(args[0] as Fence);
      if (name === "fenced.appendAll") for (const [fence] of args[0] as [Fence][]) this.#notice(fence);
      const answer = await call(args);
      const idle = mayWrite.has(name) && (answer === false || (Array.isArray(answer) && answer.length === 0));
      if (!idle) this.changes++;
      return answer;
    };
  }
}

/** Every record there is, or every one of a tenant, in order. */
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
