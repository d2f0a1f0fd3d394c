import { afterAll, beforeAll } from "vitest";
import type { Store } from "../../src/store/contract/store.ts";
import { openSpanner } from "../../src/store/spanner/open.ts";
import type { StoreFixture } from "../../testkit/conformance/index.ts";
import { type Admin, startAdmin } from "./database.ts";

/** An emulator of this test file's own: several files run at once, and an emulator executes one transaction at a time. */
export function ownEmulator(): () => Admin {
  let admin: Admin | undefined;
  beforeAll(async () => {
    admin = await startAdmin();
  });
  afterAll(async () => {
    await admin?.close();
  });
  return () => admin!;
}

/**
 * One database and one open store for a whole file, emptied after each case: creating and migrating a database takes one
 * and a half seconds. Only `elapse` moves the store's time: no case waits, and none is too slow for its leases.
 */
export function spannerFixtures(admin: () => Admin): () => Promise<StoreFixture> {
  let now = Date.now();
  const time = (): number => now;
  let ready: Promise<{ url: string; store: Store }> | undefined;
  const prepare = async () => {
    // The emulator executes one transaction at a time, and aborts the others: more at once would only repeat each other.
    const url = `${await admin().create()}?sessions=3&wait_ms=600000`;
    return { url, store: await openSpanner({ url, time }) };
  };
  return async () => {
    ready ??= prepare();
    const { url, store } = await ready;
    const opened: Store[] = [];
    return {
      store,
      another: async () => {
        const other = await openSpanner({ url, time });
        opened.push(other);
        return other;
      },
      elapse: async (ms) => {
        now += Math.ceil(ms);
      },
      close: async () => {
        await Promise.all(opened.map((other) => other.close()));
        await admin().empty(url);
      },
    };
  };
}
