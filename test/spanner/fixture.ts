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
 * and a half seconds. Store time is ahead of the database's by what `elapse` adds, so no case waits.
 */
export function spannerFixtures(admin: () => Admin): () => Promise<StoreFixture> {
  let ahead = 0;
  const aheadMs = (): number => ahead;
  let ready: Promise<{ url: string; store: Store }> | undefined;
  const prepare = async () => {
    const url = await admin().create();
    return { url, store: await openSpanner({ url, aheadMs }) };
  };
  return async () => {
    ready ??= prepare();
    const { url, store } = await ready;
    const opened: Store[] = [];
    return {
      store,
      another: async () => {
        const other = await openSpanner({ url, aheadMs });
        opened.push(other);
        return other;
      },
      elapse: async (ms) => {
        ahead += Math.ceil(ms);
      },
      close: async () => {
        await Promise.all(opened.map((other) => other.close()));
        await admin().empty(url);
      },
    };
  };
}
