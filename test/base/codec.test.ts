import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CodecError, codecId, decode, encode, sizeOf, throughCodec } from "../../src/base/codec.ts";

function roundTrip(value: unknown): unknown {
  return decode(encode(value));
}

const lone = "\ud800";
// Any UTF-16 code units, so NUL and lone surrogates too.
const rawText = fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units));
const text = fc.oneof(fc.string({ unit: "grapheme" }), rawText);
const key = fc.oneof(
  text,
  fc.constantFrom(
    "__proto__",
    "constructor",
    "prototype",
    "toJSON",
    "$codec",
    "data",
    "types",
    "",
    "/",
    "~",
    "~1",
    "0",
  ),
);

const { value: anyValue } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.oneof(text, fc.boolean(), fc.constant(null), fc.constant(undefined)),
    fc.oneof(fc.double(), fc.integer(), fc.constantFrom(-0, Number.NaN, Number.POSITIVE_INFINITY)),
    fc.oneof(
      fc.bigInt(),
      fc.date({ noInvalidDate: false }),
      fc.uint8Array(),
      fc.webUrl().map((url) => new URL(url)),
    ),
    fc.constantFrom(/a\/b[/]/giu, /(?:)/, /\0/, new RegExp(lone), /\n/),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(fc.tuple(key, tie("value")), { maxLength: 4 }).map((entries) => Object.fromEntries(entries)),
    fc.array(fc.tuple(tie("value"), tie("value")), { maxLength: 3 }).map((entries) => new Map(entries)),
    fc.array(tie("value"), { maxLength: 3 }).map((items) => new Set(items)),
    fc
      .tuple(fc.constantFrom(Error, TypeError, RangeError), text, tie("value"), tie("value"))
      .map(([Kind, message, cause, detail]) => Object.assign(new Kind(message, { cause }), { code: "E_X", detail })),
  ),
}));

describe("any value", () => {
  test("comes back equal, from text that every store can hold", () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const stored = encode(value);
        JSON.parse(stored);
        expect(stored.isWellFormed()).toBe(true);
        expect(stored.includes("\0")).toBe(false);
        expect(Buffer.from(stored, "utf8").toString("utf8")).toBe(stored);
        const back = decode(stored);
        expect(isDeepStrictEqual(back, value)).toBe(true);
        expect(encode(back)).toBe(stored);
      }),
      { numRuns: 1500 },
    );
    expect("detail" in {}).toBe(false);
  });

  test("of JSON alone is stored as that JSON", () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        const json = JSON.stringify(value);
        fc.pre(!json.includes("-0") && !json.includes("$codec") && isDeepStrictEqual(JSON.parse(json), value));
        expect(encode(value)).toBe(json);
      }),
    );
  });

  test("arbitrary text is decoded or refused with a CodecError", () => {
    const type = fc.constantFrom(
      "date",
      "bigint",
      "bytes",
      "error",
      "map",
      "set",
      "undefined",
      "number",
      "regexp",
      "url",
    );
    const path = fc
      .array(fc.oneof(key, fc.nat(3).map(String)), { maxLength: 3 })
      .map((keys) => keys.map((k) => `/${k}`).join(""));
    const hostile = fc.record({ $codec: fc.constant(1), data: fc.jsonValue(), types: fc.dictionary(path, type) });
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          hostile.map((envelope) => JSON.stringify(envelope)),
        ),
        (stored) => {
          try {
            decode(stored);
          } catch (error) {
            expect(error).toBeInstanceOf(CodecError);
          }
        },
      ),
      { numRuns: 1000 },
    );
  });
});

