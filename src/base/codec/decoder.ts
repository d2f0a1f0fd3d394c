import { markBlobHolder, restoreBlobRef } from "./blob.ts";
import { ErasedPayload, erasedWord } from "./erased.ts";
import { assign, bigintDigits, CodecError, codecId, fromPointer, type Json } from "./format.ts";
import { type SealedFields, SealedPayload, sealedFault } from "./sealed.ts";

/** Restores in place what the type table names. The text may be hostile, so every step of a path must be an own key. */
export function openEnvelope(envelope: { [key: string]: Json }): unknown {
  const { $codec: id, data, types = {} } = envelope;
  if (typeof id !== "number" || !Number.isSafeInteger(id) || id < 1) throw bad("", "the codec id is not a number");
  if (id > codecId) {
    throw new CodecError("newer_codec", "", `written by codec ${id}, this program knows up to ${codecId}; upgrade it`);
  }
  if (data === undefined) throw bad("", "the envelope has no data");
  if (!isRecord(types)) throw bad("", "the type table is not an object");
  // A path is shorter than the paths below it, so longest first restores inner values before outer ones.
  const entries = Object.entries(types).sort(([a], [b]) => b.length - a.length);
  for (const [path, type] of entries) {
    const [parent, key] = locate(envelope, path);
    const restore = typeof type === "string" ? restorers.get(type) : undefined;
    if (restore === undefined) throw bad(path, `unknown type ${JSON.stringify(type)}`);
    assign(parent, key, restore(parent[key], path));
  }
  if (entries.some(([, type]) => type === "blob")) markBlobHolder(envelope.data);
  return envelope.data;
}

type Parent = Record<string, unknown>;

function locate(envelope: Parent, path: string): [parent: Parent, key: string] {
  const keys = fromPointer(path);
  if (keys === undefined) throw bad(path, "not a JSON pointer");
  let parent = envelope;
  let key = "data";
  for (const next of keys) {
    const node = parent[key];
    if (typeof node !== "object" || node === null || !Object.hasOwn(node, next)) {
      throw bad(path, "the type table points nowhere");
    }
    parent = node as Parent;
    key = next;
  }
  return [parent, key];
}

const restorers = new Map<string, (data: unknown, path: string) => unknown>([
  ["blob", restoreBlobRef],
  ["undefined", (data, path) => (data === null ? undefined : mismatch(path, "undefined"))],
  ["number", (data, path) => specialNumbers.get(data) ?? mismatch(path, "a number")],
  ["bigint", restoreBigint],
  ["bytes", restoreBytes],
  ["date", restoreDate],
  ["regexp", restoreRegExp],
  ["url", (data, path) => (isString(data) && URL.parse(data)) || mismatch(path, "a URL")],
  ["set", (data, path) => (Array.isArray(data) ? new Set(data) : mismatch(path, "a set"))],
  ["map", (data, path) => (Array.isArray(data) && data.every(isPair) ? new Map(data) : mismatch(path, "a map"))],
  ["error", restoreError],
  ["sealed", restoreSealed],
  ["erased", (data, path) => (data === erasedWord ? new ErasedPayload() : mismatch(path, "an erased payload"))],
]);

const specialNumbers = new Map<unknown, number>([
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
  ["-0", -0],
]);

/** Checks the length first, because the time to parse digits grows with their square. */
function restoreBigint(data: unknown, path: string): bigint {
  if (!isString(data) || data.length > bigintDigits + 1 || !/^-?\d+$/.test(data)) return mismatch(path, "a bigint");
  return BigInt(data);
}

function restoreBytes(data: unknown, path: string): Uint8Array {
  if (!isString(data) || data.length % 4 !== 0) return mismatch(path, "bytes");
  const bytes = Buffer.from(data, "base64");
  // Buffer skips characters that are not base64; the length then differs.
  const padding = data.endsWith("==") ? 2 : data.endsWith("=") ? 1 : 0;
  if (bytes.length !== (data.length / 4) * 3 - padding) return mismatch(path, "bytes");
  return new Uint8Array(bytes); // a copy, because small Buffers share one memory pool
}

