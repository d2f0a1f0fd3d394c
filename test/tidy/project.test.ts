import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { readFiles, repositoryPaths, root } from "./files.ts";
import { commitSubjects, maxSubject, subjectsSince } from "./rules/commits.ts";
import { documentation } from "./rules/documented.ts";
import {
  fileNames,
  fileSizes,
  maxLines,
  maxMedian,
  maxStatementFiles,
  medianSize,
  statementFiles,
  testFolders,
} from "./rules/files.ts";
import { brokenLinks, missingPaths } from "./rules/links.ts";
import {
  dependencyReasons,
  errorSections,
  foreignPlaces,
  type Lookup,
  lockedByHash,
  type Manifest,
  manifestRules,
  publishedInstallScripts,
} from "./rules/project.ts";

/** The rule for subjects holds for commits after this one. */
const base = "684d6849a3c5864d8ff8bc7cee14009989571ee8";
/** A name that says everything needs no comment; there are few. */
const maxUndocumented = 0.1;

const paths = repositoryPaths();
const read = (path: string) => readFileSync(join(root, path), "utf8");
const manifest = JSON.parse(read("package.json")) as Manifest;

const installed: Lookup = (name, from) => {
  const folder = join(from, "node_modules", name);
  if (existsSync(join(folder, "package.json"))) {
    const found = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
    return { folder, manifest: found, compiles: existsSync(join(folder, "binding.gyp")) };
  }
  return from === dirname(from) ? undefined : installed(name, dirname(from));
};

describe("package.json", () => {
  it("holds", () => expect(manifestRules(manifest, read("package-lock.json"))).toEqual([]));

  it("can fail", () => {
    const good: Manifest = { engines: { node: "^22.22.2 || ^24.14.1 || >=25.8.2" }, license: "Apache-2.0" };
    const empty = '{"packages":{}}';
    expect(manifestRules(good, empty)).toEqual([]);
    expect(manifestRules({ ...good, engines: { node: ">=24" } }, empty)).toHaveLength(1);
    expect(manifestRules({ ...good, engines: { node: ">=20" } }, empty)).toHaveLength(1);
    expect(manifestRules({ ...good, license: "MIT" }, empty)).toHaveLength(1);
    expect(manifestRules({ ...good, scripts: { prepare: "a", postinstall: "b", prepack: "c" } }, empty)).toHaveLength(
      2,
    );
    expect(manifestRules(good, '{"packages":{"a":{"resolved": "https://example.org/a.tgz"}}}')).toHaveLength(1);
    for (const version of ["^1.2.3", "~1.2.3", "1.x", "*", "latest", "npm:a@^1.2.3", "https://example.org/a.tgz"]) {
      expect(manifestRules({ ...good, devDependencies: { a: version } }, empty)).toHaveLength(1);
    }
    for (const version of ["1.2.3", "1.2.3-beta.4", "npm:a@1.2.3", "npm:@a/b@1.2.3", "file:tools/node"]) {
      expect(manifestRules({ ...good, dependencies: { a: version } }, empty)).toEqual([]);
    }
  });

  it("the trees of frameworks are pinned and locked too", () => {
    const folders = paths.filter((path) => /^tools\/outside\/[^/]+\/package\.json$/.test(path)).map(dirname);
    expect(folders.length).toBeGreaterThan(0);
    for (const folder of folders) {
      const { dependencies } = JSON.parse(read(join(folder, "package.json"))) as Manifest;
      const pinned = { engines: manifest.engines, license: "Apache-2.0", dependencies } as Manifest;
      expect(manifestRules(pinned, read(join(folder, "package-lock.json")))).toEqual([]);
    }
  });

  it("what is locked is locked by its hash", () => {
    const lock = (entry: object) => JSON.stringify({ packages: { "": {}, "node_modules/a": entry } });
    const integrity = `sha512-${"A".repeat(86)}==`;
    expect(lockedByHash(lock({ version: "1.0.0", integrity }))).toEqual([]);
    expect(lockedByHash(lock({ resolved: "tools/node", link: true }))).toEqual([]);
    expect(lockedByHash(lock({ version: "1.0.0" }))).toHaveLength(1);
    expect(lockedByHash(lock({ version: "1.0.0", integrity: "sha1-Kq0=" }))).toHaveLength(1);
  });
});

