import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { LeaseKeeper } from "../../src/lease/keeper.ts";
import type { Lease } from "../../src/lease/lease.ts";
import type { Timings } from "../../src/lease/timings.ts";
import type { LeaseView } from "../../src/model/lease.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { type PostgresProxy, startProxy } from "../postgres/proxy.ts";
import { granted, identityOf, tenant } from "./stage.ts";

/** Renews often and trusts long, so that load on the machine alone does not lose the lease. */
const steady: Timings = { ttlMs: 20_000, heartbeatMs: 50, trustMs: 19_000 };
const boundMs = 1_500;

let url: string;
/** Two, because a transaction sees a frozen snapshot of the activity of other connections. */
let admin: pg.Client;
let observer: pg.Client;
const opened: { close(): unknown }[] = [];
let names = 0;
const freshName = () => `lease-${++names}`;

beforeAll(async () => {
  url = await freshDatabase(inject("postgres18"));
  [admin, observer] = [new pg.Client(url), new pg.Client(url)];
  await Promise.all([admin.connect(), observer.connect()]);
});
afterEach(async () => {
  await admin.query("rollback");
  for (const one of opened.splice(0).reverse()) await one.close();
});
afterAll(async () => {
  await Promise.all([admin.end(), observer.end()]);
  await dropDatabase(url);
});

async function open(at = url, bound = boundMs): Promise<Store> {
  const store = await openPostgres({ url: `${at}?transaction_bound_ms=${bound}&connections=3` });
  opened.push(store);
  return store;
}

function keep(store: Store, timings: Partial<Timings>, onEvent: (event: string) => void = () => {}): LeaseKeeper {
  const log = (_level: string, event: string) => onEvent(event);
  const keeper = new LeaseKeeper({ store, identity: identityOf("pg"), timings, log });
  opened.push(keeper);
  return keeper;
}

/** Polls until the condition is true; the test's own timeout is the only deadline. */
async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await what())) await systemClock.sleep(10);
}

async function viewOf(store: Store, name: string): Promise<LeaseView> {
  const view = await store.read.lease(tenant, { name });
  if (view === undefined) throw new Error(`no lease ${name}`);
  return view;
}

/** Waits until the store has renewed the lease once more. */
async function renewedFrom(store: Store, name: string): Promise<void> {
  const { renewals } = await viewOf(store, name);
  await until(async () => (await viewOf(store, name)).renewals > renewals);
}

it("a release reaches the standby of another process by notification, long before its next poll", async () => {
  const name = freshName();
  const holder = await granted(keep(await open(), steady).tryAcquire(name));
  const standingBy = Promise.withResolvers<void>();
  const standby = keep(await open(), steady, (event) => event === "lease.standby" && standingBy.resolve());
  const pollMs = 60_000;
  const waiting = standby.acquire(name, { pollMs });
  await standingBy.promise;
  const released = systemClock.mono();
  expect(await holder.release()).toBe(true);
  const successor = await granted(waiting);
  expect(systemClock.mono() - released).toBeLessThan(pollMs / 6);
  successor.assert();
  expect([successor.token, successor.term.reason]).toEqual([3n, "release"]);
});

