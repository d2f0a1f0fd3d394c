import { expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { mintToken } from "../../src/server/token-auth.ts";

it("no token id starts with a hyphen, which a command line would read as an option", () => {
  const random = seededRandom("hyphens");
  const ids = Array.from({ length: 1_000 }, () => mintToken(random).id);
  expect(ids.filter((id) => id.startsWith("-"))).toEqual([]);
  expect(new Set(ids).size).toBe(1_000);
});