describe("dependencies", () => {
  it("each has its reason in docs/dependencies.md", () => {
    expect(dependencyReasons(manifest, read("docs/dependencies.md"))).toEqual([]);
  });

  it("no reason is missing, left over or given twice", () => {
    const sample: Manifest = { dependencies: { a: "1.0.0" }, devDependencies: { "@b/c": "1.0.0" } };
    expect(dependencyReasons(sample, "| name | why |\n| `a` | x |\n| `@b/c` | y |\n")).toEqual([]);
    expect(dependencyReasons(sample, "| `a` | x |\n| `a` | x |\n| `d` | z |\n")).toHaveLength(3);
  });

  it("what we publish installs without scripts", () => {
    expect(publishedInstallScripts(manifest, root, installed)).toEqual([]);
  });

  it("finds a script at any depth", () => {
    const tree: Record<string, Manifest> = {
      a: { dependencies: { b: "1" }, optionalDependencies: { absent: "1" } },
      b: { dependencies: { c: "1", a: "1" }, scripts: { test: "x" } },
      c: { scripts: { postinstall: "node-gyp rebuild" } },
    };
    const lookup: Lookup = (name) => tree[name] && { folder: name, manifest: tree[name], compiles: false };
    expect(publishedInstallScripts({ dependencies: { a: "1" } }, "", lookup)).toEqual([
      expect.stringContaining("a > b > c"),
    ]);
    expect(publishedInstallScripts({ dependencies: { absent: "1" } }, "", lookup)).toHaveLength(1);
    const gyp: Lookup = () => ({ folder: "a", manifest: {}, compiles: true });
    expect(publishedInstallScripts({ dependencies: { a: "1" } }, "", gyp)).toHaveLength(1);
  });
});

describe("errors", () => {
  it("docs/errors.md has a section for each code and none more", async () => {
    const { errorTable } = (await import("../../src/model/errors.ts")) as { errorTable: Record<string, object> };
    expect(Object.keys(errorTable).length).toBeGreaterThan(0);
    expect(errorSections(Object.keys(errorTable), read("docs/errors.md"))).toEqual([]);
  });

  it("no section is missing, left over or given twice", () => {
    expect(errorSections(["TAPE_A"], "# Errors\n## How to read\n## TAPE_A\n")).toEqual([]);
    expect(errorSections(["TAPE_A", "TAPE_B"], "## TAPE_A\n### TAPE_B\n## TAPE_C\n## TAPE_A\n")).toHaveLength(3);
    expect(errorSections(["TAPE_A"], "## TAPE_A: stale\n")).toHaveLength(2);
  });
});

describe("the project speaks of itself alone", () => {
  it("holds", () => expect(foreignPlaces(readFiles(paths))).toEqual([]));

  it("can fail", () => {
    // Put together here, or this file would break the rule.
    const path = (...parts: string[]) => ["", ...parts].join("/");
    const host = ["registry", "npmjs", "org"].join(".");
    const sample = (text: string, name = "a.md") => foreignPlaces([{ path: name, text }]);
    for (const folder of ["work", "root", "home"]) expect(sample(`see ${path(folder, "a", "b")}`)).toHaveLength(1);
    expect(sample(`file://${path("work", "a")}`)).toHaveLength(1);
    expect(sample(`"https://${host}/a"`)).toHaveLength(1);
    expect(sample(`"resolved": "https://${host}/a"`, "package-lock.json")).toEqual([]);
    expect(sample("the home/work balance of network/home/a, registry.ts and npm.test(a)")).toEqual([]);
  });
});

describe("links", () => {
  it("of every Markdown file lead somewhere", () => {
    expect(brokenLinks(readFiles(paths.filter((path) => path.endsWith(".md"))), paths)).toEqual([]);
  });

  it("are not needed for paths in backticks, which exist too", () => {
    const pages = readFiles(paths.filter((path) => path.endsWith(".md") && !path.startsWith("template/")));
    expect(missingPaths(pages, paths)).toEqual([]);
    const from = (text: string) => missingPaths([{ path: "docs/a.md", text }], ["src/a/b.ts", "docs/a.md"]);
    expect(from("`src/a/b.ts` `src/a/` `src/a` `a/b.ts` `src/<name>/b.ts`")).toEqual([]);
    expect(from("`src/a/c.ts` and `test/a`")).toHaveLength(2);
  });

  it("can be broken", () => {
    const repository = ["README.md", "docs/a.md", "docs/b.md", "docs/c d.md"];
    const from = (path: string, text: string) => brokenLinks([{ path, text }], repository);
    expect(from("docs/a.md", "[b](b.md#x) [up](../README.md) [folder](../docs/) [s](c%20d.md) [i](#here)")).toEqual([]);
    expect(from("README.md", "[web](https://example.org/x.md) `[no](link.md)`\n```\n[no](link.md)\n```\n")).toEqual([]);
    expect(from("README.md", "[b](b.md)")).toHaveLength(1);
    expect(from("docs/a.md", "![b](docs/b.md)")).toHaveLength(1);
    expect(from("docs/a.md", "[b]: ./no.md")).toHaveLength(1);
    expect(from("docs/a.md", '<img src="no.png">')).toHaveLength(1);
  });
});

