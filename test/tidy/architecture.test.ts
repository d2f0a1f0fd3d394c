import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readFiles, repositoryPaths, root } from "./files.ts";
import { invariantTests } from "./rules/invariants.ts";
import { engineLayers, layers } from "./rules/layers.ts";

const page = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");

describe("ARCHITECTURE.md", () => {
  it("names the tests of each invariant, and they name it", () => {
    const tests = repositoryPaths().filter(
      (path) => /^(test|testkit)\/.*\.ts$/.test(path) && !/^test\/tidy\//.test(path),
    );
    expect(invariantTests(page, readFiles(tests))).toEqual([]);
    expect([...page.matchAll(/^\| INV-(\d+) \|/gm)].map(([, id]) => Number(id))).toEqual(
      Array.from({ length: 25 }, (_, k) => k + 1),
    );
  });

  it("may not name a test that does not name the invariant, nor leave one out", () => {
    const files = [{ path: "test/a.test.ts", text: 'it("[INV-1] [INV-2] a", f);' }];
    const row = (id: string, path: string) => `| ${id} | text | [a](${path}) |\n`;
    expect(invariantTests(row("INV-1", "test/a.test.ts") + row("INV-2", "test/a.test.ts"), files)).toEqual([]);
    expect(invariantTests(row("INV-1", "test/a.test.ts"), files)).toHaveLength(1);
    expect(invariantTests(row("INV-1", "test/b.test.ts") + row("INV-2", "test/a.test.ts"), files)).toHaveLength(2);
    expect(invariantTests("| INV-3 | text | none |\n", [])).toHaveLength(1);
  });

  it("has the dependency order that is checked", () => {
    const written = (order: readonly (readonly string[])[]) =>
      order.map((layer) => (layer.length > 1 ? `{${layer.join(", ")}}` : layer[0])).join(" · ");
    const inSrc = layers.filter((layer) => !layer.includes("testkit") && !layer.includes("simulation"));
    expect(page).toContain(`\n${written(inSrc)}\n`);
    const engine = written(engineLayers).replace("item, }", "item, the files beside these folders}");
    expect(page).toContain(`Within engine: ${engine}.`);
  });
});
