import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { storeConformance } from "../../testkit/conformance/index.ts";
import { sqliteCaller } from "./sqlite-caller.ts";

const api = { describe, it, beforeEach, afterEach };

storeConformance("SQLite in memory", api, async () => {
  const clock = new ManualClock();
  const { within: _within, ...store } = await openStore("memory:", { clock }); // its file has no other connection
  return { store, another: async () => store, elapse: (ms) => clock.elapse(ms), close: () => store.close() };
});

storeConformance("SQLite on file, several connections", api, async () => {
  const clock = new ManualClock();
  const folder = await mkdtemp(join(tmpdir(), "tape-"));
  const opened: Store[] = [];
  const open = async () => {
    const store = await openSqlite({ file: join(folder, "tape.db"), clock });
    opened.push(store);
    return store;
  };
  const store = await open();
  const caller = sqliteCaller(join(folder, "tape.db"));
  return {
    store,
    another: open,
    elapse: (ms) => clock.elapse(ms),
    caller,
    close: async () => {
      caller.close();
      await Promise.all(opened.map((store) => store.close()));
      await rm(folder, { recursive: true, force: true });
    },
  };
});
