import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { tenant } from "../../testkit/conformance/frame.ts";
import { backends, groundOf } from "./ground.ts";

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

describe.each(backends)("the same through a server on %s", (backend) => {
  const deps = groundOf(backend);
  const count = 10;
  const fits = 8 * 2 ** 20 + 2 * value.length;
  beforeAll(async () => {
    const { intake } = deps().store;
    for (let k = 0; k < count; k++) await intake.putValue("acme", `big-${1_000 + k}`, value, "must_create");
  });

  it("three readers at a time get a page each, and the server keeps its size", async () => {
    const { call, token, measured } = deps();
    const read = (above: string) => call("GET", `/v1/values?above=${above}`, { token: token("acme", "reader") });
    const { result, growth, said } = await measured(() => Promise.all([read(""), read(""), read("")]));
    for (const { status, text } of result) {
      expect(status).toBe(200);
      expect(text.length).toBeLessThan(fits);
    }
    expect(growth, said).toBeLessThan(3);
    const seen = new Set<string>();
    for (let above: string | undefined = ""; above !== undefined; ) {
      const { values, more } = (await read(above)).json as { values: { key: string }[]; more?: boolean };
      for (const { key } of values) seen.add(key);
      above = more === true ? values.at(-1)!.key : undefined;
    }
    expect(seen.size).toBe(count);
  });
});
