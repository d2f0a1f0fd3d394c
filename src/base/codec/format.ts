/** What the encoder and the decoder share. ../codec.ts describes the format itself. */

export const codecId = 1;

/** Deepest nesting of arrays and objects: far above real data, far below where recursion overflows the stack. */
export const maxDepth = 200;

/** Digits of a bigint: three times those of the largest key in use, and parsed within microseconds. */
export const bigintDigits = 4_096;

export type TypeName =
  | "blob"
  | "date"
  | "erased"
  | "bigint"
  | "bytes"
  | "error"
  | "map"
  | "set"
  | "undefined"
  | "number"
  | "regexp"
  | "sealed"
  | "url";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type CodecErrorCode = "not_encodable" | "too_deep" | "cyclic" | "bad_text" | "newer_codec";

export class CodecError extends Error {
  readonly code: CodecErrorCode;
  /** JSON pointer (RFC 6901) to the offending place; "" is the value itself. */
  readonly path: string;

  constructor(code: CodecErrorCode, path: string, problem: string) {
    super(path === "" ? problem : `at ${path}: ${problem}`);
    this.name = "CodecError";
    this.code = code;
    this.path = path;
  }
}

export function isEnvelope(value: unknown): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.hasOwn(value, "$codec");
}

/** Assignment that cannot reach a prototype: `target["__proto__"] = x` would replace it. */
export function assign(target: object, key: string, value: unknown): void {
  if (key !== "__proto__") (target as Record<string, unknown>)[key] = value;
  else Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
}

/** JSON pointer of a path of keys. */
export function toPointer(keys: readonly (string | number)[]): string {
  let path = "";
  for (const key of keys) {
    path += typeof key === "number" ? `/${key}` : `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
  }
  return path;
}

/** Keys of a JSON pointer, or undefined if it is not one. */
export function fromPointer(path: string): string[] | undefined {
  if (path === "") return [];
  if (!path.startsWith("/") || /~(?![01])/.test(path)) return undefined;
  const keys = path.slice(1).split("/");
  return keys.map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
}
