import { describe, expect, inject, it } from "vitest";
import { z } from "zod";
import { routes } from "../../src/protocol/contract.ts";
import { Chance } from "../../tools/fuzz/chance.ts";
import { Draw } from "../../tools/fuzz/draw.ts";
import { memoryFinding } from "../../tools/fuzz/drift.ts";
import { Fuzzer, type FuzzOptions, type FuzzReport } from "../../tools/fuzz/fuzz.ts";
import { jsonText } from "../../tools/fuzz/json.ts";
import { Pool } from "../../tools/fuzz/pool.ts";
import { type Backend, backends, freshStore } from "../attacks/open-ground.ts";
import { crash, type Weakness, weaknesses } from "./weaknesses.ts";

async function fuzz(backend: Backend, options: Omit<FuzzOptions, "store">): Promise<FuzzReport> {
  const { url, clear } = await freshStore(backend, () => inject("postgres18"));
  try {
    return await Fuzzer.run({ store: url, ...options });
  } finally {
    await clear();
  }
}

const planted = (some: readonly Weakness[]) => ({
  seed: "planted",
  only: some.map(({ route }) => route),
  patches: some.map(({ patch }) => patch),
});

const shortRounds = 4;
/** More than it takes, by a multiple; a weakness that is not found by then is not found. */
const patience = 40;

describe("the fuzzer", () => {
  it.each(backends)("finds nothing in a short look at %s", async (backend) => {
    const { findings, census } = await fuzz(backend, { seed: "suite", enough: (rounds) => rounds === shortRounds });
    expect(findings).toEqual([]);
    expect(census.judgedLooks).toBeGreaterThan(1);
    expect(census.requests).toBeGreaterThan(100);
    for (const outcome of ["accepted", "read", "refused"] as const)
      expect(census.of(outcome), outcome).toBeGreaterThan(0);
  });

  it("finds each weakness that is planted in the server", async () => {
    const missing = (found: readonly { readonly rule: string }[]) =>
      weaknesses.filter(({ rule }) => !found.some((one) => one.rule === rule)).map(({ name }) => name);
    const { findings } = await fuzz("sqlite", {
      ...planted(weaknesses),
      enough: (rounds, found) => rounds === patience || missing(found).length === 0,
    });
    expect(missing(findings)).toEqual([]);
    for (const { route, rule } of weaknesses) {
      const found = findings.find((one) => one.rule === rule)!;
      expect(found.shots, rule).toHaveLength(1); // the one that did it, out of those that were sent with it
      expect(found.shots[0]!.route, rule).toBe(route);
    }
  });

  it("finds a request that ends the server", async () => {
    const { findings } = await fuzz("sqlite", { ...planted([crash]), enough: (rounds) => rounds === patience });
    expect(findings.map(({ rule }) => rule)).toEqual(["crash"]);
    expect(findings[0]!.words).toContain("planted");
  });

  it("finds memory that grows, and none that does not", () => {
    const readings = (grows: number) =>
      Array.from({ length: 40 }, (_, k) => ({ heap: 30e6 + k * grows, outside: 1e6, rss: 150e6 + (k % 5) * 1e6 }));
    expect(memoryFinding(readings(0))).toBeUndefined();
    expect(memoryFinding(readings(1e6))).toMatchObject({ rule: "memory" });
  });
});

describe("what is drawn from a schema", () => {
  const parts = routes.flatMap((route) =>
    (["params", "query", "body"] as const).flatMap((part) => {
      const schema: z.ZodType | undefined = route[part];
      return schema === undefined ? [] : [{ name: `${route.name} ${part}`, schema }];
    }),
  );

  it("is what the schema accepts, for every part of every route", () => {
    const own = new Pool("hush-");
    const chance = new Chance("draw");
    for (const { name, schema } of parts) {
      const fits = Array.from({ length: 30 }, () => {
        try {
          return z.safeDecode(schema, JSON.parse(jsonText(new Draw({ chance, own }).of(schema))) as never).success;
        } catch {
          return false; // a value of the user's that is no JSON, or an envelope that the codec refuses
        }
      });
      expect(fits.filter(Boolean).length, name).toBeGreaterThan(5);
    }
  });

  it("is the same for the same seed", () => {
    const drawn = (seed: string) => {
      const chance = new Chance(seed);
      return parts.map(({ schema }) => jsonText(new Draw({ chance, own: new Pool("hush-") }).of(schema)));
    };
    expect(drawn("1")).toEqual(drawn("1"));
    expect(drawn("1")).not.toEqual(drawn("2"));
  });
});
