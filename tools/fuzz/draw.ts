import fc from "fast-check";
import { z } from "zod";
import { recordKinds, recordSchemas } from "../../src/model/records.ts";
import { newRecord } from "../../src/protocol/shapes.ts";
import type { Chance } from "./chance.ts";
import { oddTexts, type Spot, strangeValue } from "./hostile.ts";
import type { Path } from "./json.ts";
import type { Pool } from "./pool.ts";

type Schema = z.core.$ZodType;
type Check = { readonly _zod: { readonly def: Readonly<Record<string, unknown>> } };
type Def = Readonly<Record<string, unknown>> & { readonly type: string; readonly checks?: readonly Check[] };

export interface DrawOptions {
  readonly chance: Chance;
  /** Values that the caller's tenant has seen. */
  readonly own: Pool;
  /** Values that the other tenant has seen; absent: none of them is sent. */
  readonly other?: Pool | undefined;
}

/** Bounds of a schema, from its checks. */
interface Bounds {
  readonly min?: number;
  readonly max?: number;
  readonly patterns: readonly RegExp[];
}

/**
 * Draws JSON that a schema accepts by walking the schema, so that it follows the contract and a new route needs no change
 * here. It prefers values that were seen in responses, so that calls name existing things.
 */
export class Draw {
  readonly #chance: Chance;
  readonly #own: Pool;
  readonly #other: Pool | undefined;
  readonly spots: Spot[] = [];
  /** Probability of each optional field: a call with all of them is seldom valid. */
  readonly #optional: number;
  /** Journal of the last drawn fence: later fields probably concern the same journal. */
  #fenced: number | undefined;

  constructor({ chance, own, other }: DrawOptions) {
    this.#chance = chance;
    this.#own = own;
    this.#other = other;
    this.#optional = chance.oneOf([0, 0.2, 0.6]);
  }

  of(schema: Schema, field = "", path: Path = []): unknown {
    const chance = this.#chance;
    const def = schema._zod.def as unknown as Def;
    const inner = (child: unknown, step?: string | number): unknown =>
      this.of(child as Schema, typeof step === "string" ? step : field, step === undefined ? path : [...path, step]);
    const bounds = boundsOf(def);
    switch (def.type) {
      case "optional":
      case "default":
      case "prefault":
        return chance.maybe(this.#optional) ? inner(def.innerType) : undefined;
      case "nullable":
        return chance.maybe(0.3) ? null : inner(def.innerType);
      case "nonoptional":
      case "readonly":
        return inner(def.innerType);
      case "pipe":
        return inner(def.in); // the encoded form
      case "lazy":
        return inner((def.getter as () => unknown)());
      case "union":
        return inner(chance.oneOf(def.options as unknown[]));
      case "enum":
        return this.#at(path, def.type, {}, chance.oneOf(Object.values(def.entries as Record<string, unknown>)));
      case "literal":
        return this.#at(path, def.type, {}, chance.oneOf(def.values as unknown[]));
      case "boolean":
        return this.#at(path, def.type, {}, chance.maybe(0.5));
      case "null":
        return null;
      case "string":
        return this.#at(path, def.type, bounds, this.#text(field, bounds));
      case "number":
        return this.#at(path, def.type, bounds, this.#number(field, bounds));
      case "unknown":
      case "any":
        return this.#at(path, def.type, {}, this.#userValue(field));
      case "array":
        return this.#at(path, def.type, bounds, this.#list(def.element as Schema, bounds, inner));
      case "object":
        return this.#object(schema, def, path, inner);
      case "record":
      case "custom":
        return this.#at(path, "object", { max: 256 }, this.#record(schema, def, inner));
      default:
        throw new Error(`the fuzzer cannot draw ${def.type} (${path.join(".")}): add it to tools/fuzz/draw.ts`);
    }
  }

  #at<T>(path: Path, kind: string, { min, max }: { min?: number; max?: number }, value: T): T {
    const has = { ...(min !== undefined && { min }), ...(max !== undefined && { max }) };
    this.spots.push({ path, kind, ...has });
    return value;
  }

  /** A value that the caller's tenant or the other one has seen. */
  #seen(field: string): unknown {
    const chance = this.#chance;
    const foreign = this.#other !== undefined && chance.maybe(0.25);
    return (foreign ? this.#other : this.#own)?.value(field, chance);
  }

  #text(field: string, { min = 0, max = 512, patterns }: Bounds): string {
    const chance = this.#chance;
    const fits = (text: string): boolean =>
      text.length >= min && text.length <= max && patterns.every((pattern) => pattern.test(text));
    for (let k = 0; k < 5; k++) {
      const text = chance.weighted<() => unknown>([
        [6, () => this.#seen(field)],
        [2, () => `${field || "t"}-${chance.int(1_000)}`],
        [1, () => chance.digits(chance.between(1, 19))],
        [1, () => chance.oneOf(oddTexts)],
        [0.3, () => "c".repeat(Math.min(max, 70_000))],
        [0.2, () => "d".repeat(min)],
      ])();
      if (text !== undefined && fits(String(text))) return String(text);
    }
    for (const pattern of patterns) {
      const [text = ""] = fc.sample(fc.stringMatching(pattern), { numRuns: 1, seed: chance.int(2 ** 31) });
      if (fits(text)) return text;
    }
    return "e".repeat(Math.max(1, min));
  }

