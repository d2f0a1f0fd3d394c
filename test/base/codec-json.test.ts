import { describe, expect, it } from "vitest";
import { decode, encode, fromJson, toJson } from "../../src/base/codec.ts";

const samples: readonly unknown[] = [
  null,
  undefined,
  0,
  "text",
  [1, "two", null],
  { plain: { deep: [true] } },
  { $codec: "a user's own key" },
  { at: new Date(5), big: 12n, bytes: new Uint8Array([1, 2]), map: new Map([["a", 1]]), set: new Set([1]) },
  { error: new TypeError("bad") },
];

describe("a value inside a larger JSON text", () => {
  it.each(samples.map((sample) => [sample]))("sample %# travels as the text would", (sample) => {
    const carried = JSON.parse(JSON.stringify({ inside: toJson(sample) })) as { inside: unknown };
    expect(JSON.stringify(carried.inside)).toBe(encode(sample));
    expect(fromJson(carried.inside)).toEqual(decode(encode(sample)));
  });

  it("plain values are handed on as they are", () => {
    const plain = { a: [1] };
    expect(toJson(plain)).toBe(plain);
  });
});
