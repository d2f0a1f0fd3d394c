import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { tenant } from "../../testkit/conformance/frame.ts";
import { attackTarget, backends } from "./target.ts";

/** Values of almost the maximum size: a whole list of them must not be read into memory. */
const value = "x".repeat(2_000_000);
const count = 40;

describe("a list of values of two megabytes each", () => {
  it("needs no more memory than one page, and continues to the end", async () => {
    const store = await openSqlite({ file: ":memory:" });
    onTestFinished(() => store.close());
    for (let k = 0; k < count; k++) await store.intake.putValue(tenant, `big-${1_000 + k}`, value, "must_create");
    const used = (): number => process.memoryUsage().heapUsed + process.memoryUsage().external;
    const before = used();
    let page = await store.read.values(tenant, "");
    // Each row exists twice, as text and decoded. For all rows that would be twice their size.
    expect((used() - before) / (count * value.length)).toBeLessThan(0.75);
    let seen = page.length;
    while (page.more === true) {
      page = await store.read.values(tenant, "", undefined, page.at(-1)!.key);
      seen += page.length;
    }
    expect(seen).toBe(count);
  });
});

describe.each(backends)("the same through a server on %s", (backend) => {
  const target = attackTarget(backend);
  const count = 10;
  const fits = 8 * 2 ** 20 + 2 * value.length;
  beforeAll(async () => {
    const { intake } = target().store;
    for (let k = 0; k < count; k++) await intake.putValue("acme", `big-${1_000 + k}`, value, "must_create");
  });

  it("three concurrent readers get a page each, and the server's memory stays bounded", async () => {
    const { call, token, measured } = target();
    const read = (above: string) => call("GET", `/v1/values?above=${above}`, { token: token("acme", "reader") });
    const { result, growth, summary } = await measured(() => Promise.all([read(""), read(""), read("")]));
    for (const { status, text } of result) {
      expect(status).toBe(200);
      expect(text.length).toBeLessThan(fits);
    }
    expect(growth, summary).toBeLessThan(3);
    const seen = new Set<string>();
    for (let above: string | undefined = ""; above !== undefined; ) {
      const { values, more } = (await read(above)).json as { values: { key: string }[]; more?: boolean };
      for (const { key } of values) seen.add(key);
      above = more === true ? values.at(-1)!.key : undefined;
    }
    expect(seen.size).toBe(count);
  });
});
