import { describe, expect, it } from "vitest";
import { z } from "zod";
import { routes } from "../../src/protocol/contract.ts";

type Checks = readonly { readonly _zod: { readonly def: Readonly<Record<string, unknown>> } }[];
type Def = z.core.$ZodTypeDef & { readonly checks?: Checks } & Readonly<Record<string, unknown>>;

const hasCheck = (def: Def, ...names: string[]): boolean =>
  (def.checks ?? []).some(({ _zod }) => names.includes(String(_zod.def.check)));

/** Where something without a bound can be sent, as paths. */
function unbounded(schema: z.core.$ZodType, path: string, seen: ReadonlySet<unknown> = new Set()): string[] {
  if (seen.has(schema)) return [];
  const def = schema._zod.def as Def;
  const inside = (one: unknown, step = ""): string[] =>
    unbounded(one as z.core.$ZodType, `${path}${step}`, new Set([...seen, schema]));
  switch (def.type) {
    case "string":
      return hasCheck(def, "max_length", "length_equals") ? [] : [`${path}: a text without a bound`];
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
      return inside(def.in); // what travels
    case "optional":
    case "nullable":
    case "nonoptional":
      return inside(def.innerType);
    case "boolean":
    case "enum":
    case "literal":
    case "unknown": // a value of the user's: the store bounds it by its size, the server by that of the body
      return [];
    default:
      return [`${path}: ${def.type}, of which this test knows nothing`];
  }
}

const parts = routes.flatMap((route) =>
  (["params", "query", "body"] as const).flatMap((part) => {
    const schema = route[part];
    return schema === undefined ? [] : [{ path: `${route.name} ${part}`, schema }];
  }),
);

describe("whatever a caller can send has a bound", () => {
  it("every text, list, record and number of every call", () => {
    expect(parts.length).toBeGreaterThan(60);
    expect(parts.flatMap(({ path, schema }) => unbounded(schema, path))).toEqual([]);
  });

  it("a field without a bound would be found", () => {
    const open = { a: z.string(), b: z.array(z.string().max(1)), c: z.int(), d: z.record(z.string(), z.string()) };
    expect(unbounded(z.strictObject(open), "x")).toHaveLength(4);
    expect(unbounded(z.array(z.string()).max(5), "x")).toEqual(["x[]: a text without a bound"]);
  });
});
