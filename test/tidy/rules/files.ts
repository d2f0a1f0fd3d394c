import type { SourceFile } from "../files.ts";
import { isNode, type Node, nameOf, parse } from "../syntax.ts";
import { wordsOf } from "./vocabulary.ts";

export const maxLines = 400;
/** Each is one class or interface, which is easier to follow in one file than in two. */
const oneClass: Readonly<Record<string, number>> = {
  "src/engine/drive/drive.ts": 500,
  "src/host/tape.ts": 500,
  "src/sdk/context.ts": 450,
  "testkit/projection-tables.ts": 420,
};

/** Written by a program and read by the compiler. */
const isGenerated = ({ path }: SourceFile): boolean => path.endsWith(".gen.ts");

const linesOf = ({ text }: SourceFile): number => text.replace(/\n$/, "").split("\n").length;

export function fileSizes(files: SourceFile[]): string[] {
  return files
    .filter((file) => !isGenerated(file) && linesOf(file) > (oneClass[file.path] ?? maxLines))
    .map((file) => `${file.path} has ${linesOf(file)} lines; split it by what it does, at most ${maxLines} each`);
}

/** Readers open one file at a time: half of them must fit on two screens. */
export const maxMedian = 95;

export function medianSize(files: SourceFile[]): string[] {
  const sizes = files.map(linesOf).sort((a, b) => a - b);
  const median = sizes[Math.floor(sizes.length / 2)] ?? 0;
  return median > maxMedian
    ? [`the median file has ${median} lines, at most ${maxMedian} are allowed; split some`]
    : [];
}

/** Statements are grouped by table; many small files would hide which statements touch a table. */
export const maxStatementFiles = 44;

export function statementFiles(paths: string[]): string[] {
  const found = paths.filter((path) => /^src\/store\/.*\/sql\/[^/]+\.sql$/.test(path));
  if (found.length <= maxStatementFiles) return [];
  return [`${found.length} files of statements, at most ${maxStatementFiles}; put a statement into its table's file`];
}

const kebabCase = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z]+)*\.[a-z]+$/;
/** A migration's number is followed by an underscore, as in every tool for migrations. */
const migration = /\/migrations\/\d{4}_[a-z0-9_]+\.sql$/;

export function fileNames(paths: string[]): string[] {
  return paths
    .filter((path) => /\.(tsx?|mjs|js|sql|css|md)$/.test(path) && !/(^|\/)[A-Z]+\.md$/.test(path))
    .filter((path) => !kebabCase.test(path.split("/").at(-1)!) && !migration.test(path))
    .map((path) => `${path}: write file names in kebab-case`);
}

/** Folders of test/ whose subject is no folder of the repository. */
const ownSubject: Readonly<Record<string, string>> = {
  attacks: "what a caller may not do",
  brokers: "sinks on real brokers, which npm does not have",
  nodes: "the packed package on other versions of Node",
  spanner: "the store on Google's emulator, which npm does not have",
  browser: "the dashboard in a real browser",
  "first-hour": "the guides, followed from the packed tarball",
  golden: "stores that earlier releases wrote",
  package: "the published package",
  shards: "several PostgreSQL servers behind one store, which takes minutes",
  planted: "bugs planted in src, which the simulation must find",
  postgres: "PostgreSQL servers for tests",
  processes: "real processes that are killed and paused",
  "run-fixtures": "fixtures of test/run.ts",
  seeds: "the snippets of docs/seeds.md",
  testing: "the files of testkit, published as durable-tape/testing",
  tidy: "these rules",
  types: "what must compile, and what must not",
};

/** A test stands in the folder of its subject. */
export function testFolders(paths: string[]): string[] {
  const folders = new Set(paths.flatMap((path) => /^test\/([^/]+)\//.exec(path)?.[1] ?? []));
  const subjects = ["src/", "tools/", "testkit/", ""];
  return [...folders]
    .filter((folder) => !ownSubject[folder])
    .filter((folder) => !subjects.some((place) => paths.some((path) => path.startsWith(`${place}${folder}/`))))
    .map((folder) => `test/${folder} has no subject of that name; move its tests to the folder of what they test`);
}

/** Parts of names that say where a file came from, not what it holds. */
const emptyParts = /-(words|others)\b|\b(gaps|misc|various|stuff)\b/;

/** A file is named after its subject, which is its class where it exports one. */
export function subjectNames(files: SourceFile[]): string[] {
  return files.flatMap((file) => {
    const name = file.path.split("/").at(-1)!;
    const empty = emptyParts.exec(name)?.[0];
    if (empty) return [`${file.path}: "${empty}" does not say what the file holds; name its subject`];
    if (!/\.tsx?$/.test(name)) return [];
    const classes = exportedClasses(file);
    if (classes.length !== 1) return [];
    const words = wordsOf(name.replace(/\..*$/, ""));
    const inClass = wordsOf(classes[0]!);
    if (words.some((word) => inClass.some((other) => other.startsWith(word) || word.startsWith(other)))) return [];
    return [`${file.path} exports the class ${classes[0]} and shares no word with it; rename one of them`];
  });
}

/** But for errors, which stand beside what throws them. */
function exportedClasses(file: SourceFile): string[] {
  return (parse(file).body as Node[]).flatMap((statement) => {
    const declared = statement.type === "ExportNamedDeclaration" ? statement.declaration : undefined;
    if (!isNode(declared) || declared.type !== "ClassDeclaration") return [];
    const parent = nameOf(declared.superClass) ?? "";
    return /Error$|^NotSent$|^DefiniteFailure$/.test(parent) ? [] : [nameOf(declared.id) ?? ""];
  });
}
