import { describe, expect, it } from "vitest";
import { plain } from "../../src/agent/plain.ts";
import { encode } from "../../src/base/codec.ts";

class Money {
  readonly #cents = 250;
  toJSON(): unknown {
    return { cents: this.#cents };
  }
}
const circle: { self?: unknown } = {};
circle.self = circle;

describe("a plain result", () => {
  const at = new Date(0);
  it.each([
    ["plain data", { a: [1, "b", null] }, { a: [1, "b", null] }],
    ["nothing", undefined, undefined],
    ["a date and a bigint, which the journal has types for", { at, n: 5n }, { at, n: 5n }],
    ["an object with toJSON", { price: new Money() }, { price: { cents: 250 } }],
    ["an object with a function", { ok: true, close: () => 1 }, { ok: true }],
    ["a function", () => 1, { done: true, note: "the result cannot be stored" }],
    ["a symbol", Symbol("x"), { done: true, note: "the result cannot be stored" }],
  ])("of %s can be stored", (_what, value, expected) => {
    expect(plain(value)).toEqual(expected);
    expect(() => encode(plain(value))).not.toThrow();
  });

  it("of anything can be stored, also of a proxy that throws", () => {
    const hostile = new Proxy({}, { get: () => raise(), ownKeys: () => raise(), getPrototypeOf: () => raise() });
    for (const value of [circle, hostile, new WeakMap(), { toJSON: () => raise() }, Promise.resolve(1)]) {
      expect(() => encode(plain(value))).not.toThrow();
    }
  });

  it("is bounded", () => {
    expect(plain("x".repeat(100), 64)).toEqual({
      done: true,
      note: "the result has 102 bytes, at most 64 are stored",
    });
    expect(plain({ run: () => 1, text: "x".repeat(100) }, 64)).toMatchObject({ done: true });
    expect(plain("x".repeat(62), 64)).toBe("x".repeat(62));
  });
});

function raise(): never {
  throw new Error("hostile");
}
