import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { patched } from "./bug.ts";
import { bugs } from "./bugs/index.ts";
import { kinds } from "./kinds.ts";

const sources = join(resolve(import.meta.dirname, "../.."), "src");

describe("a planted bug", () => {
  const patch = { file: "a.ts", find: "x", replace: "y" };

  it("is planted where its text occurs exactly once", () => {
    expect(patched("a x b", patch)).toBe("a y b");
    expect(() => patched("a b", patch)).toThrow("a.ts has 0 times");
    expect(() => patched("x x", patch)).toThrow("a.ts has 2 times");
  });

  it("inserts its replacement literally", () => {
    expect(patched("a x b", { ...patch, replace: "$& $1" })).toBe("a $& $1 b");
  });

  it.each(bugs.map((bug) => [bug.name, bug] as const))("%s fits the current sources", (_name, { patches }) => {
    const texts = new Map<string, string>();
    for (const one of patches) {
      const before = texts.get(one.file) ?? readFileSync(join(sources, one.file), "utf8");
      const after = patched(before, one);
      expect(after).not.toBe(before);
      texts.set(one.file, after);
    }
  });

  it("of some kind exists for every kind of plan", () => {
    expect(Object.keys(kinds).filter((kind) => !bugs.some((bug) => bug.kind === kind))).toEqual([]);
  });
});
