import { expect, it } from "vitest";
import { contract } from "../../src/protocol/contract.ts";
import { extraCalls } from "../../src/server/cost.ts";

it("costs one more for each fifty rows or items of a call", () => {
  const create = contract["store.create"];
  const specs = (count: number) => Array.from({ length: count }, () => ({}));
  expect(extraCalls(create, { body: { calls: [{ specs: specs(1) }] } }, 1_000)).toBe(0);
  expect(extraCalls(create, { body: { calls: [{ specs: specs(10_000) }] } }, 1_000)).toBe(200);
  expect(extraCalls(create, { body: { calls: Array.from({ length: 100 }, () => ({ specs: specs(9) })) } }, 1_000)).toBe(
    20,
  );
  expect(extraCalls(contract["store.progress"], { body: { ids: Array.from({ length: 500 }, () => "r") } }, 1_000)).toBe(
    10,
  );
  expect(extraCalls(contract["runs.startAll"], { body: { runs: specs(400) } }, 1_000)).toBe(8);
  expect(extraCalls(contract["queues.keys"], { query: { limit: 500 } }, 1_000)).toBe(10);
  expect(extraCalls(contract["runs.list"], { query: { limit: 200 } }, 1_000)).toBe(4);
  expect(extraCalls(contract["runs.list"], { query: {} }, 1_000)).toBe(20);
});
