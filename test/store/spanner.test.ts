import { describe, expect, it } from "vitest";
import { openStore } from "../../src/host/open-store.ts";
import { JournalNumbers, NumbersExhausted } from "../../src/store/spanner/journal-numbers.ts";
import { journalOf, storedOf } from "../../src/store/spanner/numbers.ts";
import { Statements } from "../../src/store/spanner/statements.ts";
import { parseSpannerUrl } from "../../src/store/spanner/url.ts";

describe("Spanner without its emulator", () => {
  it("opening a store without the client names the package and the command", async () => {
    await expect(openStore("spanner://project/instance/database")).rejects.toMatchObject({
      code: "TAPE_PEER_MISSING",
      message: expect.stringContaining("npm install @google-cloud/spanner@9"),
    });
  });

  it.each([
    ["spanner:database", "path"],
    ["spanner://project/instance", "path"],
    ["spanner://project/instance/database/table", "path"],
    ["spanner://project/instance/Database", "path"],
    ["spanner://project/instance/database?session=3", "session"],
    ["spanner://project/instance/database?sessions=1", "sessions"],
    ["spanner://project/instance/database?sessions=many", "sessions"],
    ["spanner://project/instance/database?watch_ms=0", "watch_ms"],
  ])("%s is refused before the client is loaded", async (url, key) => {
    await expect(openStore(url)).rejects.toMatchObject({ code: "TAPE_BAD_STORE_URL", details: { key } });
  });

  it("a URL names the database, and its parameters have defaults", () => {
    expect(parseSpannerUrl("spanner://example.com:shop/eu-1/tape_db?sessions=4")).toEqual({
      ...{ project: "example.com:shop", instance: "eu-1", database: "tape_db" },
      ...{ sessions: 4, waitMs: 30_000, watchMs: 250 },
    });
  });

  it("a stored number is the journal's with its bits reversed, and its inbox the negative", () => {
    expect([0, 1, 2, 3].map(storedOf)).toEqual([0n, 2n ** 62n, 2n ** 61n, 2n ** 62n + 2n ** 61n]);
    for (const journal of [1, 2, 5, 1_000_003, 2 ** 44 + 7, Number.MAX_SAFE_INTEGER]) {
      expect(Number(journalOf(storedOf(journal)))).toBe(journal);
      expect(storedOf(-journal)).toBe(-storedOf(journal));
    }
    expect(storedOf(2n ** 63n - 1n)).toBe(2n ** 63n - 1n);
  });

  it("journals that are created one after the other are far apart", () => {
    const shards = Array.from({ length: 16 }, (_, k) => storedOf(1_000 + k) >> 60n);
    expect(new Set(shards).size).toBe(8);
  });

  it("a parameter has the type of its value, and a null the type of its column", () => {
    const params = { tenant: "acme", journal: 1, token: 3n, nonce: null, after: 1 };
    expect(new Statements().bind({ sql: "fence", params })).toMatchObject({
      params: { tenant: "acme", journal: String(2n ** 62n), token: "3", nonce: null, after: "1" },
      types: { tenant: "string", journal: "int64", token: "int64", nonce: "int64", after: "int64" },
    });
    expect(new Statements().bind({ sql: "prune.timers", params: { runs: "[1,2]" } }).params.runs).toEqual([
      String(2n ** 62n),
      String(2n ** 61n),
    ]);
  });

  it("no statement contains a macro that is not defined", () => {
    const texts = [...Statements.all.values()].map(({ text }) => text);
    expect(texts.length).toBeGreaterThan(300);
    expect(texts.filter((text) => /(?<!')\$[a-z]/.test(text))).toEqual([]);
  });

  it("numbers that a transaction leaves are used by the next one, and a repeat uses its own again", async () => {
    let last = 2;
    const numbers = new JournalNumbers(async (size) => {
      last += size;
      return last - size;
    });
    const first = await numbers.reserve(2);
    expect([first.next(), first.next()]).toEqual([2, 3]);
    expect(() => first.next()).toThrow(NumbersExhausted);
    first.restart();
    expect(first.next()).toBe(2);
    numbers.release(first);
    expect((await numbers.reserve(1)).next()).toBe(3);
  });
});
