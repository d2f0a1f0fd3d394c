import { describe, expect, it } from "vitest";
import { groundOf, packed } from "./ground.ts";

/** Small on the wire, large when unpacked, and wrong in each of its items: refused for the price of a small one. */
describe("a body with millions of faults", () => {
  const deps = groundOf("sqlite");
  const zipped = { "content-encoding": "gzip", "content-type": "application/json" };
  const many = (item: string, count: number): string => Array.from({ length: count }, () => item).join(",");

  const bodies = [
    ["lists in place of names", "reader", "/v1/store/progress", `{"ids":[${many("[]", 2_000_000)}]}`],
    ["renewals that are none", "worker", "/v1/store/renew", `{"renewals":[${many("1", 2_000_000)}]}`],
    ["records that are none", "worker", "/v1/store/append", `{"batch":[${many("{}", 1_000_000)}]}`],
    [
      "a field that nobody knows, many times",
      "starter",
      "/v1/runs",
      `{"workflow":"w",${Array.from({ length: 200_000 }, (_one, k) => `"field-${k}":1`).join(",")}}`,
    ],
    [
      "labels without end",
      "starter",
      "/v1/runs",
      `{"workflow":"w","labels":{${Array.from({ length: 200_000 }, (_one, k) => `"label-${k}":[]`).join(",")}}}`,
    ],
  ] as const;

  it.each(bodies)("%s", async (_what, role, path, text) => {
    const { call, token, measured, alive } = deps();
    const body = packed(text);
    const { result, stall, growth, said } = await measured(() =>
      call("POST", path, { token: token("acme", role), body, headers: zipped }),
    );
    expect([400, 413], result.text.slice(0, 200)).toContain(result.status);
    expect(result.text.length).toBeLessThan(2_000);
    expect(alive()).toBe(true);
    expect(stall, said).toBeLessThan(15);
    expect(growth, said).toBeLessThan(3);
  });
});
