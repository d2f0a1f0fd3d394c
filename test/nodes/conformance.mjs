// The conformance suite of the published package, on the Node that runs this file: `node --test`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { openStore } from "durable-tape";
import { storeConformance } from "durable-tape/testing";

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

storeConformance("SQLite on this Node", { describe, it, beforeEach, afterEach }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "tape-node-"));
  const url = `sqlite:${join(folder, "tape.db")}`;
  const store = await openStore(url);
  return {
    store,
    another: () => openStore(url),
    elapse: wait,
    close: async () => {
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
});
