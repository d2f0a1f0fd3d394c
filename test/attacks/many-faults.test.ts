import { describe, expect, it } from "vitest";
import { attackTarget, packed } from "./target.ts";

/** Small on the wire, large when unpacked, and wrong in every item: refused at the cost of a small body. */
describe("a body with millions of faults", () => {
  const target = attackTarget("sqlite");
  const zipped = { "content-encoding": "gzip", "content-type": "application/json" };
  const many = (item: string, count: number): string => Array.from({ length: count }, () => item).join(",");

  const bodies = [
    ["lists instead of names", "reader", "/v1/store/progress", `{"ids":[${many("[]", 2_000_000)}]}`],
    ["invalid renewals", "worker", "/v1/store/renew", `{"renewals":[${many("1", 2_000_000)}]}`],
    ["invalid records", "worker", "/v1/store/append", `{"batch":[${many("{}", 1_000_000)}]}`],
    [
      "many unknown fields",
      "starter",
      "/v1/runs",
      `{"workflow":"w",${Array.from({ length: 200_000 }, (_, k) => `"field-${k}":1`).join(",")}}`,
    ],
    [
      "endless labels",
      "starter",
      "/v1/runs",
      `{"workflow":"w","labels":{${Array.from({ length: 200_000 }, (_, k) => `"label-${k}":[]`).join(",")}}}`,
    ],
  ] as const;

  it.each(bodies)("%s", async (_what, role, path, text) => {
    const { call, token, measured, alive } = target();
    const body = packed(text);
    const { result, stall, growth, summary } = await measured(() =>
      call("POST", path, { token: token("acme", role), body, headers: zipped }),
    );
    expect([400, 413], result.text.slice(0, 200)).toContain(result.status);
    expect(result.text.length).toBeLessThan(2_000);
    expect(alive()).toBe(true);
    expect(stall, summary).toBeLessThan(15);
    expect(growth, summary).toBeLessThan(3);
  });
});
