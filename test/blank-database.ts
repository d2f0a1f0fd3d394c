import type { DatabaseSync } from "node:sqlite";
import { ReusedDatabase } from "../simulation/reused-database.ts";
import type { Clock } from "../src/base/clock.ts";
import { silentLog } from "../src/base/log.ts";
import type { Random } from "../src/base/random.ts";
import { openStore } from "../src/host/open-store.ts";
import type { Store } from "../src/store/contract/store.ts";
import { openDatabase } from "../src/store/sqlite/database.ts";
import { migrate } from "../src/store/sqlite/migrate.ts";

let image: Uint8Array | undefined;
const free: ReusedDatabase[] = [];
/** A test may have a thousand open at once; more than this are left to the garbage collector. */
const maxFree = 8;

function makeImage(): Uint8Array {
  const db = openDatabase(":memory:");
  migrate(db, silentLog);
  const bytes = db.serialize();
  db.close();
  return bytes;
}

/**
 * For the `open` of a store in memory: a migrated database that keeps its prepared statements for the next store, for
 * tests that open hundreds of them. All of them have the same store id and the same key for cursors.
 */
export function openBlank(): DatabaseSync {
  image ??= makeImage();
  const release = (used: ReusedDatabase): void => {
    if (free.length < maxFree) free.push(used);
  };
  return free.pop() ?? new ReusedDatabase(image, release);
}

/** For crash rounds, which open hundreds of stores: opening one and preparing its statements takes a third of a round. */
export const openBlankStore = (clock: Clock, random: Random): Promise<Store> =>
  openStore("memory:", { clock, random, open: openBlank });