describe("heartbeats", () => {
  it("survive the termination of every connection in mid-renewal", async () => {
    const name = freshName();
    const store = await open();
    const lease = await granted(keep(store, steady).tryAcquire(name));
    const changes: string[] = [];
    lease.onChange(({ to }) => changes.push(to));
    for (let round = 0; round < 3; round++) {
      await renewedFrom(store, name);
      // The table is locked, so the renewal is certainly in flight when its connection is terminated.
      await admin.query("begin; lock table tape.leases in access exclusive mode");
      const blocked = "application_name = 'durable-tape' and datname = current_database() and wait_event_type = 'Lock'";
      const cut = `select pg_terminate_backend(pid) from pg_stat_activity where ${blocked}`;
      await until(async () => ((await observer.query(cut)).rowCount ?? 0) > 0);
      await admin.query("commit");
    }
    await renewedFrom(store, name);
    await until(() => lease.belief === "held");
    expect(changes).not.toContain("lost");
    expect(lease.abortSignal.aborted).toBe(false);
  });

  it("succeed while a guarded transaction is open, which FOR SHARE would prevent", async () => {
    const name = freshName();
    const store = await open();
    const keeper = keep(store, steady);
    const lease = await granted(keeper.tryAcquire(name));
    const { journal } = lease.fence;
    await admin.query("begin");
    await admin.query("select 1 from tape.leases where journal = $1 for key share", [journal]);
    const { renewals } = await viewOf(store, name);
    await until(async () => (await viewOf(store, name)).renewals > renewals + 3);
    expect(lease.belief).toBe("held");
    // With the stronger lock the renewal is blocked, and the belief in the lease is unknown.
    await admin.query("select 1 from tape.leases where journal = $1 for share", [journal]);
    await until(() => lease.belief === "unknown");
    await admin.query("commit");
    await until(() => lease.belief === "held");
  });

  it("of other leases succeed while another transaction keeps the row of one lease locked", async () => {
    const store = await open(url, 1_000); // the time the result waits for the locked row
    const keeper = keep(store, { ...steady, heartbeatMs: 300 });
    const [locked, other] = [freshName(), freshName()];
    const first = await granted(keeper.tryAcquire(locked));
    const second = await granted(keeper.tryAcquire(other));
    const changes: string[] = [];
    for (const lease of [first, second]) lease.onChange(({ to }) => changes.push(`${lease.name} ${to}`));
    await admin.query("begin");
    await admin.query("select 1 from tape.leases where journal = $1 for update", [first.fence.journal]);
    const [one, two] = [first, second].map((lease) => lease.counters().renewals);
    await until(() => first.belief === "unknown" && second.counters().renewals > two!);
    expect(first.counters().renewals).toBe(one);
    await admin.query("rollback");
    await until(() => first.belief === "held" && first.counters().renewals > one!);
    expect(changes.filter((change) => change.endsWith("lost"))).toEqual([]);
  });
});

it("connections that are terminated while checked out do not end the process", async () => {
  // An error event without a listener would be an uncaught exception, and this test run would fail.
  const store = await open();
  const keeper = keep(store, { ...steady, heartbeatMs: 20 });
  let done = 0;
  let over = false;
  const busy = Array.from({ length: 3 }, async () => {
    const name = freshName();
    while (!over) {
      const lease = await keeper.acquireOrSteal(name).catch(() => undefined);
      await lease?.release();
      done++;
    }
  });
  const all = "application_name = 'durable-tape' and datname = current_database()";
  for (let round = 0; round < 10; round++) {
    const before = done;
    await until(() => done > before);
    await observer.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${all}`);
  }
  over = true;
  await Promise.all(busy);
  (await granted(keeper.acquireOrSteal(freshName()))).assert();
});

it("the database is down for longer than the TTL, then five replicas reconnect at once: exactly one leads", async () => {
  const name = freshName();
  const proxy: PostgresProxy = await startProxy(url);
  try {
    const timings = { ttlMs: 1_500 };
    const direct = await open();
    const leases: Lease[] = [];
    let maxBelievers = 0;
    const believers = () => leases.filter((lease) => lease.belief !== "lost");
    const stop = new AbortController();
    for (let k = 0; k < 5; k++) {
      const keeper = keep(await open(proxy.url, 800), timings);
      // Each replica leads whenever it can.
      void (async () => {
        while (!stop.signal.aborted) {
          const lease = await keeper.acquire(name, { signal: stop.signal, pollMs: 200 }).catch(() => undefined);
          if (lease === undefined) continue;
          leases.push(lease);
          maxBelievers = Math.max(maxBelievers, believers().length);
          await new Promise((resolve) => lease.abortSignal.addEventListener("abort", resolve));
        }
      })();
    }
    await until(() => believers().length === 1);
    const before = leases.at(-1)!;
    proxy.hang(true);
    await until(async () => (await viewOf(direct, name)).state === "EXPIRED");
    expect(() => before.assert()).toThrow("TAPE_LEASE_LOST"); // the holder had stopped before another process could take over
    expect(believers()).toEqual([]);
    proxy.hang(false);
    const led = () => believers().filter((lease) => lease.counters().renewals > 1);
    await until(() => led().length > 0);
    expect(leases.at(-1)!.token > before.token).toBe(true);
    expect(maxBelievers).toBe(1);
    stop.abort();
    const terms = await direct.read.terms(tenant, { name });
    expect(terms.filter(({ endReason }) => endReason === undefined)).toHaveLength(1);
    expect(terms.find(({ token }) => token === before.token)?.endReason).toBe("expired");
  } finally {
    // The stores behind the proxy close first, because closing waits for their connections.
    for (const one of opened.splice(0).reverse()) await one.close();
    await proxy.close();
  }
});