function restoreDate(data: unknown, path: string): Date {
  if (data === null) return new Date(Number.NaN);
  const date = isString(data) ? new Date(data) : undefined;
  // The comparison refuses texts that Date would guess at, in local time.
  return date !== undefined && !Number.isNaN(date.getTime()) && date.toISOString() === data
    ? date
    : mismatch(path, "a date");
}

function restoreRegExp(data: unknown, path: string): RegExp {
  if (!isString(data) || !data.startsWith("/")) return mismatch(path, "a regular expression");
  const end = data.lastIndexOf("/");
  try {
    return new RegExp(data.slice(1, end), data.slice(end + 1));
  } catch {
    return mismatch(path, "a regular expression");
  }
}

function restoreSealed(data: unknown, path: string): SealedPayload {
  if (!isRecord(data)) return mismatch(path, "a sealed payload");
  const { v, ...fields } = data;
  if (typeof v === "number" && v > 1) {
    throw new CodecError("newer_codec", path, `a sealed payload of version ${v}, this program knows 1; upgrade it`);
  }
  const fault = v === 1 ? sealedFault(fields) : "no version";
  return fault === undefined
    ? new SealedPayload(fields as unknown as SealedFields)
    : mismatch(path, `sealed: ${fault}`);
}

const builtInErrors = new Map<string, (message: string) => Error>([
  ["AggregateError", (message) => new AggregateError([], message)],
  ["EvalError", (message) => new EvalError(message)],
  ["RangeError", (message) => new RangeError(message)],
  ["ReferenceError", (message) => new ReferenceError(message)],
  ["SyntaxError", (message) => new SyntaxError(message)],
  ["TypeError", (message) => new TypeError(message)],
  ["URIError", (message) => new URIError(message)],
]);

type Revive = (error: Error) => object | undefined;
const revivals = new Map<string, Revive>();

/**
 * Errors of this name are decoded as instances of the class whose prototype `revive` returns; undefined: as plain errors.
 * Call it in the module that defines the class, so that any code that can import the class also decodes it.
 */
export function registerErrorClass(name: string, revive: Revive): void {
  const before = revivals.get(name);
  revivals.set(name, (error) => revive(error) ?? before?.(error));
}

/** Built-in and registered classes decode as themselves; any other becomes an Error with the subclass's name. */
function restoreError(data: unknown, path: string): Error {
  if (!isRecord(data)) return mismatch(path, "an error");
  const { name, message, ...extras } = data;
  if (!isString(name) || !isString(message)) return mismatch(path, "an error");
  const error = builtInErrors.get(name)?.(message) ?? new Error(message);
  if (error.name !== name) define(error, "name", name, false);
  // The stack of this decoder would mislead, and the original's was not stored.
  define(error, "stack", `${name}: ${message}`, false);
  for (const [key, extra] of Object.entries(extras)) {
    if (key === "stack") continue;
    define(error, key, extra, key !== "cause" && !(key === "errors" && error instanceof AggregateError));
  }
  const prototype = revivals.get(name)?.(error);
  if (prototype !== undefined) Object.setPrototypeOf(error, prototype);
  return error;
}

function define(target: object, key: string, value: unknown, enumerable: boolean): void {
  Object.defineProperty(target, key, { value, enumerable, writable: true, configurable: true });
}

function isString(value: unknown): value is string {
  return typeof value === "string";
}

function isPair(value: unknown): value is [unknown, unknown] {
  return Array.isArray(value) && value.length === 2;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function mismatch(path: string, what: string): never {
  throw bad(path, `the stored data is not ${what}`);
}

function bad(path: string, problem: string): CodecError {
  return new CodecError("bad_text", path, problem);
}
