import { describe, expect, it, onTestFinished } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { DeadOwners } from "../../src/host/singleton/dead-owners.ts";
import type { SeenShard } from "../../src/host/singleton/distribution.ts";
import { shardOf } from "../../src/host/singleton/shard-of.ts";
import { ShardedSingleton } from "../../src/host/singleton/sharded-singleton.ts";
import type { SingletonContext } from "../../src/host/singleton/term.ts";
import { LeaseKeeper } from "../../src/lease/keeper.ts";
import type { LeaseView } from "../../src/model/lease.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { openBlank } from "../blank-database.ts";
import { identityOf } from "../lease/stage.ts";
import { mortal } from "../reactor/stage.ts";

const tenant = "acme";
const ttlMs = 30_000;

interface Replica {
  readonly label: string;
  readonly sharded: ShardedSingleton;
  /** The bodies that run here, by shard. */
  readonly bodies: Map<number, SingletonContext>;
  readonly logged: string[];
  die(): void;
}

interface JoinOptions {
  readonly max?: number;
  readonly body?: (context: SingletonContext) => unknown;
  readonly hints?: boolean;
  /** Another replica is faster at the first attempt on each shard. */
  readonly isLate?: boolean;
}

class Stage {
  readonly clock = new ManualClock();
  readonly replicas: Replica[] = [];
  readonly store: Store;
  /** Every start of a body: replica and shard. */
  readonly starts: string[] = [];
  #seed = 0;

  private constructor(store: Store, clock: ManualClock) {
    this.store = store;
    this.clock = clock;
  }

  static async open(exclusive = false): Promise<Stage> {
    const clock = new ManualClock();
    const opened = await openSqlite({ file: ":memory:", clock, open: openBlank });
    onTestFinished(() => opened.close());
    return new Stage({ ...opened, exclusive }, clock);
  }

  async join(shards: number, { max, body, hints = true, isLate = false }: JoinOptions = {}): Promise<Replica> {
    const label = `r${++this.#seed}`;
    const { clock } = this;
    const { store, die } = mortal(this.store);
    const random = seededRandom(label);
    const logged: string[] = [];
    const log = (_level: string, event: string): void => void logged.push(event);
    const identity = identityOf(label);
    const keeper = new LeaseKeeper({ store, identity, tenant, clock, random, log, timings: { ttlMs } });
    const acquire = keeper.acquireOrSteal.bind(keeper);
    const tried = new Set<string>();
    keeper.acquireOrSteal = async (name, options) => {
      if (!isLate || tried.has(name)) return acquire(name, options);
      tried.add(name);
      return undefined;
    };
    const bodies = new Map<number, SingletonContext>();
    const work = async (context: SingletonContext): Promise<void> => {
      const { index } = context.shard!;
      this.starts.push(`${label} ${index}`);
      bodies.set(index, context);
      try {
        if (body !== undefined) await body(context);
        else while (!context.abortSignal.aborted) await context.sleep(1_000);
      } finally {
        bodies.delete(index);
      }
    };
    const report = (): void => {
      const singletons = sharded.view().state === "stopped" ? [] : [{ name: "sweep", state: "standby" }];
      void store.intake.reportProcess(tenant, { ...identity, body: { singletons } });
    };
    const options = { shards, ...(max !== undefined && { max }) };
    const sharded = new ShardedSingleton("sweep", work, options, {
      ...{
        store: { ...store, exclusive: this.store.exclusive, onWake: hints ? this.store.onWake : () => () => {} },
        keeper,
        tenant,
        clock,
        random,
        log,
        onHeld: report,
      },
    });
    const replica = { label, sharded, bodies, logged, die };
    this.replicas.push(replica);
    await sharded.start();
    return replica;
  }

