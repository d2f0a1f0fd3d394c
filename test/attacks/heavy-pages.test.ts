import { describe, expect, it, onTestFinished } from "vitest";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { tenant } from "../../src/testing/conformance/frame.ts";

/** Values as large as they may be: a page of them must not be read into memory first. */
const value = "x".repeat(2_000_000);
const count = 40;

describe("a list of values of two megabytes each", () => {
  it("takes no more memory than a page of them, and continues to its end", async () => {
    const store = await openSqlite({ file: ":memory:" });
    onTestFinished(() => store.close());
    for (let k = 0; k < count; k++) await store.intake.putValue(tenant, `big-${1_000 + k}`, value, "must_create");
    const used = (): number => process.memoryUsage().heapUsed + process.memoryUsage().external;
    const before = used();
    let page = await store.read.values(tenant, "");
    // Two copies of each row, as text and decoded: of all of them that would be twice what they are.
    expect((used() - before) / (count * value.length)).toBeLessThan(0.75);
    let seen = page.length;
    while (page.more === true) {
      page = await store.read.values(tenant, "", undefined, page.at(-1)!.key);
      seen += page.length;
    }
    expect(seen).toBe(count);
  });
});
