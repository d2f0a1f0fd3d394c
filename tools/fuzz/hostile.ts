import type { Chance } from "./chance.ts";
import { jsonText, Pairs, type Path, pairsOf, RawJson, withAt } from "./json.ts";

/** A path in a drawn request, with its kind and bounds from the schema. */
export interface Spot {
  readonly path: Path;
  readonly kind: string;
  readonly max?: number;
  readonly min?: number;
}

const nested = (levels: number, open: string, close: string): RawJson =>
  new RawJson(`${open.repeat(levels)}1${close.repeat(levels)}`);

/** Texts that break programs: text direction, control characters, partial characters, patterns, paths, statements. */
export const oddTexts: readonly string[] = [
  "\u202Egnp.exe",
  "\u2066\u2069\u200F\u061C",
  "\u0000",
  "a\u0000b",
  "\u001B[2J\u001B]0;owned\u0007",
  "\r\nset-cookie: a=b",
  "\uFEFF\u200B\u00A0",
  "Ω≈ç√∫˜µ≤≥÷",
  "🧨👩‍👩‍👧‍👦",
  "İıſK",
  "e\u0301\u0301\u0301\u0301",
  "' or 1=1 --",
  "'; drop table runs; --",
  "%",
  "_",
  "\\",
  '"',
  "{{7*7}}",
  "../../../../etc/passwd",
  "..%2f..%2f",
  "%00",
  "%25",
  "a:b:c",
  ",",
  ",,,",
  " ",
  "0",
  "-1",
  "00",
  "1e3",
  "true",
  "null",
  "undefined",
  "NaN",
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "$codec",
  "(a+)+$",
  "tape:reserved",
];

/** JSON that is valid in almost no field. */
const strangeValues: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  0.5,
  "",
  "a",
  [],
  {},
  [[]],
  [null],
  new RawJson("1e999"),
  new RawJson("-1e999"),
  new RawJson("-0"),
  new RawJson("1e-999"),
  new RawJson("9007199254740993"),
  new RawJson("9223372036854775808"),
  new RawJson(`1${"0".repeat(400)}`),
  new RawJson("NaN"),
  new RawJson("Infinity"),
  new RawJson("01"),
  new RawJson("'a'"),
  new RawJson("{"),
  new RawJson("]"),
  new RawJson(""),
  new RawJson('"\\ud800"'),
  new RawJson('"\\udc00\\ud800"'),
  new RawJson('"\\u0000"'),
  new RawJson('"\t"'),
  nested(70, "[", "]"),
  nested(70, '{"a":', "}"),
  nested(20_000, "[", "]"),
  new RawJson("[".repeat(100_000)),
  { $codec: 1 },
  { $codec: 2, data: 1, types: {} },
  { $codec: 1, data: "x", types: { "": "date" } },
  { $codec: 1, data: "1".repeat(5_000), types: { "": "bigint" } },
  { $codec: 1, data: "(", types: { "": "regexp" } },
  { $codec: 1, data: [1], types: { "": "map" } },
  { $codec: 1, data: { a: 1 }, types: { "/a/b/c": "set" } },
  { $codec: 1, data: { name: "E", message: "m", stack: "at x" }, types: { "": "error" } },
  { $codec: "text", data: "{" },
  { $codec: "text", data: '{"__proto__":{"polluted":1}}' },
  { $codec: "text", data: `${"[".repeat(3_000)}${"]".repeat(3_000)}` },
  new Pairs([["__proto__", { polluted: true }]]),
  new Pairs([["constructor", { prototype: { polluted: true } }]]),
  new Pairs([
    ["a", 1],
    ["a", 2],
  ]),
];

export const strangeValue = (chance: Chance): unknown => chance.oneOf(strangeValues);

/** Longer than any name. */
const hugeText = 300_000;

type Breaker = readonly [name: string, of: (value: unknown, spot: Spot, chance: Chance) => unknown];

const anywhere: readonly Breaker[] = [
  ["another kind of value", (_value, _spot, chance) => strangeValue(chance)],
  ["missing", () => undefined],
  ["wrapped in a list", (value) => [value]],
];

