import { describe, expect, test } from "vitest";
import { CodecError, decode, encode, maxDepth, throughCodec, toJson } from "../../src/base/codec.ts";

function refusal(run: () => unknown): CodecError {
  try {
    run();
  } catch (error) {
    if (error instanceof CodecError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("what is refused, with its path", () => {
  class Account {
    balance = 1;
    pay() {}
  }
  test.each<[string, unknown, string, string]>([
    ["a function", { a: [() => 1] }, "/a/0", "store the data"],
    ["a method", { toJSON() {} }, "/toJSON", "store the data"],
    ["a symbol", [Symbol("x")], "/0", "use a string"],
    ["a symbol key", { a: { [Symbol("x")]: 1 } }, "/a", "use a string"],
    ["an instance", { "a/b": new Account() }, "/a~1b", "instance of Account"],
    ["a subclass of Map", new (class Registry extends Map {})(), "", "instance of Registry"],
    ["a subclass of Array", [new (class List extends Array {})()], "/0", "instance of List"],
    ["a promise", { p: Promise.resolve() }, "/p", "await it"],
    ["other typed arrays", new Float64Array(1), "", "Uint8Array"],
    ["boxed primitives", [Object(1n)], "/0", "instance of BigInt"],
    ["inside a Map", new Map([["k", () => 1]]), "/0/1", "store the data"],
  ])("%s", (_, value, path, message) => {
    expect(refusal(() => encode(value))).toMatchObject({ code: "not_encodable", path });
    expect(refusal(() => encode(value)).message).toContain(message);
  });

  const hostile = (): never => {
    throw new Error("not readable");
  };
  const unshowable = { toString: hostile, [Symbol.toPrimitive]: hostile };
  const throwing = (thrown: unknown) => ({
    get a(): never {
      throw thrown;
    },
  });
  test.each<[string, unknown, string]>([
    ["a getter that throws", throwing(new Error("no")), "it throws when it is read: no"],
    ["a getter that throws what cannot be shown", [throwing(unshowable)], "cannot be shown"],
    ["a getter that throws nothing", { at: new Date(0), b: throwing(undefined) }, "undefined"],
    ["a proxy without keys", new Proxy({}, { ownKeys: hostile }), "not readable"],
    ["a proxy without a prototype", { a: new Proxy({}, { getPrototypeOf: hostile }) }, "not readable"],
    ["a proxy that gives nothing", new Proxy({ a: 1 }, { get: hostile }), "not readable"],
    ["an error whose message throws", Object.defineProperty(new Error("x"), "message", { get: hostile }), "not readab"],
  ])("%s: the user's own exception is a value that cannot be stored", (_, value, message) => {
    for (const through of [encode, toJson, throughCodec]) {
      expect(refusal(() => through(value))).toMatchObject({ code: "not_encodable" });
      expect(refusal(() => through(value)).message).toContain(message);
    }
  });

  test("what hangs on an error and throws is left out, like all of it that cannot be stored", () => {
    const error = Object.defineProperty(new Error("refused"), "request", { enumerable: true, get: hostile });
    expect(decode(encode(error))).toMatchObject({ message: "refused" });
  });

  test("cycles, but not values that appear twice", () => {
    const loop: Record<string, unknown> = { a: {} };
    loop.a = [{ b: loop }];
    expect(refusal(() => encode(loop))).toMatchObject({ code: "cyclic", path: "/a/0/b" });
    const map = new Map<string, unknown>();
    map.set("self", map);
    expect(refusal(() => encode(map))).toMatchObject({ code: "cyclic", path: "/0/1" });
    const shared = { at: new Date(0) };
    expect(decode(encode([shared, shared]))).toEqual([shared, shared]);
  });

  test("more than 200 levels", () => {
    const nested = (levels: number, leaf: unknown): unknown => {
      let value = leaf;
      for (let i = 0; i < levels; i++) value = i % 2 === 0 ? [value] : { a: value };
      return value;
    };
    for (const leaf of ["]]", 1n]) {
      expect(decode(encode(nested(maxDepth, leaf)))).toEqual(nested(maxDepth, leaf));
      expect(refusal(() => encode(nested(maxDepth + 1, leaf))).code).toBe("too_deep");
    }
    expect(refusal(() => decode("[".repeat(100_000) + "]".repeat(100_000))).code).toBe("too_deep");
    expect(decode(`["${'\\"['.repeat(1000)}"]`)).toEqual(['"['.repeat(1000)]);
  });
});

describe("hostile text", () => {
  const envelope = (data: unknown, types: unknown) => JSON.stringify({ $codec: 1, data, types });

  test.each<[string, string]>([
    ["no JSON", "{secret"],
    ["nothing", ""],
    ["no data", '{"$codec":1}'],
    ["no id", '{"$codec":"1","data":1}'],
    ["id 0", '{"$codec":0,"data":1}'],
    ["table is a list", envelope(1, [])],
    ["unknown type", envelope(1, { "": "function" })],
    ["type from the prototype", envelope(1, { "": "constructor" })],
    ["type is no text", envelope(1, { "": 1 })],
    ["path without slash", envelope({ a: null }, { a: "undefined" })],
    ["path to nowhere", envelope({ a: null }, { "/b": "undefined" })],
    ["path through a text", envelope({ a: "x" }, { "/a/0": "undefined" })],
    ["path to the length", envelope({ a: [null] }, { "/a/length": "undefined" })],
    ["path to a prototype", envelope({ a: {} }, { "/__proto__/toString": "undefined" })],
    ["path to null behind a prototype", envelope({ a: {} }, { "/a/__proto__/__proto__": "undefined" })],
    ["path to a constructor", envelope({ a: {} }, { "/constructor/prototype/x": "undefined" })],
    ["bad escape", envelope({ "~": null }, { "/~": "undefined" })],
    ["undefined", envelope(1, { "": "undefined" })],
    ["number", envelope("12", { "": "number" })],
    ["bigint", envelope("0x10", { "": "bigint" })],
    ["bytes", envelope("a*==", { "": "bytes" })],
    ["bytes, length", envelope("abc", { "": "bytes" })],
    ["date", envelope("next week", { "": "date" })],
    ["date, local", envelope("2026-01-02 03:04", { "": "date" })],
    ["regexp", envelope("/(/", { "": "regexp" })],
    ["url", envelope("nowhere", { "": "url" })],
    ["set", envelope({}, { "": "set" })],
    ["map", envelope([[1]], { "": "map" })],
    ["error", envelope({ name: "Error" }, { "": "error" })],
  ])("%s", (_, stored) => {
    const error = refusal(() => decode(stored));
    expect(error.code).toBe("bad_text");
    expect(error.message).not.toContain("secret");
  });

  test("a newer codec is named", () => {
    const error = refusal(() => decode('{"$codec":2,"data":1}'));
    expect(error.code).toBe("newer_codec");
    expect(error.message).toContain("codec 2");
  });

  test("prototype keys are harmless own keys", () => {
    const stored = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}';
    for (const value of [decode(stored), decode(encode({ ...(JSON.parse(stored) as object), more: 1n }))]) {
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
      expect(Object.keys(value as object)).toContain("__proto__");
    }
    const typed = decode(`{"$codec":1,"data":{"__proto__":"1"},"types":{"/__proto__":"bigint"}}`) as object;
    expect(Object.getOwnPropertyDescriptor(typed, "__proto__")?.value).toBe(1n);
    const error = decode(
      '{"$codec":1,"data":{"name":"Error","message":"","__proto__":{"polluted":1}},"types":{"":"error"}}',
    );
    expect(Object.getPrototypeOf(error)).toBe(Error.prototype);
    expect("polluted" in {}).toBe(false);
  });
});