  /** Lets time pass; at each moment at most one body of a shard may believe that it holds it. */
  async elapse(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 250) {
      await this.clock.elapse(Math.min(250, left));
      const owners = new Map<number, string>();
      for (const { label, bodies } of this.replicas) {
        for (const [index, { belief }] of bodies) {
          if (belief === "lost") continue;
          expect(owners.get(index), `shard ${index}`).toBeUndefined();
          owners.set(index, label);
        }
      }
    }
  }

  /** Waits until the replica has just renewed its shards. */
  async renewed({ sharded }: Replica): Promise<void> {
    const name = `sweep ${sharded.shards[0]}/16`;
    for (;;) {
      await this.elapse(250);
      if ((await this.store.read.lease(tenant, { name }))!.remainingMs > ttlMs - 250) return;
    }
  }

  counts(replicas: readonly Replica[] = this.replicas): number[] {
    return replicas.map(({ sharded }) => sharded.shards.length);
  }

  /** The shards that someone of these holds. */
  held(replicas: readonly Replica[] = this.replicas): number[] {
    return [...new Set(replicas.flatMap(({ sharded }) => sharded.shards))].sort((a, b) => a - b);
  }

  async stop(...replicas: readonly Replica[]): Promise<void> {
    const stopping = Promise.all(replicas.map(({ sharded }) => sharded.stop()));
    await this.elapse(1_000);
    await stopping;
  }
}

const all = (n: number): number[] => Array.from({ length: n }, (_, k) => k);

describe("an owner whose shard has expired", () => {
  const shard = (state: LeaseView["state"], owner: string): SeenShard => ({
    ...{ index: 0, of: 1 },
    lease: { state, owner, token: 1n } as LeaseView,
  });

  it("is dead until it reports again or holds a shard", () => {
    const dead = new DeadOwners();
    dead.note([shard("EXPIRED", "a")], new Map([["a", 10]]));
    dead.note([shard("HELD", "b")], new Map([["a", 10]]));
    expect([dead.has("a"), dead.has("b")]).toEqual([true, false]);
    dead.note([shard("HELD", "b")], new Map([["a", 11]])); // it only stood still
    expect(dead.has("a")).toBe(false);
    dead.note([shard("EXPIRED", "b")], new Map());
    expect(dead.has("b")).toBe(true);
    dead.note([shard("HELD", "b")], new Map());
    expect(dead.has("b")).toBe(false);
  });
});

describe("shardOf", () => {
  it.each([
    ["", 1_000, 261],
    ["a", 1_000, 220],
    ["foobar", 1_000, 720],
    ["sandbox-7", 16, 4],
    ["ü", 1_000, 170],
  ])("%j of %d is %d, forever (FNV-1a)", (key, shards, shard) => {
    expect(shardOf(key, shards)).toBe(shard);
  });

  it("is FNV-1a over UTF-8: the published vectors", () => {
    expect([0x811c9dc5 % 1_024, 0xe40c292c % 1_024, 0xbf9cf968 % 1_024]).toEqual([
      shardOf("", 1_024),
      shardOf("a", 1_024),
      shardOf("foobar", 1_024),
    ]);
    expect(shardOf("ü", 1_024)).not.toBe(shardOf("u", 1_024));
  });

  it.each([0, 1_025, 1.5, Number.NaN])("refuses %d shards", (shards) => {
    expect(() => shardOf("a", shards)).toThrow(/TAPE_BAD_INPUT/);
  });

  it("spreads keys", () => {
    const counts = all(16).map(() => 0);
    for (let k = 0; k < 16_000; k++) counts[shardOf(`sandbox-${k}`, 16)]!++;
    expect(Math.min(...counts)).toBeGreaterThan(900);
    expect(Math.max(...counts)).toBeLessThan(1_100);
  });
});