describe("files", () => {
  const code = readFiles(paths.filter((path) => /\.tsx?$/.test(path)));
  const inSrc = code.filter(({ path }) => /^(src|testkit|simulation)\//.test(path));
  const file = (lines: number) => ({ path: "src/base/a.ts", text: "\n".repeat(lines) });

  it(`of the package have at most ${maxLines} lines`, () => {
    expect(fileSizes(inSrc)).toEqual([]);
    expect(fileSizes([file(maxLines)])).toEqual([]);
    expect(fileSizes([file(maxLines + 1)])).toHaveLength(1);
    expect(fileSizes([{ ...file(maxLines + 1), path: "src/base/a.gen.ts" }])).toEqual([]);
  });

  it(`have a median of at most ${maxMedian} lines`, () => {
    expect(medianSize(code)).toEqual([]);
    expect(medianSize(inSrc)).toEqual([]);
    expect(medianSize([file(1), file(maxMedian), file(maxLines)])).toEqual([]);
    expect(medianSize([file(1), file(maxMedian + 1), file(maxLines)])).toHaveLength(1);
  });

  it(`with statements are at most ${maxStatementFiles}`, () => {
    expect(statementFiles(paths)).toEqual([]);
    const many = Array.from({ length: maxStatementFiles + 1 }, (_, k) => `src/store/sqlite/sql/t${k}.sql`);
    expect(statementFiles(many)).toHaveLength(1);
    expect(statementFiles(many.slice(1))).toEqual([]);
  });

  it("of tests stand in folders of their subjects", () => {
    expect(testFolders(paths)).toEqual([]);
    const repository = ["src/lease/a.ts", "tools/fuzz/a.ts", "test/lease/a.test.ts", "test/fuzz/a.test.ts"];
    expect(testFolders([...repository, "test/tidy/a.test.ts", "test/run.test.ts"])).toEqual([]);
    expect(testFolders([...repository, "test/gone/a.test.ts"])).toHaveLength(1);
  });

  it("have names in kebab-case", () => {
    expect(fileNames(paths)).toEqual([]);
    expect(fileNames(["src/a/runDriver.ts", "src/a/run_driver.ts", "docs/Stores.md"])).toHaveLength(3);
    const fine = ["README.md", "src/a/run-driver.ts", "test/a.test.ts", "src/a/migrations/0001_initial.sql"];
    expect(fileNames(fine)).toEqual([]);
  });
});

describe("public names", () => {
  const published = readFiles(paths.filter((path) => /^(src|testkit)\/.*\.ts$/.test(path)));

  it.each(["src/exports/index.ts", "testkit/index.ts"])("of %s are documented", (index) => {
    const { exported, undocumented } = documentation(index, published);
    expect(exported).toBeGreaterThan(10);
    const missing = undocumented.map(({ path, line, name }) => `${path}:${line} ${name} has no doc comment`);
    expect(missing.slice(0, undocumented.length > exported * maxUndocumented ? undefined : 0)).toEqual([]);
  });

  it("may be declared behind several re-exports; a comment counts only where it is one of documentation", () => {
    const files = [
      { path: "src/exports/index.ts", text: 'export { type A, b } from "../a/a.ts"; export { c } from "../a/b.ts";' },
      { path: "src/a/a.ts", text: '/** A. */\nexport interface A {}\nexport { b } from "./b.ts";' },
      { path: "src/a/b.ts", text: "// b\nexport const b = 1;\n\n/** c */\nexport function c() {}" },
    ];
    expect(documentation("src/exports/index.ts", files)).toEqual({
      exported: 3,
      undocumented: [{ path: "src/a/b.ts", line: 2, name: "b" }],
    });
  });
});

describe("commits", () => {
  it("have short subjects", () => expect(commitSubjects(subjectsSince(base))).toEqual([]));

  it("are not read where there is no repository with this commit", () => {
    expect(subjectsSince("0".repeat(40))).toEqual([]);
    expect(subjectsSince("HEAD")).toEqual([]);
  });

  it("can have a subject that is too long, or ends with a full stop", () => {
    expect(commitSubjects(["a".repeat(maxSubject), "b".repeat(maxSubject + 1), "Mend c."])).toHaveLength(2);
  });
});
