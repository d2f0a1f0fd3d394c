import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalize, fingerprint } from "../../src/base/canonical.ts";
import { CodecError } from "../../src/base/codec.ts";

describe("canonical JSON (RFC 8785)", () => {
  // Appendix B: the bits of an IEEE 754 double and its form.
  test.each([
    ["0000000000000000", "0"],
    ["8000000000000000", "0"],
    ["0000000000000001", "5e-324"],
    ["8000000000000001", "-5e-324"],
    ["7fefffffffffffff", "1.7976931348623157e+308"],
    ["ffefffffffffffff", "-1.7976931348623157e+308"],
    ["4340000000000000", "9007199254740992"],
    ["c340000000000000", "-9007199254740992"],
    ["4430000000000000", "295147905179352830000"],
    ["44b52d02c7e14af5", "9.999999999999997e+22"],
    ["44b52d02c7e14af6", "1e+23"],
    ["44b52d02c7e14af7", "1.0000000000000001e+23"],
    ["444b1ae4d6e2ef4e", "999999999999999700000"],
    ["444b1ae4d6e2ef4f", "999999999999999900000"],
    ["444b1ae4d6e2ef50", "1e+21"],
    ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
    ["3eb0c6f7a0b5ed8d", "0.000001"],
    ["41b3de4355555553", "333333333.3333332"],
    ["41b3de4355555554", "333333333.33333325"],
    ["41b3de4355555555", "333333333.3333333"],
    ["41b3de4355555556", "333333333.3333334"],
    ["41b3de4355555557", "333333333.33333343"],
    ["becbf647612f3696", "-0.0000033333333333333333"],
    ["43143ff3c1cb0959", "1424953923781206.2"],
  ])("number %s", (bits, form) => {
    expect(canonicalize(Buffer.from(bits, "hex").readDoubleBE())).toBe(form);
  });

  test.each(["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])("no number %s", (bits) => {
    expect(() => canonicalize([Buffer.from(bits, "hex").readDoubleBE()])).toThrow(CodecError);
  });

  test("keys are sorted by UTF-16 code units (section 3.2.3)", () => {
    const object = {
      "\u20ac": "Euro Sign",
      "\r": "Carriage Return",
      "\ufb33": "Hebrew Letter Dalet With Dagesh",
      "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face",
      "\u0080": "Control",
      "\u00f6": "Latin Small Letter O With Diaeresis",
    };
    expect(canonicalize(object)).toBe(
      '{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis",' +
        '"€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    );
  });

  test("literals, escapes and nesting (section 3.2.2)", () => {
    const input = `{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/",
      "literals": [null, true, false]
    }`;
    expect(canonicalize(JSON.parse(input))).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
  });

  test("what is not JSON is refused", () => {
    for (const value of [
      undefined,
      [undefined],
      new Array(1),
      { a: 1n },
      () => 1,
      new Date(0),
      new Map(),
      "\ud800",
      { "\udc00": 1 },
    ]) {
      expect(() => canonicalize(value)).toThrow(CodecError);
    }
    const loop: unknown[] = [];
    loop.push(loop);
    expect(() => canonicalize(loop)).toThrow(CodecError);
  });

  test("is a fixed point and means the same", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const form = canonicalize(value);
        expect(canonicalize(JSON.parse(form))).toBe(form);
        expect(JSON.parse(form)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});

describe("fingerprint", () => {
  test("is the SHA-256 of the canonical text", () => {
    // printf '{"a":1,"b":[]}' | sha256sum
    expect(fingerprint({ b: [], a: 1 })).toBe("f87e4099e9be5e75094e0a4f46d3dc18a9c37429314a5a2490fb78d31e7e170c");
  });

  test("does not depend on the order of keys", () => {
    const at = new Date(0);
    expect(fingerprint({ a: { x: at, y: 1n }, b: 1 })).toBe(fingerprint({ b: 1, a: { y: 1n, x: at } }));
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true }), (object) => {
        const reversed = Object.fromEntries(Object.entries(object).reverse());
        expect(fingerprint(reversed)).toBe(fingerprint(object));
      }),
    );
  });

  test("tells values apart that look alike as text", () => {
    const values = [
      new Date(0),
      "1970-01-01T00:00:00.000Z",
      1,
      1n,
      "1",
      null,
      undefined,
      "null",
      0,
      -0,
      Number.NaN,
      "NaN",
      {},
      { a: undefined },
      { a: null },
      [],
      new Set(),
      new Map(),
      new Set([1, 2]),
      new Set([2, 1]),
      [1, 2],
      new Uint8Array([1, 2, 3]),
      "AQID",
      "\ud800",
      "\ud801",
      "\\ud800",
      { $codec: 1, data: null, types: { "": "undefined" } },
      new Error("x"),
      new TypeError("x"),
      { name: "Error", message: "x" },
    ];
    expect(new Set(values.map(fingerprint)).size).toBe(values.length);
  });
});
