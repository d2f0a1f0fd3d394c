import { describe, expect, it } from "vitest";
import { admits, fenceFromWire, fenceToWire, makeFence, sameFence } from "../../src/model/fence.ts";

const maxBigint = 2n ** 63n - 1n;

describe("the fence", () => {
  it.each([
    ["a", 1, 0n, 0n],
    ["a.b c/ü%", 2, 1n, 5n],
    ["\u001f\n🦊", Number.MAX_SAFE_INTEGER, 2n ** 53n + 1n, 2n ** 53n + 3n],
    ["default", 7, maxBigint, maxBigint],
  ])("survives the round trip through text: %j %s %s %s", (tenant, journal, token, nonce) => {
    const fence = makeFence(tenant, journal, token, nonce);
    const back = fenceFromWire(fenceToWire(fence));
    expect(back).toEqual(fence);
    expect(sameFence(fence, back!)).toBe(true);
  });

  it.each([
    "",
    "1.2.a",
    "1.2.3",
    "1.2.3.",
    "-1.2.3.a",
    "1.-2.3.a",
    "1.2.x.a",
    "1.2.3.a b",
    "1.2.3.%zz",
    "1.2.3.%ff",
    "1.2.3.a ",
    " 1.2.3.a",
    "1,2,3,a",
    "1e3.2.3.a",
    "0x1.2.3.a",
    `${2 ** 53}.2.3.a`,
    `1.${2n ** 63n}.3.a`,
    `1.2.${2n ** 63n}.a`,
    `1.${"9".repeat(40)}.3.a`,
    "1.2.3.a\n",
  ])("is not parsed from %j", (text) => expect(fenceFromWire(text)).toBeUndefined());

  it("is frozen", () => {
    const fence = makeFence("a", 1, 2n, 3n);
    expect(() => Object.assign(fence, { token: 9n })).toThrow(TypeError);
  });

  it("admits only the row's tenant, token and nonce", () => {
    const fence = makeFence("a", 1, 2n, 3n);
    const row = { tenant: "a", token: 2n, nonce: 3n, doomed: false };
    expect(admits(row, fence)).toBe(true);
    expect(admits({ ...row, token: 1n }, fence)).toBe(false);
    expect(admits({ ...row, token: 3n }, fence)).toBe(false);
    expect(admits({ ...row, nonce: 4n }, fence)).toBe(false);
    expect(admits({ ...row, nonce: null }, fence)).toBe(false);
    expect(admits({ ...row, doomed: true }, fence)).toBe(false);
    expect(admits({ ...row, tenant: "b" }, fence)).toBe(false);
    expect(admits(undefined, fence)).toBe(false);
  });

  it("compares tenant, journal, token and nonce", () => {
    const fence = makeFence("a", 1, 2n, 3n);
    for (const other of [
      makeFence("a", 2, 2n, 3n),
      makeFence("a", 1, 3n, 3n),
      makeFence("a", 1, 2n, 4n),
      makeFence("b", 1, 2n, 3n),
    ]) {
      expect(sameFence(fence, other)).toBe(false);
    }
  });
});
