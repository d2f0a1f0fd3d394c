import { afterAll, beforeAll, describe, expect, inject, it, vi } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { systemRandom } from "../../../src/base/random.ts";
import type { Store } from "../../../src/store/contract/store.ts";
import { Connections } from "../../../src/store/postgres/connections.ts";
import { JournalAllocator } from "../../../src/store/postgres/journal-numbers.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { OutageRetry } from "../../../src/store/postgres/outage-retry.ts";
import { parsePostgresUrl } from "../../../src/store/postgres/url.ts";
import { dropDatabase, freshDatabase } from "../../postgres/database.ts";

describe("journal numbers on PostgreSQL", () => {
  let url: string;
  let store: Store;
  beforeAll(async () => {
    url = await freshDatabase(inject("postgres18"));
    store = await openPostgres({ url });
  });
  afterAll(async () => {
    await store.close();
    await dropDatabase(url);
  });

  const many = (what: string, count: number) =>
    Array.from({ length: count }, (_, k) => ({ id: `${what}-${k}`, workflow: "w", input: 1 }));

  it("a transaction that needs more numbers than are reserved for it still succeeds", async () => {
    const verdicts = await store.once({ tenant: "acme", key: "k", hash: "h" }).createRuns("acme", many("one", 1_010));
    expect(verdicts.filter(({ ok }) => !ok)).toEqual([]);
    expect(new Set(verdicts.map((verdict) => verdict.ok && verdict.journal)).size).toBe(1_010);
  }, 120_000);

  it("concurrent transactions never get the same number, and return unused ones", async () => {
    const calls = Array.from({ length: 8 }, (_, k) =>
      store.once({ tenant: "acme", key: `many-${k}`, hash: "h" }).createRuns("acme", many(`many-${k}`, 3)),
    );
    const journals = (await Promise.all(calls)).flat().map((verdict) => (verdict.ok ? verdict.journal : 0));
    expect(new Set(journals).size).toBe(24);
    expect(Math.max(...journals) - Math.min(...journals)).toBeLessThan(20_000);
  });

  it("any number of starts without numbers wait for at most two blocks", async () => {
    const connections = new Connections(parsePostgresUrl(url));
    const asks = vi.spyOn(connections, "ask");
    const patience = new OutageRetry({ clock: systemClock, random: systemRandom, boundMs: 5_000 });
    const journals = new JournalAllocator(connections, patience, async () => {});
    const numbers = await Promise.all(Array.from({ length: 20_000 }, () => journals.one()));
    expect(new Set(numbers).size).toBe(20_000);
    expect(asks.mock.calls.length).toBeLessThan(5); // of 2,000 each: ten
    await connections.close();
  });
});
