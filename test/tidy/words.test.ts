import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readFiles, repositoryPaths, root, type SourceFile } from "./files.ts";
import { proseOf } from "./prose.ts";
import { subjectNames } from "./rules/files.ts";
import { bannedNames, bannedPhrases, glossaryTerms, participleTypes, readGlossary } from "./rules/glossary.ts";

const glossary = readGlossary(readFileSync(join(root, "ARCHITECTURE.md"), "utf8"));
const files = readFiles(repositoryPaths());
const sample = readGlossary(`
## Glossary
| word | means | instead of |
|---|---|---|
| **gadget**, **widget** | a thing | \`gizmo\`, \`big…\`, "the gizmo/gizmos", "gizmo at/of" |

| write | instead of |
|---|---|
| works | "gizmoes" |
`);
const at = (path: string, text: string): SourceFile => ({ path, text });
const phrasesIn = (path: string, text: string) => bannedPhrases([at(path, text)], sample);
const namesIn = (text: string) => bannedNames([at("src/base/a.ts", text)], sample);

/** Parsing every file takes a few seconds, and on a busy machine many more. */
const timeout = 180_000;

describe("one concept, one word", { timeout }, () => {
  it("holds in text", () => expect(bannedPhrases(files, glossary)).toEqual([]));

  it("holds in names", () => expect(bannedNames(files, glossary)).toEqual([]));

  it("holds in names of types", () => expect(participleTypes(files)).toEqual([]));

  it("holds in names of files", () => expect(subjectNames(files)).toEqual([]));

  it("the code uses every term of the glossary, which lists each once", () => {
    const code = readFiles(repositoryPaths().filter((path) => /^(src|dashboard\/src)\/.*\.(tsx?|sql)$/.test(path)));
    expect(glossaryTerms(glossary, code.map(({ text }) => text).join("\n"))).toEqual([]);
    expect(glossaryTerms({ ...sample, terms: ["gadget", "gadget", "widget"] }, "a Gadget")).toHaveLength(2);
  });

  it("the tables of the glossary are read", () => {
    expect(sample.terms).toEqual(["gadget", "widget"]);
    expect(sample.names.map(({ word, leading }) => [word, leading])).toEqual([
      ["gizmo", false],
      ["big", true],
    ]);
    expect(sample.phrases.map(({ phrase, instead }) => [phrase, instead])).toEqual([
      ["the gizmo/gizmos", "gadget, widget"],
      ["gizmo at/of", "gadget, widget"],
      ["gizmoes", "works"],
    ]);
    expect(glossary.terms.length).toBeGreaterThan(50);
    expect(glossary.names.length).toBeGreaterThan(50);
    expect(glossary.phrases.length).toBeGreaterThan(30);
  });

  it.each([
    ["a comment", "src/a.ts", "// It is the gizmo."],
    ["a comment across lines", "src/a.ts", "// It is the\n// gizmo."],
    ["a block comment across lines", "src/a.ts", "/**\n * It is the\n * gizmo.\n */"],
    ["a message", "src/a.ts", 'throw new Error("it is the gizmo");'],
    ["a template", "src/a.ts", `log(\`run $${"{id}"} has the gizmo\`);`],
    ["text of a page", "src/a.tsx", "const a = <p>This is the gizmo</p>;"],
    ["a comment of a statement", "src/a.sql", "-- name: a\n-- It is the Gizmo\nselect 1;"],
    ["a document", "docs/a.md", "| a | the gizmos |"],
    ["settings", "a.yaml", "a: 1 # gizmo of a"],
    ["the second table's words", "src/a.ts", "// it gizmoes"],
  ])("refuses a phrase in %s", (_, path, text) => expect(phrasesIn(path, text)).toHaveLength(1));

  it.each([
    ["code of a document", "docs/a.md", "```ts\nthe gizmo\n```\n`the gizmo`"],
    ["code of a comment", "src/a.ts", "// It is `the gizmo`."],
    ["a short string", "src/a.ts", 'const a = "the gizmo";'],
    ["part of a word", "src/a.ts", "// bathe gizmo, the gizmology"],
  ])("allows a phrase in %s", (_, path, text) => expect(phrasesIn(path, text)).toEqual([]));

  it("allows fixed phrases, and the tables themselves", () => {
    const fixed = "// in doubt, told apart, looks up, looked\n// like, runs out of memory";
    expect(bannedPhrases([at("src/a.ts", fixed)], glossary)).toEqual([]);
    expect(bannedPhrases([at("docs/a.md", "ran out")], glossary)).toHaveLength(1);
    expect(phrasesIn("ARCHITECTURE.md", '| gadget | "the gizmo" |')).toEqual([]);
    expect(phrasesIn("ARCHITECTURE.md", "| the gizmo |")).toHaveLength(1);
  });

  it("names the line of a phrase", () => {
    expect(phrasesIn("docs/a.md", "a\nb the\ngizmo")).toEqual(['docs/a.md:2 "the gizmo": write gadget, widget']);
    expect(phrasesIn("src/a.ts", "\n// a\n// b\n// the gizmo\n")[0]).toContain("src/a.ts:4 ");
  });

  it.each(["const gizmo = 1;", "class A { #bigPart = 1; }", "interface MyGizmo {}", "a.big;"])(
    "refuses the name in %s",
    (text) => expect(namesIn(text)).toHaveLength(1),
  );

  it.each(["const gizmos = 1;", "const tooBig = 1;", 'const a = "gizmo";', "// gizmo"])("allows %s", (text) =>
    expect(namesIn(text)).toEqual([]),
  );

  it.each(["interface Queued {}", "type Waiting = string;", "class Locked {}"])("refuses %s", (text) =>
    expect(participleTypes([at("src/a.ts", text)])).toHaveLength(1),
  );

  it.each(["interface QueuedWrite {}", "type Defined<T> = T;", "interface Finding {}", "const queued = 1;"])(
    "allows the type in %s",
    (text) => expect(participleTypes([at("src/a.ts", text)])).toEqual([]),
  );

  it.each([
    ["src/a/gaps-budget.ts", ""],
    ["src/a/plan-others.ts", ""],
    ["src/a/trains.ts", "export class Carriage {}"],
  ])("refuses the file %s %s", (path, text) => expect(subjectNames([at(path, text)])).toHaveLength(1));

  it.each([
    ["src/a/password.ts", ""],
    ["src/store/sqlite/backend.ts", "export class SqliteBackend {}"],
    ["src/a/inline.ts", "export class EffectFailed extends Error {}"],
    ["src/a/trains.ts", "export class Carriage {} export class Engine {}"],
  ])("allows the file %s %s", (path, text) => expect(subjectNames([at(path, text)])).toEqual([]));

  it("a stretch of text knows where it begins", () => {
    expect(proseOf(at("src/a.ts", "\n// a\n\n// b\nconst c = 'd e f';"))).toEqual([
      { line: 2, text: " a" },
      { line: 4, text: " b" },
      { line: 5, text: "d e f" },
    ]);
  });
});
