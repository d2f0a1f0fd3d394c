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

/** Beats often and trusts long: a busy machine does not lose it by itself. */
const steady: Timings = { ttlMs: 20_000, heartbeatMs: 50, trustMs: 19_000 };
const boundMs = 1_500;

let url: string;
/** Two, because what one sees of the others' activity stands still while it is in a transaction. */
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

function keep(store: Store, timings: Partial<Timings>, heard: (event: string) => void = () => {}): LeaseKeeper {
  const log = (_level: string, event: string) => heard(event);
  const keeper = new LeaseKeeper({ store, identity: identityOf("pg"), timings, log });
  opened.push(keeper);
  return keeper;
}

/** Looks until it is so; the test's own time limit is the only deadline. */
async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await what())) await systemClock.sleep(10);
}

async function viewOf(store: Store, name: string): Promise<LeaseView> {
  const view = await store.read.lease(tenant, { name });
  if (view === undefined) throw new Error(`no lease ${name}`);
  return view;
}

/** The lease has been renewed after this moment, as the store says. */
async function renewedFrom(store: Store, name: string): Promise<void> {
  const { renewals } = await viewOf(store, name);
  await until(async () => (await viewOf(store, name)).renewals > renewals);
}

it("a release reaches the standby of another process by notification, long before it would look", async () => {
  const name = freshName();
  const holder = await granted(keep(await open(), steady).tryAcquire(name));
  const standingBy = Promise.withResolvers<void>();
  const standby = keep(await open(), steady, (event) => event === "lease.standby" && standingBy.resolve());
  const pollMs = 60_000;
  const waiting = standby.acquire(name, { pollMs });
  await standingBy.promise;
  const released = systemClock.mono();
  expect(await holder.release()).toBe(true);
  const heir = await granted(waiting);
  expect(systemClock.mono() - released).toBeLessThan(pollMs / 6);
  heir.assert();
  expect([heir.token, heir.term.reason]).toEqual([3n, "release"]);
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
      // The table is locked, so the renewal is certainly under way when its connection goes.
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

  it("pass while a guarded transaction is open, which FOR SHARE would not let them", async () => {
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
    // The same with the stronger lock: the renewal does not get through, and the lease is in doubt.
    await admin.query("select 1 from tape.leases where journal = $1 for share", [journal]);
    await until(() => lease.belief === "unknown");
    await admin.query("commit");
    await until(() => lease.belief === "held");
  });

  it("of the others pass while somebody keeps one lease's row locked", async () => {
    const store = await open(url, 1_000); // so long the answer waits for the locked row
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

it("connections that are terminated while they are lent out do not end the process", async () => {
  // An error event that nobody listens to would be an uncaught exception, and this run would end red.
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

it("the database is away for longer than the TTL, then five come at once: exactly one leads", async () => {
  const name = freshName();
  const proxy: PostgresProxy = await startProxy(url);
  try {
    const timings = { ttlMs: 1_500 };
    const direct = await open();
    const leases: Lease[] = [];
    let most = 0;
    const believers = () => leases.filter((lease) => lease.belief !== "lost");
    const stop = new AbortController();
    for (let k = 0; k < 5; k++) {
      const keeper = keep(await open(proxy.url, 800), timings);
      // Each leads whenever it can.
      void (async () => {
        while (!stop.signal.aborted) {
          const lease = await keeper.acquire(name, { signal: stop.signal, pollMs: 200 }).catch(() => undefined);
          if (lease === undefined) continue;
          leases.push(lease);
          most = Math.max(most, believers().length);
          await new Promise((resolve) => lease.abortSignal.addEventListener("abort", resolve));
        }
      })();
    }
    await until(() => believers().length === 1);
    const before = leases.at(-1)!;
    proxy.hang(true);
    await until(async () => (await viewOf(direct, name)).state === "EXPIRED");
    expect(() => before.assert()).toThrow("TAPE_LEASE_LOST"); // it had stopped before anybody could have taken over
    expect(believers()).toEqual([]);
    proxy.hang(false);
    const led = () => believers().filter((lease) => lease.counters().renewals > 1);
    await until(() => led().length > 0);
    expect(leases.at(-1)!.token > before.token).toBe(true);
    expect(most).toBe(1);
    stop.abort();
    const terms = await direct.read.terms(tenant, { name });
    expect(terms.filter(({ endReason }) => endReason === undefined)).toHaveLength(1);
    expect(terms.find(({ token }) => token === before.token)?.endReason).toBe("expired");
  } finally {
    // The stores behind the proxy first: closing waits for their connections.
    for (const one of opened.splice(0).reverse()) await one.close();
    await proxy.close();
  }
});