describe("a singleton with shards", () => {
  it("holds all of them alone, and at once", async () => {
    const stage = await Stage.open();
    const a = await stage.join(16);
    await stage.elapse(500);
    expect(a.sharded.shards).toEqual(all(16));
    expect([...a.bodies.keys()].toSorted((x, y) => x - y)).toEqual(all(16));
    expect((await stage.store.read.lease(tenant, { name: "sweep 3/16" }))?.state).toBe("HELD");
    await stage.stop(a);
    expect(await stage.store.read.leases(tenant, { held: true })).toEqual([]);
  });

  it("is even among replicas within 20 s of a join, without a body twice", async () => {
    const stage = await Stage.open();
    for (let k = 0; k < 3; k++) await stage.join(16);
    await stage.elapse(20_000);
    expect(stage.counts().toSorted()).toEqual([5, 5, 6]);
    await stage.join(16);
    await stage.elapse(20_000);
    expect(stage.counts()).toEqual([4, 4, 4, 4]);
    expect(stage.held()).toEqual(all(16));
    const before = stage.starts.length;
    await stage.elapse(120_000); // nothing moves any more
    expect(stage.starts).toHaveLength(before);
    await stage.stop(...stage.replicas);
  });

  it("leaves a shed shard to the replica that it was shed for, without hints too", async () => {
    const stage = await Stage.open();
    for (let k = 0; k < 3; k++) await stage.join(4, { hints: false });
    await stage.elapse(20_000);
    expect(stage.counts().toSorted()).toEqual([1, 1, 2]);
    expect(stage.starts.length).toBeLessThan(10); // four at the start, and each hand-over once
    await stage.stop(...stage.replicas);
  });

  it("sheds for a replica that comes back, although none took its shard before", async () => {
    const stage = await Stage.open();
    const a = await stage.join(4);
    const report = { ...identityOf("ghost"), body: { singletons: [{ name: "sweep", state: "standby" }] } };
    await stage.store.intake.reportProcess(tenant, report);
    await stage.elapse(15_000);
    expect(a.logged).toContain("singleton.shard_shed");
    const b = await stage.join(4);
    await stage.elapse(20_000);
    expect(stage.counts([a, b]).every((count) => count > 0)).toBe(true);
    await stage.stop(a, b);
  });

  it("hands the shards of a dead replica over when they expire, and stays even", async () => {
    const stage = await Stage.open();
    const [dead, ...rest] = [await stage.join(16), await stage.join(16), await stage.join(16)];
    await stage.elapse(25_000);
    await stage.renewed(dead); // its term ends a whole TTL later, and at no time at which the others poll anyway
    dead.die();
    await stage.elapse(ttlMs + 250);
    expect(stage.held(rest)).toEqual(all(16)); // its report is still listed
    await stage.elapse(5_000);
    expect(stage.counts(rest).toSorted()).toEqual([8, 8]);
    await stage.stop(...rest);
  });

  it("is even with a replica that joins after a death, which has not seen it", async () => {
    const stage = await Stage.open();
    const [dead, ...rest] = [await stage.join(16), await stage.join(16), await stage.join(16)];
    await stage.elapse(25_000);
    dead.die();
    await stage.elapse(ttlMs + 1_000);
    const starts = stage.starts.length;
    rest.push(await stage.join(16)); // the report of the dead one is younger than a minute
    await stage.elapse(20_000);
    expect(stage.counts(rest).toSorted()).toEqual([5, 5, 6]);
    await stage.elapse(60_000);
    expect(stage.starts.length - starts, "each shard moved once").toBeLessThanOrEqual(6);
    await stage.stop(...rest);
  });

  it("counts an owner as dead from its first expired shard until it renews, acquires or reports", () => {
    const dead = new DeadOwners();
    const seen = (index: number, state: "HELD" | "EXPIRED" | "FREE", { renewals = 0, owner = "a", token = 1n } = {}) =>
      ({
        ...{ index, of: 2 },
        lease: { owner: state === "FREE" ? null : owner, state, token, renewals, reason: "timeout" } as LeaseView,
      }) as const;
    const isDead = (shards: readonly ReturnType<typeof seen>[], at = 5): boolean => {
      dead.note(shards, new Map([["a", at]]));
      return dead.has("a");
    };
    expect(isDead([seen(0, "HELD"), seen(1, "HELD")])).toBe(false);
    expect(isDead([seen(0, "EXPIRED"), seen(1, "HELD", { renewals: 1 })])).toBe(true); // renewed before it died
    expect(isDead([seen(0, "HELD", { owner: "b", token: 2n }), seen(1, "HELD", { renewals: 1 })])).toBe(true);
    expect(isDead([seen(1, "HELD", { renewals: 2 })]), "it renews").toBe(false);
    expect(isDead([seen(1, "EXPIRED", { renewals: 2 })])).toBe(true);
    expect(isDead([seen(1, "EXPIRED", { renewals: 2 })], 6), "it reports").toBe(false);
    expect(isDead([seen(1, "FREE", { token: 2n })]), "it releases").toBe(false);
  });

  it("tries again at once where another replica was faster: no hint says what it left", async () => {
    const stage = await Stage.open();
    const replica = await stage.join(8, { hints: false, isLate: true });
    await stage.elapse(500);
    expect(stage.held([replica])).toEqual(all(8));
    await stage.stop(replica);
  });

  it("polls at hints about its shards, and not at those about runs", async () => {
    const stage = await Stage.open();
    const { leases } = stage.store.read;
    let polls = 0;
    const counted: typeof leases = (...args) => {
      polls++;
      return leases(...args);
    };
    Object.assign(stage.store.read, { leases: counted });
    const replica = await stage.join(4);
    await stage.elapse(10_000);
    await stage.store.intake.createRuns(tenant, [{ id: "run", workflow: "w", input: null }]);
    polls = 0;
    for (let k = 0; k < 20; k++) {
      await stage.store.intake.signal(tenant, "run", { name: "go", value: k });
      await stage.elapse(250);
    }
    expect(polls).toBeLessThanOrEqual(2);
    await stage.stop(replica);
  });

  it("hands the shards of a stopped replica over at once", async () => {
    const stage = await Stage.open();
    const [leaving, ...rest] = [await stage.join(8), await stage.join(8)];
    await stage.elapse(20_000);
    await stage.stop(leaving);
    await stage.elapse(5_000);
    expect(stage.held(rest)).toEqual(all(8));
    await stage.stop(...rest);
  });

  it("never takes a live holder's shard: only one that was released or has expired", async () => {
    const stage = await Stage.open();
    for (let k = 0; k < 4; k++) await stage.join(12);
    await stage.elapse(40_000);
    for (const index of all(12)) {
      const terms = await stage.store.read.terms(tenant, { name: `sweep ${index}/12` });
      for (const { endReason } of terms) expect([undefined, "released", "drained"]).toContain(endReason);
    }
    await stage.stop(...stage.replicas);
  });

  it("leaves a shard free rather than exceed `max`, and reports it", async () => {
    const stage = await Stage.open();
    const a = await stage.join(6, { max: 4 });
    await stage.elapse(20_000);
    expect([a.sharded.shards.length, a.sharded.unheld]).toEqual([4, 2]);
    expect(a.logged).toContain("singleton.shards_unheld");
    const b = await stage.join(6, { max: 4 });
    await stage.elapse(20_000);
    expect([stage.held(), stage.counts()]).toEqual([all(6), [3, 3]]);
    expect([a.sharded.unheld, b.sharded.unheld]).toEqual([0, 0]);
    await stage.stop(a, b);
  });

  it("takes more than its share if no hungry replica comes", async () => {
    const stage = await Stage.open();
    const a = await stage.join(8);
    await stage.elapse(1_000);
    // A process that only reports the singleton: it counts as live and takes nothing.
    await stage.store.intake.reportProcess(tenant, {
      ...identityOf("idle"),
      body: { singletons: [{ name: "sweep", state: "standby" }] },
    });
    await stage.elapse(30_000);
    expect(a.sharded.shards.length).toBeGreaterThanOrEqual(7);
    await stage.stop(a);
  });

  it("rests a shard whose body throws, and keeps the others", async () => {
    const stage = await Stage.open();
    let thrown = 0;
    const a = await stage.join(3, {
      body: async ({ shard, abortSignal, sleep }) => {
        if (shard!.index === 1 && ++thrown < 3) throw new Error("rotten");
        while (!abortSignal.aborted) await sleep(1_000);
      },
    });
    await stage.elapse(400);
    expect([a.sharded.shards, thrown]).toEqual([[0, 2], 1]);
    await stage.elapse(15_000);
    expect([a.sharded.shards, thrown]).toEqual([all(3), 3]);
    await stage.stop(a);
  });

  it("gives each shard a checkpoint that its next holder gets, and fences it", async () => {
    const stage = await Stage.open();
    const seen: (string | undefined)[] = [];
    const body = async ({ checkpoint, saveCheckpoint, abortSignal, sleep }: SingletonContext) => {
      seen.push(checkpoint);
      await saveCheckpoint(`after ${checkpoint ?? "nothing"}`);
      while (!abortSignal.aborted) await sleep(1_000);
    };
    const a = await stage.join(1, { body });
    await stage.elapse(1_000);
    const old = a.bodies.get(0)!;
    await stage.stop(a);
    const b = await stage.join(1, { body });
    await stage.elapse(1_000);
    expect(seen).toEqual([undefined, "after nothing"]);
    await expect(old.saveCheckpoint("late")).rejects.toMatchObject({ code: "TAPE_LEASE_LOST" });
    await stage.stop(b);
  });

  it("refuses another number of shards while some are held; a pause lets the new number begin", async () => {
    const stage = await Stage.open();
    const a = await stage.join(2, {
      body: async ({ saveCheckpoint, shard, abortSignal, sleep }) => {
        await saveCheckpoint(`at ${shard!.index}`);
        while (!abortSignal.aborted) await sleep(1_000);
      },
    });
    await stage.elapse(1_000);
    await expect(stage.join(4)).rejects.toMatchObject({ code: "TAPE_SHARDS_CHANGED" });
    for (const index of [0, 1]) await stage.store.claim.pause(tenant, `sweep ${index}/2`, true, "ada", "reshard");
    await stage.elapse(1_000);
    expect(a.bodies.size).toBe(0);
    const before: unknown[] = [];
    const b = await stage.join(4, { body: ({ shard }) => void before.push(shard!.before) });
    await stage.elapse(15_000); // the processes with the old number still count as live
    expect(b.sharded.shards).toEqual(all(4));
    const old = [0, 1].map((index) => ({ index, of: 2, checkpoint: `at ${index}` }));
    expect(before.length).toBeGreaterThanOrEqual(4);
    for (const one of before) expect(one).toEqual(old);
    await stage.stop(a, b);
  });

  it("in a store of one process takes all at once", async () => {
    const stage = await Stage.open(true);
    const a = await stage.join(16);
    await stage.elapse(1_000);
    expect(a.sharded.shards).toEqual(all(16));
    await stage.stop(a);
  });

  it.each([
    [{ shards: 0 }, /shards/],
    [{ shards: 1_025 }, /shards/],
    [{ shards: Number.NaN }, /shards/],
    [{ shards: 4, max: 0 }, /max/],
    [{ shards: 4, mx: 2 }, /did you mean max/],
    [{ shards: 4, ttl: "10 mins" }, /ttl/],
  ])("refuses %o", async (options, message) => {
    const { store, clock } = await Stage.open();
    const keeper = new LeaseKeeper({ store, identity: identityOf("a"), tenant, clock, timings: { ttlMs } });
    const deps = { store, keeper, tenant, clock, random: seededRandom(1), log: () => {} };
    expect(() => new ShardedSingleton("sweep", () => {}, options as never, deps)).toThrow(message);
  });
});
