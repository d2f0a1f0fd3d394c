// The conformance suite of the published package, on the Node that runs this file: `node --test`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { openStore } from "durable-tape";
import { ManualClock, storeConformance } from "durable-tape/testing";

storeConformance("SQLite on this Node", { describe, it, beforeEach, afterEach }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "tape-node-"));
  const clock = new ManualClock();
  const opened = [];
  const open = async () => {
    // Transactions of a caller need a connection of the test's own: test/store/sqlite.test.ts has them.
    const { within: _within, ...store } = await openStore(`sqlite:${join(folder, "tape.db")}`, { clock });
    opened.push(store);
    return store;
  };
  return {
    store: await open(),
    another: open,
    elapse: (ms) => clock.elapse(ms),
    close: async () => {
      await Promise.all(opened.map((store) => store.close()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
});
