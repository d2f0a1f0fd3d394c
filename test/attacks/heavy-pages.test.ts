import { describe, expect, it, onTestFinished } from "vitest";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { tenant } from "../../src/testing/conformance/frame.ts";

/** Values as large as they may be: a page of them must not be read into memory first. */
const value = "x".repeat(4_000_000);
const count = 40;

describe("a list of values of four megabytes each", () => {
  it("takes no more memory than some of them, and continues to its end", async () => {
    const store = await openSqlite({ file: ":memory:" });
    onTestFinished(() => store.close());
    for (let k = 0; k < count; k++) await store.intake.putValue(tenant, `big-${1_000 + k}`, value, "must_create");
    const before = process.memoryUsage().heapUsed + process.memoryUsage().external;
    let worst = 0;
    let seen = 0;
    for (let above: string | undefined; ; ) {
      const page = await store.read.values(tenant, "", undefined, above);
      worst = Math.max(worst, process.memoryUsage().heapUsed + process.memoryUsage().external - before);
      seen += page.length;
      above = page.at(-1)?.key;
      if (page.more !== true) break;
    }
    expect(seen).toBe(count);
    // Two copies of a page's rows (as text and decoded) and what is not yet collected: a fraction of all of them.
    expect(worst / (count * value.length)).toBeLessThan(0.75);
  });
});