describe("the text", () => {
  test("is readable", () => {
    expect(encode({ to: "ada", tries: 2 })).toBe('{"to":"ada","tries":2}');
    expect(encode({ at: new Date(0), n: [1n], "a/b~c": new Uint8Array([1, 2, 3]) })).toBe(
      `{"$codec":${codecId},"data":{"at":"1970-01-01T00:00:00.000Z","n":["1"],"a/b~c":"AQID"},` +
        '"types":{"/at":"date","/n/0":"bigint","/a~1b~0c":"bytes"}}',
    );
    expect(encode(undefined)).toBe('{"$codec":1,"data":null,"types":{"":"undefined"}}');
  });

  test("escapes NUL and lone surrogates", () => {
    expect(encode(["\0", lone, "😀"])).toBe('["\\u0000","\\ud800","😀"]');
    expect(roundTrip({ [`\0${lone}`]: 1n })).toEqual({ [`\0${lone}`]: 1n });
  });

  test("of a value that looks like an envelope is wrapped", () => {
    for (const value of [{ $codec: 1, data: 1 }, { $codec: 99 }, { $codec: new Date(0) }]) {
      expect(encode(value)).toMatch(/^\{"\$codec":1,"data":\{"\$codec":/);
      expect(roundTrip(value)).toEqual(value);
    }
    expect(encode([{ $codec: 1 }])).toBe('[{"$codec":1}]');
  });

  test("is measured in UTF-8 bytes", () => {
    expect(sizeOf('"aé😀"')).toBe(2 + 1 + 2 + 4);
  });
});

describe("what is kept", () => {
  test("integers beyond 2^53", () => {
    expect(roundTrip(2n ** 53n + 1n)).toBe(9007199254740993n);
    expect(roundTrip({ token: -(2n ** 63n) })).toEqual({ token: -(2n ** 63n) });
  });

  test("undefined, holes as undefined, null prototypes as objects, fields of a class without methods", () => {
    expect(roundTrip({ a: undefined, b: [undefined, 1] })).toStrictEqual({ a: undefined, b: [undefined, 1] });
    // biome-ignore lint/suspicious/noSparseArray: the case under test
    expect(roundTrip([, 1])).toStrictEqual([undefined, 1]);
    expect(roundTrip(Object.assign(Object.create(null), { a: 1n }))).toStrictEqual({ a: 1n });
    class Point {
      x = 1;
      y = -0;
    }
    expect(roundTrip(new Point())).toStrictEqual({ x: 1, y: -0 });
  });

  test("a Buffer as plain bytes with a memory of their own", () => {
    const bytes = roundTrip(Buffer.from("hello")) as Uint8Array;
    expect(Object.getPrototypeOf(bytes)).toBe(Uint8Array.prototype);
    expect(bytes.buffer.byteLength).toBe(5);
  });

  test("errors: class name, code, cause and extras, no stack", () => {
    class RefusedError extends Error {
      retryable = false;
    }
    const cause = Object.assign(new TypeError("bad"), { code: "ERR_BAD" });
    const stored = encode(new RefusedError("no", { cause }));
    expect(stored).not.toContain("codec.test");
    const back = decode(stored) as RefusedError;
    expect(back).toBeInstanceOf(Error);
    expect([back.name, back.message, back.retryable]).toEqual(["RefusedError", "no", false]);
    expect(Object.keys(back)).toEqual(["retryable"]);
    expect(back.stack).toBe("RefusedError: no");
    expect(back.cause).toBeInstanceOf(TypeError);
    expect(back.cause).toMatchObject({ message: "bad", code: "ERR_BAD" });
  });

  test("errors: aggregates and aborts", () => {
    const aggregate = roundTrip(new AggregateError([new RangeError("a"), 1n], "all")) as AggregateError;
    expect(aggregate).toBeInstanceOf(AggregateError);
    expect(aggregate.errors).toEqual([new RangeError("a"), 1n]);
    expect(roundTrip(AbortSignal.abort().reason)).toMatchObject({ name: "AbortError", code: 20 });
  });

  test("errors: extras that cannot be stored are left out, the failure is not", () => {
    const error = Object.assign(new Error("down"), {
      request: { id: 1n, socket: { end() {} } },
      status: 503,
    });
    error.cause = error;
    expect(encode(error)).toBe(
      '{"$codec":1,"data":{"name":"Error","message":"down","status":503},"types":{"":"error"}}',
    );
    let chain = new Error("root");
    for (let i = 0; i < 300; i++) chain = new Error(String(i), { cause: chain });
    expect(roundTrip(chain)).toMatchObject({ message: "299", cause: { message: "298" } });
  });
});

test("a payload of 1 MiB takes milliseconds", () => {
  const rows = Array.from({ length: 8000 }, (_, i) => ({
    id: i,
    name: `row ${i}`,
    tags: ["a", "b"],
    note: "x".repeat(80),
  }));
  for (const value of [rows, { rows, at: new Date(0) }, "x".repeat(1 << 20), new Uint8Array(1 << 20)]) {
    const started = performance.now();
    const stored = encode(value);
    decode(stored);
    expect(sizeOf(stored)).toBeGreaterThan(1_000_000);
    // Some twenty times what it takes, for a machine that does other things too.
    expect(performance.now() - started).toBeLessThan(1000);
  }
});

describe("throughCodec is decode after encode", () => {
  test("for any value, and shares nothing with it", () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const through = throughCodec(value);
        expect(isDeepStrictEqual(through, roundTrip(value))).toBe(true);
        expect(typeof value === "object" && value !== null && through === value).toBe(false);
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([
    ["without a prototype", Object.assign(Object.create(null), { a: 1 })],
    ["with holes", Object.assign([1], { 2: 3 })],
    ["with a key named __proto__", JSON.parse('{"__proto__":{"a":1},"b":2}')],
    ["that looks like an envelope", { $codec: 1, data: 2 }],
    ["with -0 inside", { a: [-0] }],
    ["with undefined inside", { a: undefined }],
  ])("for a value %s", (_name, value) => {
    const [through, there] = [throughCodec(value), roundTrip(value)];
    expect(isDeepStrictEqual(through, there)).toBe(true);
    expect(Object.getPrototypeOf(through)).toBe(Object.getPrototypeOf(there));
  });

  test("refuses what encode refuses", () => {
    const loop: { self?: unknown } = {};
    loop.self = loop;
    for (const value of [loop, () => 1, { at: Symbol("s") }]) {
      expect(() => throughCodec(value)).toThrow(CodecError);
    }
  });
});