  #number(field: string, { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER }: Bounds): number {
    const chance = this.#chance;
    for (let k = 0; k < 4; k++) {
      const number = chance.weighted<() => unknown>([
        [4, () => this.#seen(field)],
        [4, () => chance.int(10)],
        [1, () => chance.int(100_000)],
        [0.5, () => min],
        [0.5, () => max],
      ])();
      const near = field === "after" && this.#fenced !== undefined && chance.maybe(0.8);
      const found = near ? this.#own.head(this.#fenced!) : number;
      if (typeof found === "number" && found >= min && found <= max && Number.isInteger(found)) return found;
    }
    return Math.max(min, Math.min(max, 1));
  }

  /** A user's value: any JSON, and envelopes. */
  #userValue(field: string): unknown {
    const chance = this.#chance;
    return chance.weighted<() => unknown>([
      [4, () => this.#seen(field)],
      [3, () => ({ a: chance.int(10), b: [null, true, "x"] })],
      [2, () => chance.oneOf(oddTexts)],
      [0.3, () => strangeValue(chance)], // rarely, because breaking a request does this too
      [0.2, () => "f".repeat(chance.oneOf([1_000, 60_000, 1_000_000]))],
      [0.1, () => Array.from({ length: 5_000 }, (_, k) => k)],
    ])();
  }

  #list(
    element: Schema,
    { min = 0, max = 1_000 }: Bounds,
    inner: (child: unknown, step: number) => unknown,
  ): unknown[] {
    const chance = this.#chance;
    const length = Math.max(min, chance.oneOf([0, 1, 1, 1, 1, 2, 3]));
    const items = Array.from({ length }, (_, k) => inner(element, k));
    if (items.length === 0 || !chance.maybe(0.02) || JSON.stringify(items).length > 2_000) return items;
    const first = items[0];
    return Array.from({ length: Math.min(max, 1_000) }, () => first); // the maximum
  }

  #object(schema: Schema, def: Def, path: Path, inner: (child: unknown, step: string) => unknown): unknown {
    const chance = this.#chance;
    this.#at(path, "object", {}, undefined);
    if (schema === newRecord && chance.maybe(0.7)) {
      const kind = chance.oneOf(recordKinds);
      return { kind, data: this.of(recordSchemas[kind], "data", [...path, "data"]) };
    }
    const shape = def.shape as Readonly<Record<string, Schema>>;
    const names = Object.keys(shape);
    const foreign = this.#other !== undefined && chance.maybe(0.2);
    const seen = chance.maybe(0.45) ? (foreign ? this.#other : this.#own)?.object(names, chance) : undefined;
    const drawn: Record<string, unknown> = {};
    for (const name of names) {
      const known = seen?.[name];
      const fits = known !== undefined && accepts(shape[name]!, known);
      const value = fits ? known : inner(shape[name], name);
      if (value !== undefined) drawn[name] = value;
      if (name === "journal" && "nonce" in shape) this.#fenced = Number(value);
      else if (name === "fence") this.#fenced = (value as { journal?: number } | undefined)?.journal;
    }
    return drawn;
  }

  /** An object whose names the user chooses. */
  #record(schema: Schema, def: Def, inner: (child: unknown, step: string) => unknown): Record<string, unknown> {
    const chance = this.#chance;
    const described = z.globalRegistry.get(schema)?.additionalProperties as z.core.JSONSchema.JSONSchema | undefined;
    const of = def.type === "record" ? def.valueType : described && z.fromJSONSchema(described);
    if (of === undefined) throw new Error("the fuzzer cannot draw a custom schema without additionalProperties");
    const count = chance.maybe(0.02) ? 256 : chance.between(0, 3);
    const names = Array.from({ length: count }, (_, k) =>
      chance.maybe(0.1) ? chance.oneOf(oddTexts) : chance.oneOf([`n${k}`, "usd", "of"]),
    );
    return Object.fromEntries(names.filter((name) => !forbidden.has(name)).map((name) => [name, inner(of, name)]));
  }
}

const forbidden: ReadonlySet<string> = new Set(["__proto__", "constructor"]);

function accepts(schema: Schema, value: unknown): boolean {
  try {
    return z.safeDecode(schema as z.ZodType, value as never).success;
  } catch {
    return false; // a codec rejected it
  }
}

function boundsOf({ checks = [] }: Def): Bounds {
  const found: { min?: number; max?: number; patterns: RegExp[] } = { patterns: [] };
  for (const { _zod } of checks) {
    const { check, minimum, maximum, value, inclusive, pattern } = _zod.def;
    if (check === "min_length") found.min = minimum as number;
    if (check === "max_length") found.max = maximum as number;
    if (check === "greater_than") found.min = Number(value) + (inclusive === true ? 0 : 1);
    if (check === "less_than") found.max = Number(value) - (inclusive === true ? 0 : 1);
    if (pattern instanceof RegExp) found.patterns.push(pattern);
  }
  return found;
}
