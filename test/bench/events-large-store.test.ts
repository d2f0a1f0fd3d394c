import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { census, feedPages } from "../../bench/events/large-store.ts";
import { fill } from "../../bench/growth-fill.ts";
import { openStore } from "../../src/host/open-store.ts";

it("the benchmark of feed pages and scrapes runs in its smallest size", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tape-large-store-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const stores = { empty: `sqlite:${join(folder, "empty.db")}`, full: `sqlite:${join(folder, "full.db")}` };
  await (await openStore(stores.empty)).close();
  await fill(stores.full, 4_000);
  // 12 000 records of another tenant: three pages of 5 000 to the end.
  expect(await feedPages(stores)).toMatchObject({ feedPageRatio: expect.any(Number), pagesToEnd: 3 });
  expect(await census(stores)).toMatchObject({ censusMs: expect.any(Number), censusesIn15s: 1 });
});
