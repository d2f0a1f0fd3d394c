import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { errorTable } from "../../src/model/errors.ts";
import { parseDoc } from "../../tools/reference/doc-comment.ts";
import { entryPoints } from "../../tools/reference/entry-points.ts";
import { missingDocs } from "../../tools/reference/missing-docs.ts";
import { readEntryPoint, readPages } from "../../tools/reference/model.ts";
import { pageText } from "../../tools/reference/page.ts";
import { reference } from "../../tools/reference/pages.ts";
import { defaultOf, unitOf } from "../../tools/reference/prose.ts";
import { root } from "../../tools/reference/syntax.ts";

const pages = readPages();
const folder = join(root, "docs", "api");
const exportsIn = (path: string) => readFileSync(join(root, path), "utf8");

describe("the API reference", () => {
  it("is fresh: `npm run reference` writes it", () => {
    const files = reference(pages);
    expect(readdirSync(folder).sort()).toEqual([...files.keys()].sort());
    for (const [name, text] of files) {
      expect(readFileSync(join(folder, name), "utf8") === text, `docs/api/${name} is stale: npm run reference`).toBe(
        true,
      );
    }
  });

  it("has every entry point of package.json", () => {
    const { exports } = JSON.parse(exportsIn("package.json")) as { exports: Record<string, unknown> };
    const subpaths = Object.keys(exports).filter((path) => !path.endsWith(".json"));
    expect(entryPoints.map(({ specifier }) => specifier.replace("durable-tape", ".")).sort()).toEqual(subpaths.sort());
  });

  it("has a sentence for every export and member, a default for every option, an example for every function", () => {
    expect(pages.flatMap((page) => page.exports).length).toBeGreaterThan(500);
    expect(missingDocs(pages)).toEqual([]);
  });

  it("names only error codes that exist", () => {
    const named = [...reference(pages).values()].flatMap((text) => text.match(/errors\.md#tape_\w+/g) ?? []);
    expect(named.length).toBeGreaterThan(50);
    const codes = Object.keys(errorTable).map((code) => `errors.md#${code.toLowerCase()}`);
    expect([...new Set(named)].filter((one) => !codes.includes(one))).toEqual([]);
  });
});

describe("an incomplete declaration", () => {
  const made = mkdtemp(join(tmpdir(), "tape-reference-"));
  afterAll(async () => rm(await made, { recursive: true, force: true }));

  const described = async (name: string, source: string) => {
    const file = join(await made, `${name}.ts`);
    await writeFile(file, source);
    const exports = readEntryPoint({ file, specifier: "durable-tape", about: "" });
    return { page: name, title: name, about: "A sample.", guide: undefined, specifier: "durable-tape", exports };
  };

  it("is refused: an export, a member, a default, an example", async () => {
    const source = `
      export interface Bare { /** A. */ readonly a: string; }
      /** Options. */
      export interface SomeOptions { readonly unsaid?: string; /** How long. */ readonly wait?: number; /** B. Default 5. */ readonly b?: number }
      /** Does. */
      export function act(): void {}`;
    expect(missingDocs([await described("gaps", source)]).map((gap) => gap.replace(/^\S+: /, ""))).toEqual([
      "Bare has no doc comment",
      "SomeOptions.unsaid has no doc comment",
      expect.stringContaining("SomeOptions.wait does not state its default"),
      "act has no @example",
    ]);
  });

  it("is complete with them, and its page shows signature, default, unit, errors and example", async () => {
    const source = `
      /** Where to go. */
      export interface WalkOptions { /** How far. Default 5. */ readonly lengthBytes?: number; /** Until when. */ readonly endsAt: number }
      /**
       * Walks. Then rests.
       *
       * @throws TAPE_BAD_INPUT if it is too far.
       * @example
       * walk("home", { endsAt: 1 });
       */
      export function walk(to: string, options: WalkOptions = { endsAt: 0 }): Promise<void> { throw new Error(to + options.endsAt); }`;
    const page = await described("whole", source);
    expect(missingDocs([page])).toEqual([]);
    const text = pageText(page, (name) => `[${name}](#)`);
    expect(text).toContain("function walk(to: string, options: WalkOptions = { endsAt: 0 }): Promise<void>");
    expect(text).toContain("| `lengthBytes?` | `number`, bytes | 5 | How far. |");
    expect(text).toContain("| `endsAt` | `number`, ms since 1970 |  | Until when. |");
    expect(text).toContain("- [`TAPE_BAD_INPUT`](../errors.md#tape_bad_input) if it is too far.");
    expect(text).toContain('```typescript\nwalk("home", { endsAt: 1 });\n```');
  });

  it("may state a default in several ways", () => {
    const of = (text: string) => defaultOf(parseDoc(` ${text} `));
    expect(of("How long. Default 1.5 s.")).toBe("1.5 s");
    expect(of("The result; default: the body.")).toBe("the body");
    expect(of("`inline` (default): here. `outbox`: there.")).toBe("`inline`");
    expect(of("No default: a 404 may be a wrong path.")).toBeUndefined();
    expect(unitOf("ttlMs", "number")).toBe("ms");
    expect(unitOf("items", "number")).toBe("");
  });
});
