import { types } from "node:util";
import { isBlobRef } from "./blob.ts";
import { erasedWord, isErased } from "./erased.ts";
import { assign, bigintDigits, CodecError, codecId, type Json, maxDepth, type TypeName, toPointer } from "./format.ts";
import { fieldOfError, maxExtraChars, redacted, unstored } from "./redact.ts";
import { isSealed, type SealedPayload } from "./sealed.ts";

/** Whether JSON.stringify keeps the whole value. Cycles end at the depth limit; the encoder then finds the reason. */
export function isPlain(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value) && (value !== 0 || !Object.is(value, -0));
    case "object":
      break;
    default:
      return false;
  }
  if (value === null) return true;
  if (depth === maxDepth) return false;
  const proto = Object.getPrototypeOf(value);
  if (proto === Array.prototype && Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (!isPlain(value[i], depth + 1)) return false;
    return true;
  }
  if (proto !== Object.prototype && proto !== null) return false;
  for (const key in value) if (!isPlain((value as Record<string, unknown>)[key], depth + 1)) return false;
  return Object.getOwnPropertySymbols(value).length === 0;
}

/** A copy of a plain value; undefined if it is not {@link isPlain}, or has a key that only the parser can set. */
export function copyPlain(value: unknown, depth = 0): unknown {
  if (typeof value !== "object" || value === null) return isPlain(value, depth) ? value : undefined;
  if (depth === maxDepth) return undefined;
  const proto = Object.getPrototypeOf(value);
  if (proto === Array.prototype && Array.isArray(value)) {
    const copy: unknown[] = [];
    for (let k = 0; k < value.length; k++) {
      const item = copyPlain(value[k], depth + 1);
      if (item === undefined) return undefined;
      copy.push(item);
    }
    return copy;
  }
  // JSON.parse creates ordinary objects for all of them, and so must this.
  if (proto !== Object.prototype || Object.getOwnPropertySymbols(value).length > 0) return undefined;
  const copy: Record<string, unknown> = {};
  for (const key in value) {
    const item = key === "__proto__" ? undefined : copyPlain((value as Record<string, unknown>)[key], depth + 1);
    if (item === undefined) return undefined;
    copy[key] = item;
  }
  return copy;
}

export function toEnvelope(value: unknown): Json {
  return new Encoder().envelope(value);
}

const bigintBound = 10n ** BigInt(bigintDigits);

/** Builds a plain copy and the type table. */
class Encoder {
  readonly #types: [path: string, type: TypeName][] = [];
  readonly #keys: (string | number)[] = [];
  /** The containers around the current value, to detect cycles. */
  readonly #around = new Set<object>();
  /** Errors around the current value: their extra fields are kept without secrets. */
  #errors = 0;

  envelope(value: unknown): Json {
    const data = this.#value(value);
    // Every path is "" or starts with "/", so none is a prototype key.
    return this.#types.length === 0
      ? { $codec: codecId, data }
      : { $codec: codecId, data, types: Object.fromEntries(this.#types) };
  }

  #value(value: unknown): Json {
    switch (typeof value) {
      case "string":
      case "boolean":
        return value;
      case "number":
        if (Object.is(value, -0)) return this.#typed("number", "-0");
        return Number.isFinite(value) ? value : this.#typed("number", String(value));
      case "undefined":
        return this.#typed("undefined", null);
      case "bigint":
        return this.#bigint(value);
      case "function":
        return this.#refuse("a function cannot be stored; store the data it needs");
      case "symbol":
        return this.#refuse("a symbol cannot be stored; use a string");
      default:
        return value === null ? null : this.#object(value as object);
    }
  }

  #bigint(value: bigint): Json {
    // Check its bits first, because writing a huge bigint in decimal takes more than linear time.
    if (value > -bigintBound && value < bigintBound) return this.#typed("bigint", String(value));
    return this.#refuse(`an integer of more than ${bigintDigits} digits cannot be stored; store it as text or bytes`);
  }