const ofText: readonly Breaker[] = [
  ["too long by one", (_value, { max = 512 }) => "a".repeat(Math.min(max + 1, 5_000_000))],
  ["much too long", () => "b".repeat(hugeText)],
  ["long, with four bytes per character", (_value, { max = 512 }) => "🧨".repeat(Math.min(max, 20_000))],
  ["empty", () => ""],
  ["odd text", (_value, _spot, chance) => chance.oneOf(oddTexts)],
  ["text and a lone surrogate", (value) => new RawJson(`${JSON.stringify(String(value)).slice(0, -1)}\\udfff"`)],
];

const ofNumber: readonly Breaker[] = [
  ["beyond its bound", (_value, { max }) => (max === undefined ? 2 ** 60 : max + 1)],
  ["below its bound", (_value, { min = 0 }) => min - 1],
  ["a fraction", () => 0.1 + 0.2],
  ["a text of digits", (value) => String(value)],
  ["the largest double", () => Number.MAX_VALUE],
];

const ofList: readonly Breaker[] = [
  ["one too many", (value, { max = 1_000 }) => repeated(value, max + 1)],
  ["far too many", (value) => repeated(value, 60_000)],
  ["empty", () => []],
  ["null inside", (value) => [...(value as unknown[]), null]],
];

const ofObject: readonly Breaker[] = [
  ["an unknown field", (value) => new Pairs([...pairsOf(value)!, ["unknownField", 1]])],
  ["a prototype", (value) => new Pairs([...pairsOf(value)!, ["__proto__", { tenant: "home" }]])],
  ["a tenant", (value) => new Pairs([...pairsOf(value)!, ["tenant", "home"]])],
  ["a field twice", (value) => new Pairs([...pairsOf(value)!, ...pairsOf(value)!.slice(0, 1)])],
  ["empty", () => ({})],
  ["ten thousand fields", () => Object.fromEntries(Array.from({ length: 10_000 }, (_, k) => [`f${k}`, k]))],
];

/** Limited so that the text stays below the maximum body. */
function repeated(value: unknown, times: number): unknown {
  const [first = 1] = value as unknown[];
  const text = jsonText(first);
  const maxItems = Math.floor(8_000_000 / (text.length + 1));
  return new RawJson(`[${Array.from({ length: Math.min(times, maxItems) }, () => text).join(",")}]`);
}

const byKind: Readonly<Record<string, readonly Breaker[]>> = {
  string: ofText,
  number: ofNumber,
  array: ofList,
  object: ofObject,
};

/** The paths of a request that was not drawn from a schema. */
export function spotsOf(json: unknown, path: Path = []): Spot[] {
  const inner = Array.isArray(json) ? json.map((one, k) => [k, one] as const) : (pairsOf(json) ?? []);
  return [{ path, kind: kindOf(json) }, ...inner.flatMap(([step, one]) => spotsOf(one, [...path, step]))];
}

/** The same request with one value broken, and a description of the change. */
export function broken(value: unknown, spots: readonly Spot[], chance: Chance): { value: unknown; how: string } {
  const spot = chance.oneOf(spots);
  const at = valueAt(value, spot.path);
  const fitting = kindOf(at) === spot.kind ? (byKind[spot.kind] ?? []) : [];
  const [name, of] = chance.oneOf(fitting.length > 0 && chance.maybe(0.6) ? fitting : anywhere);
  return { value: withAt(value, spot.path, of(at, spot, chance)), how: `${spot.path.join(".") || "all"}: ${name}` };
}

/** By the value itself: a seen value that replaced a drawn one may not have the schema's type. */
function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return pairsOf(value) === undefined && typeof value === "object" ? "other" : typeof value;
}

function valueAt(value: unknown, path: Path): unknown {
  let at = value;
  for (const step of path) {
    at = Array.isArray(at) ? at[step as number] : pairsOf(at)?.find(([name]) => name === step)?.[1];
  }
  return at;
}
