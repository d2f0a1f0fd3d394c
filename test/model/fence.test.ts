import { describe, expect, it } from "vitest";
import { admits, fenceFromWire, fenceToWire, makeFence, sameFence } from "../../src/model/fence.ts";

const most = 2n ** 63n - 1n;

describe("the fence", () => {
  it.each([
    [1, 0n, 0n],
    [2, 1n, 5n],
    [Number.MAX_SAFE_INTEGER, 2n ** 53n + 1n, 2n ** 53n + 3n],
    [7, most, most],
  ])("travels as text without loss: %s %s %s", (journal, token, nonce) => {
    const fence = makeFence(journal, token, nonce);
    const back = fenceFromWire(fenceToWire(fence));
    expect(back).toEqual(fence);
    expect(sameFence(fence, back!)).toBe(true);
  });

  it.each([
    "",
    "1.2",
    "1.2.3.4",
    "-1.2.3",
    "1.-2.3",
    "1.2.x",
    "1.2.3 ",
    " 1.2.3",
    "1,2,3",
    "1e3.2.3",
    "0x1.2.3",
    "1.2.",
    `${2 ** 53}.2.3`,
    `1.${2n ** 63n}.3`,
    `1.2.${2n ** 63n}`,
    `1.${"9".repeat(40)}.3`,
    "1.2.3\n",
  ])("is not made from %j", (text) => expect(fenceFromWire(text)).toBeUndefined());

  it("cannot be changed once it is granted", () => {
    const fence = makeFence(1, 2n, 3n);
    expect(() => Object.assign(fence, { token: 9n })).toThrow(TypeError);
  });

  it("admits the row's own token and nonce, and nothing else", () => {
    const fence = makeFence(1, 2n, 3n);
    expect(admits({ token: 2n, nonce: 3n, doomed: false }, fence)).toBe(true);
    expect(admits({ token: 1n, nonce: 3n, doomed: false }, fence)).toBe(false);
    expect(admits({ token: 3n, nonce: 3n, doomed: false }, fence)).toBe(false);
    expect(admits({ token: 2n, nonce: 4n, doomed: false }, fence)).toBe(false);
    expect(admits({ token: 2n, nonce: null, doomed: false }, fence)).toBe(false);
    expect(admits({ token: 2n, nonce: 3n, doomed: true }, fence)).toBe(false);
    expect(admits(undefined, fence)).toBe(false);
  });

  it("two are the same only in all three", () => {
    const fence = makeFence(1, 2n, 3n);
    for (const other of [makeFence(2, 2n, 3n), makeFence(1, 3n, 3n), makeFence(1, 2n, 4n)]) {
      expect(sameFence(fence, other)).toBe(false);
    }
  });
});
