import pg from "pg";
import type { Store } from "../../src/store/contract/store.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import type { StoreFixture } from "../../testkit/conformance/index.ts";
import { freshDatabase } from "../postgres/database.ts";
import { callerTable, postgresCaller } from "./postgres-caller.ts";

/**
 * One database and one open store for a whole suite, emptied after each case: creating and migrating a database takes
 * half a second, emptying one a few milliseconds. Further clients are opened per case and closed with it.
 */
export function postgresFixtures(server: () => string, params = ""): () => Promise<StoreFixture> {
  let ready: Promise<{ url: string; store: Store; admin: pg.Client }> | undefined;
  return async () => {
    ready ??= prepare(server(), params);
    const { url, store, admin } = await ready;
    const opened: Store[] = [];
    const caller = postgresCaller(url.split("?")[0]!, admin);
    return {
      store,
      caller,
      another: async () => {
        const other = await openPostgres({ url });
        opened.push(other);
        return other;
      },
      elapse: async (ms) => void (await admin.query(elapse, [Math.ceil(ms)])),
      close: async () => {
        await caller.close();
        await Promise.all(opened.map((other) => other.close()));
        await admin.query(empty);
      },
    };
  };
}

async function prepare(server: string, params: string): Promise<{ url: string; store: Store; admin: pg.Client }> {
  const url = `${await freshDatabase(server)}${params}`;
  const store = await openPostgres({ url });
  const admin = new pg.Client({ connectionString: url.split("?")[0]! });
  await admin.connect();
  admin.on("error", () => {}); // the server is stopped first at the end
  await admin.query(callerTable);
  await admin.query(shiftedClock);
  return { url, store, admin };
}

/** The server's own clock, ahead by what `elapse` adds: no case waits, and none is too slow for its leases. */
export const shiftedClock = `
  create sequence public.shift minvalue 0 start 0;
  create or replace function tape.now_ms() returns bigint language sql volatile return
    floor(extract(epoch from clock_timestamp()) * 1000)::bigint + (select last_value from public.shift)`;
export const elapse = "select setval('public.shift', last_value + $1) from public.shift";

const tables =
  "builds queues queue_partitions queue_slots runs names note_keys effects business_keys gates timers budgets vals val_log schedules tombstones witness idempotency_keys tokens processes audit audit_heads quotas".split(
    " ",
  );
export const empty = [
  ...tables.map((table) => `delete from tape.${table}`),
  "delete from tape.leases where journal <> 1",
  "delete from tape.records where not (journal = 1 and seq = 1)",
  "update tape.meta set epoch = 0, token_floor = 0",
  "delete from caller_rows",
].join("; ");
