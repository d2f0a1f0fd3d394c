/** A file of the package, as `npm pack --json` lists it. */
export interface PackedFile {
  readonly path: string;
  readonly size: number;
}

/** What the package may contain. Pages of docs are published as text, with the picture of the README alone. */
const expected =
  /^(bin\/[\w-]+\.c?js|dist\/.+|docs\/[\w/-]+\.md|docs\/images\/run-(light|dark)\.png|template\/.+|package\.json|[A-Z]+\.md|LICENSE)$/;
/** Sources are not published: Node does not load TypeScript from node_modules. The template is copied, not loaded. */
const source = /^(?!template\/).*(?<!\.d)\.tsx?$/;
/** What a project that `init` creates needs. */
const needed = [
  "LICENSE",
  "README.md",
  "bin/durable-tape.js",
  "bin/needs-node.js",
  "package.json",
  "template/tsconfig.json",
];

/** Unpacked. Most of it is the dashboard and the bundle with its libraries. */
const maxBytes = 9_000_000;

/** What is wrong with the content of the package; empty: nothing. */
export function contentProblems(files: readonly PackedFile[]): string[] {
  const paths = files.map(({ path }) => path);
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  return [
    ...paths.filter((path) => !expected.test(path)).map((path) => `${path} does not belong into the package`),
    ...paths.filter((path) => source.test(path)).map((path) => `${path} is a source`),
    ...needed.filter((path) => !paths.includes(path)).map((path) => `${path} is missing`),
    ...(bytes > maxBytes ? [`the files have ${bytes} bytes, at most ${maxBytes} are expected`] : []),
  ];
}