  #object(value: object): Json {
    if (isDirect(value)) {
      if (types.isDate(value)) return this.#typed("date", Number.isNaN(value.getTime()) ? null : value.toISOString());
      if (types.isRegExp(value)) return this.#typed("regexp", `/${value.source}/${value.flags}`);
      if (value instanceof URL) return this.#typed("url", value.href);
    }
    if (isSealed(value)) return this.#typed("sealed", sealedJson(value));
    if (isErased(value)) return this.#typed("erased", erasedWord);
    // Buffer is a subclass, and the usual way to hold bytes in Node.
    if (types.isUint8Array(value)) {
      return this.#typed("bytes", Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64"));
    }
    if (isBlobRef(value)) return this.#typed("blob", { blob: value.blob, bytes: value.bytes, type: value.type });
    if (this.#around.has(value)) throw new CodecError("cyclic", toPointer(this.#keys), "the value contains itself");
    if (this.#around.size >= maxDepth) {
      throw new CodecError("too_deep", toPointer(this.#keys), `nested deeper than ${maxDepth} levels`);
    }
    this.#around.add(value);
    try {
      return this.#container(value);
    } finally {
      this.#around.delete(value);
    }
  }

  #container(value: object): Json {
    if (types.isNativeError(value) || value instanceof Error) return this.#error(value);
    if (isDirect(value)) {
      if (Array.isArray(value)) return this.#items(value);
      if (types.isSet(value)) return this.#typed("set", this.#items([...value]));
      if (types.isMap(value)) return this.#typed("map", this.#items([...value]));
    }
    if (!isData(value)) return this.#refuse(instanceProblem(value));
    const symbol = Object.getOwnPropertySymbols(value).find((key) =>
      Object.prototype.propertyIsEnumerable.call(value, key),
    );
    if (symbol !== undefined) return this.#refuse(`the key ${String(symbol)} cannot be stored; use a string`);
    const copy: { [key: string]: Json } = {};
    for (const [key, item] of Object.entries(value)) {
      const fate = this.#errors === 0 ? "keep" : fieldOfError(key, item);
      if (fate !== "drop") assign(copy, key, fate === "keep" ? this.#child(key, item) : redacted);
    }
    return copy;
  }

  #items(items: readonly unknown[]): Json[] {
    const copy: Json[] = [];
    for (let i = 0; i < items.length; i++) copy.push(this.#child(i, items[i]));
    return copy;
  }

  /** A failure must be storable whatever is attached to it (a socket, a request, itself): such extras are left out. */
  #error(error: Error & { code?: unknown; errors?: unknown }): Json {
    this.#errors++;
    try {
      return this.#errorFields(error);
    } finally {
      this.#errors--;
    }
  }

  #errorFields(error: Error & { code?: unknown; errors?: unknown; [unstored]?: readonly string[] }): Json {
    const copy: { [key: string]: Json } = { name: errorName(error), message: String(error.message) };
    // The first three may be inherited or not enumerable.
    const extras = new Set(["cause", "code", "errors", ...Object.keys(error)]);
    for (const hidden of ["name", "message", "stack", ...(error[unstored] ?? [])]) extras.delete(hidden);
    let letters = 0;
    for (const key of extras) {
      const before = { types: this.#types.length, keys: this.#keys.length };
      try {
        if (!isExtra(error, key)) continue;
        const extra = Reflect.get(error, key) as unknown;
        const fate = fieldOfError(key, extra);
        if (fate === "drop") continue;
        const stored = fate === "redact" ? redacted : this.#child(key, extra);
        // A cause has its own bound.
        if (key !== "cause")
          letters += typeof stored === "object" ? JSON.stringify(stored).length : String(stored).length;
        if (letters > maxExtraChars && key !== "cause") throw new CodecError("too_deep", key, "left out");
        assign(copy, key, stored);
      } catch {
        this.#types.length = before.types;
        this.#keys.length = before.keys;
      }
    }
    return this.#typed("error", copy);
  }

  #child(key: string | number, value: unknown): Json {
    this.#keys.push(key);
    const copy = this.#value(value);
    this.#keys.pop();
    return copy;
  }

  #typed(type: TypeName, data: Json): Json {
    this.#types.push([toPointer(this.#keys), type]);
    return data;
  }

  #refuse(problem: string): never {
    throw new CodecError("not_encodable", toPointer(this.#keys), problem);
  }
}

const sealedJson = ({ key, place, data, hash }: SealedPayload): Json => ({
  v: 1,
  key,
  place,
  data,
  ...(hash && { hash }),
});

/** An instance of a built-in class itself, not of a subclass: two prototypes. Unlike identity, this works across realms. */
function isDirect(value: object): boolean {
  const base = Object.getPrototypeOf(Object.getPrototypeOf(value) ?? value);
  return base !== null && Object.getPrototypeOf(base) === null;
}

/** A plain object, or an instance of a class that adds only fields, so that no method is lost with its prototype. */
function isData(value: object): boolean {
  let proto: object | null = Object.getPrototypeOf(value);
  while (proto !== null) {
    const base: object | null = Object.getPrototypeOf(proto);
    if (base !== null && Reflect.ownKeys(proto).some((key) => key !== "constructor")) return false;
    proto = base;
  }
  return !Array.isArray(value);
}

function instanceProblem(value: object): string {
  if (types.isPromise(value)) return "a promise cannot be stored; await it first";
  if (types.isAnyArrayBuffer(value) || ArrayBuffer.isView(value)) {
    return "only Uint8Array is stored as bytes; wrap the buffer in one";
  }
  const name = Object.getPrototypeOf(value)?.constructor?.name || "a class";
  return `an instance of ${name} would lose its methods; pass a plain object with its data, such as { ...value }`;
}

function isExtra(error: Error & { code?: unknown; errors?: unknown }, key: string): boolean {
  if (key === "cause") return "cause" in error;
  if (key === "code") return Object.hasOwn(error, "code") || error.code !== undefined;
  return key !== "errors" || Object.hasOwn(error, "errors") || Array.isArray(error.errors);
}

/** An instance of `class Refused extends Error {}` has the name "Error", but "Refused" identifies it. */
function errorName(error: Error): string {
  const name = String(error.name);
  if (Object.hasOwn(error, "name") || !builtInErrorNames.has(name)) return name;
  return Object.getPrototypeOf(error)?.constructor?.name || name;
}

const builtInErrorNames = new Set([
  "Error",
  "AggregateError",
  "EvalError",
  "RangeError",
  "ReferenceError",
  "SyntaxError",
  "TypeError",
  "URIError",
]);
