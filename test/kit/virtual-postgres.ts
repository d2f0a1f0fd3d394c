import pg from "pg";
import { openStore } from "../../src/host/open-store.ts";
import type { Limits } from "../../src/model/limits.ts";
import type { Store } from "../../src/store/contract/store.ts";
import type { VirtualTime } from "../../testkit/kit/virtual-time.ts";
import { freshDatabase } from "../postgres/database.ts";
import { startPostgres } from "../postgres/server.ts";

/** The real PostgreSQL store in virtual time: a test sets `tape.now_ms()`, the only clock it uses. */
export interface VirtualPostgres {
  /** Opens an empty store on this clock; one at a time, all on one connection pool and one database. */
  open(time: VirtualTime): Promise<Store>;
  close(): Promise<void>;
}

/** Durability is tested elsewhere: only the program's process dies here, so the server need not sync. */
export async function startServer() {
  return startPostgres({
    major: 18,
    settings: { fsync: "off", full_page_writes: "off", autovacuum: "off", shared_buffers: "32MB" },
  });
}

/** Makes the virtual clock the only one of this database. */
export async function virtualClock(url: string): Promise<{ client: pg.Client; inTurn: InTurn }> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query(`
    set synchronous_commit = off;
    create sequence tape.virtual minvalue 0;
    create or replace function tape.now_ms() returns bigint language sql volatile return (select last_value from tape.virtual);
  `);
  let lastSet = -1;
  let last: Promise<unknown> = Promise.resolve();
  /** One call after another, so that the same program makes the same calls in every round. */
  const inTurn = <T>(now: number, call: () => Promise<T>): Promise<T> => {
    const turn = last.then(async () => {
      if (now !== lastSet) await client.query(`select setval('tape.virtual', ${now})`);
      lastSet = now;
      return call();
    });
    last = turn.catch(() => {});
    return turn;
  };
  return { client, inTurn };
}

const openFor = (url: string, limits: Partial<Limits> = {}): Promise<Store> =>
  openStore(`${url}?accept_loss=true&connections=4`, { limits });

/** The store of this database on this clock, with what is in it. */
export async function inVirtualTime(
  url: string,
  time: VirtualTime,
): Promise<{ store: Store; close: () => Promise<void> }> {
  const store = await openFor(url);
  const { client, inTurn } = await virtualClock(url);
  return {
    store: inTime(store, time, inTurn),
    async close() {
      await store.close();
      await client.end();
    },
  };
}

export async function virtualPostgres(server: string, limits: Partial<Limits> = {}): Promise<VirtualPostgres> {
  const url = await freshDatabase(server);
  const store = await openFor(url, limits);
  const { client, inTurn } = await virtualClock(url);
  const { rows } = await client.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'tape' and tablename not in ('meta', 'migrations')",
  );
  const empty = rows
    .map(({ name }) => name)
    .map((name) => {
      const kept = name === "leases" || name === "records" ? " where abs(journal) <> 1" : "";
      return `delete from tape.${name}${kept}`;
    })
    .join(";");
  return {
    async open(time) {
      await time.outside(() => client.query(empty));
      return inTime(store, time, inTurn);
    },
    async close() {
      await store.close();
      await client.end();
    },
  };
}

/** One call after another, at this time. */
export type InTurn = <T>(now: number, call: () => Promise<T>) => Promise<T>;

/** The store with every call at the virtual time. */
export function inTime(store: Store, time: VirtualTime, inTurn: InTurn): Store {
  const group = <G extends object>(calls: G): G =>
    new Proxy(calls, {
      get(target, key) {
        const member: unknown = Reflect.get(target, key);
        if (typeof member !== "function") return member;
        return (...args: unknown[]) =>
          time.outside(() =>
            inTurn(Math.floor(time.wall()), async () => Reflect.apply(member, target, args) as unknown),
          );
      },
    });
  const { backend, limits, transactionBoundMs, exclusive } = store;
  return {
    backend,
    limits,
    transactionBoundMs,
    exclusive,
    intake: group(store.intake),
    claim: group(store.claim),
    fenced: group(store.fenced),
    read: group(store.read),
    once: (key) => group(store.once(key)),
    health: () => store.health(),
    onWake: (listener) => store.onWake(listener),
    close: async () => {},
  };
}
