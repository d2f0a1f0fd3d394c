import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, matchesGlob } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { anchors, slug } from "../../tools/reference/slug.ts";
import { deadLinks } from "../../tools/site/built-links.ts";
import { misplaced, placed, projectPages, titleOf } from "../../tools/site/navigation.ts";
import { headingsIn, linksOf, resolveLink, withLinks } from "../../tools/site/page-links.ts";
import { docsPages, root } from "../../tools/site/stage.ts";
import { manifestRules } from "../tidy/rules/project.ts";

const read = (path: string): string => readFileSync(join(root, path), "utf8");
const pages = docsPages();
const files = [
  ...pages.map((page) => `docs/${page}.md`),
  "README.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
];

/** Links to a section that no heading has. */
function wrongAnchors(texts: ReadonlyMap<string, string>): string[] {
  const known = new Map([...texts].map(([path, text]) => [path, new Set(anchors(headingsIn(text)))]));
  return [...texts].flatMap(([page, text]) =>
    linksOf(text).flatMap(({ target }) => {
      const { path, anchor } = resolveLink(page, target);
      return anchor === "" || known.get(path)?.has(anchor) !== false ? [] : [`${page}: ${target} leads to no heading`];
    }),
  );
}

describe("the pages of docs", () => {
  it("stand in the navigation once each, with a title", () => {
    expect(pages.length).toBeGreaterThan(70);
    expect(misplaced(pages)).toEqual([]);
    expect(pages.filter((page) => titleOf(read(`docs/${page}.md`)) === "")).toEqual([]);
    expect(Object.keys(projectPages).filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  it("may not be missing there, nor be named without existing", () => {
    expect(misplaced([...pages, "lost"])).toEqual([expect.stringContaining("docs/lost.md")]);
    expect(misplaced(pages.filter((page) => page !== "leases"))).toEqual([expect.stringContaining("docs/leases.md")]);
    const guides = placed(["guides/b", "guides/a", "guides/index"]).find(({ section }) => section.title === "Guides");
    expect(guides?.pages.slice(0, 2)).toEqual(["guides/index", "guides/a"]);
  });

  it("link to headings that exist", () => {
    expect(wrongAnchors(new Map(files.map((path) => [path, read(path)])))).toEqual([]);
    const wrong = wrongAnchors(
      new Map([
        ["docs/a.md", "# A\n## The `b` (c)\n[x](#the-b-c) [y](#the-b) [z](b.md#no) `[n](#no)`"],
        ["docs/b.md", "# B"],
      ]),
    );
    expect(wrong).toHaveLength(2);
  });

  it("get the anchors of code hosts", () => {
    expect(slug("`tape.yaml` in two words: why?")).toBe("tapeyaml-in-two-words-why");
    expect(anchors(["Effect", "effect", "Effect"])).toEqual(["effect", "effect-1", "effect-2"]);
    expect(withLinks('[a](b.md) `[c](d.md)` <img src="e.png">', (target) => `x/${target}`)).toBe(
      '[a](x/b.md) `[c](d.md)` <img src="x/e.png">',
    );
  });
});

describe("the README", () => {
  const { files: published } = JSON.parse(read("package.json")) as { files: string[] };
  const isPublished = (path: string): boolean =>
    ["README.md", "LICENSE"].includes(path) || published.some((glob) => matchesGlob(path, glob));

  it("has under 120 lines, and its links lead to files of the package", () => {
    expect(read("README.md").split("\n").length).toBeLessThan(120);
    const links = linksOf(read("README.md")).map(({ target }) => resolveLink("README.md", target).path);
    expect(links.length).toBeGreaterThan(50);
    expect(links.filter((path) => !isPublished(path))).toEqual([]);
    expect(isPublished("src/base/clock.ts")).toBe(false);
  });
});

describe("the site", () => {
  it("is built by packages that are pinned and locked", () => {
    const { dependencies, overrides } = JSON.parse(read("tools/site/package.json")) as Record<
      string,
      Record<string, string>
    >;
    const pinned = {
      engines: JSON.parse(read("package.json")).engines,
      license: "Apache-2.0",
      dependencies: { ...dependencies, ...overrides },
    };
    expect(manifestRules(pinned, read("tools/site/package-lock.json"))).toEqual([]);
  });

  it("would not pass with a dead link or anchor", async () => {
    const folder = await mkdtemp(join(tmpdir(), "tape-site-"));
    afterAll(() => rm(folder, { recursive: true, force: true }));
    await mkdir(join(folder, "api"));
    await writeFile(
      join(folder, "index.html"),
      '<a href="/api/index.html#x">a</a> <a href="./api/#y">b</a> <img src="/no.png">',
    );
    await writeFile(
      join(folder, "api", "index.html"),
      '<h2 id="x">X</h2> <a href="../index">c</a> <a href="https://example.org">d</a> <a href="#z">e</a>',
    );
    const { checked, dead } = deadLinks(folder);
    expect(checked).toBe(5);
    expect(dead).toEqual([
      expect.stringContaining("#y leads to no anchor"),
      expect.stringContaining("/no.png leads to no file"),
      expect.stringContaining("#z leads to no anchor"),
    ]);
  });
});
