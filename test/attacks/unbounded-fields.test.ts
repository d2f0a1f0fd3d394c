import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defaultLimits } from "../../src/model/limits.ts";
import { routes } from "../../src/protocol/contract.ts";
import { maxBytes } from "../../src/server/bodies.ts";
import { defaultServerLimits } from "../../src/server/limits.ts";

type Checks = readonly { readonly _zod: { readonly def: Readonly<Record<string, unknown>> } }[];
type Def = z.core.$ZodTypeDef & { readonly checks?: Checks } & Readonly<Record<string, unknown>>;

const hasCheck = (def: Def, ...names: string[]): boolean =>
  (def.checks ?? []).some(({ _zod }) => names.includes(String(_zod.def.check)));

/** The paths of fields without a bound. */
function unbounded(schema: z.core.$ZodType, path: string, seen: ReadonlySet<unknown> = new Set()): string[] {
  if (seen.has(schema)) return [];
  const def = schema._zod.def as Def;
  const inside = (one: unknown, step = ""): string[] =>
    unbounded(one as z.core.$ZodType, `${path}${step}`, new Set([...seen, schema]));
  switch (def.type) {
    case "string":
      return hasCheck(def, "max_length", "length_equals") ? [] : [`${path}: a string without a bound`];
    case "number":
      return hasCheck(def, "less_than") ? [] : [`${path}: a number without a bound`];
    case "array":
      return [
        ...(hasCheck(def, "max_length") ? [] : [`${path}: a list without a bound`]),
        ...inside(def.element, "[]"),
      ];
    case "object":
      return Object.entries(def.shape as Record<string, unknown>).flatMap(([key, one]) => inside(one, `.${key}`));
    case "record":
      return [`${path}: a record, which has no bound`];
    case "custom":
      return z.globalRegistry.get(schema)?.maxProperties === undefined ? [`${path}: anything at all`] : [];
    case "union":
      return (def.options as unknown[]).flatMap((one) => inside(one));
    case "pipe":
      return inside(def.in); // the wire form
    case "optional":
    case "nullable":
    case "nonoptional":
      return inside(def.innerType);
    case "boolean":
    case "enum":
    case "literal":
    case "unknown": // a user's value: the store bounds its size, the server the size of the body
      return [];
    default:
      return [`${path}: ${def.type}, which this test does not know`];
  }
}

const maximumOf = (def: Def, check: string): number => {
  const found = (def.checks ?? []).find(({ _zod }) => _zod.def.check === check);
  return Number((found?._zod.def as { readonly maximum?: number } | undefined)?.maximum ?? 0);
};

/** Bytes of the longest plain JSON: names and numbers. The store bounds user values. */
function largest(schema: z.core.$ZodType): number {
  const def = schema._zod.def as Def;
  const inside = (one: unknown): number => largest(one as z.core.$ZodType);
  switch (def.type) {
    case "string":
      return Math.min(maximumOf(def, "max_length"), 512) + 3;
    case "number":
      return 17;
    case "array":
      return maximumOf(def, "max_length") * (inside(def.element) + 1) + 2;
    case "object":
      return Object.entries(def.shape as Record<string, unknown>).reduce(
        (sum, [key, one]) => sum + key.length + 4 + inside(one),
        2,
      );
    case "union":
      return Math.max(...(def.options as unknown[]).map(inside));
    case "pipe":
      return inside(def.in);
    case "optional":
    case "nullable":
    case "nonoptional":
      return inside(def.innerType);
    default:
      return 5;
  }
}

const parts = routes.flatMap((route) =>
  (["params", "query", "body"] as const).flatMap((part) => {
    const schema = route[part];
    return schema === undefined ? [] : [{ path: `${route.name} ${part}`, schema }];
  }),
);

describe("bounds of requests", () => {
  it("every string, list, record and number of every call has one", () => {
    expect(parts.length).toBeGreaterThan(60);
    expect(parts.flatMap(({ path, schema }) => unbounded(schema, path))).toEqual([]);
  });

  it("a call with lists of the maximum length fits the body limit", () => {
    const limits = { ...defaultServerLimits, bodyBytes: Number.MAX_SAFE_INTEGER };
    const small = routes.flatMap((route) => {
      const max = maxBytes(route, limits, defaultLimits.payloadBytes);
      return route.body !== undefined && largest(route.body) > max ? [`${route.name}: ${largest(route.body)}`] : [];
    });
    expect(small).toEqual([]);
  });

  it("the test detects a field without a bound", () => {
    const open = { a: z.string(), b: z.array(z.string().max(1)), c: z.int(), d: z.record(z.string(), z.string()) };
    expect(unbounded(z.strictObject(open), "x")).toHaveLength(4);
    expect(unbounded(z.array(z.string()).max(5), "x")).toEqual(["x[]: a string without a bound"]);
  });
});
