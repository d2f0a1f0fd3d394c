import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "rolldown/utils";

export const root = fileURLToPath(new URL("../../", import.meta.url));

/** Where something stands, from the root of the repository. */
export const placeOf = (module: Module, node: Pick<Node, "start">): string =>
  `${relative(root, module.path)}:${module.text.slice(0, node.start).split("\n").length}`;

/** A node of the syntax tree. Few kinds matter here, so it is loosely typed. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

/** A parsed source file: its statements, and its doc comments by the position where they end. */
export interface Module {
  readonly path: string;
  readonly text: string;
  readonly body: readonly Node[];
  readonly comments: readonly { readonly text: string; readonly start: number; readonly end: number }[];
}

const known = new Map<string, Module>();

export function readModule(path: string): Module {
  const found = known.get(path);
  if (found !== undefined) return found;
  const text = readFileSync(path, "utf8");
  const { program, comments, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]!.message}`);
  const docs = comments.filter(({ type, value }) => type === "Block" && value.startsWith("*"));
  const module = {
    path,
    text,
    body: program.body as unknown as Node[],
    comments: docs.map(({ value, start, end }) => ({ text: value.slice(1), start, end })),
  };
  known.set(path, module);
  return module;
}

export const nameOf = (node: unknown): string => {
  const { name, value } = (node ?? {}) as Node;
  return (name ?? value ?? "") as string;
};

/** Text of a node on one line. */
export const lineText = (module: Module, node: Pick<Node, "start" | "end">): string => {
  const inner = module.comments.filter(({ start, end }) => start >= node.start && end <= node.end);
  let text = "";
  let at = node.start;
  for (const { start, end } of inner) {
    text += module.text.slice(at, start);
    at = end;
  }
  return (text + module.text.slice(at, node.end)).replace(/\s+/g, " ").trim();
};

/** A declaration of a name, followed through imports and re-exports. */
export interface Found {
  readonly module: Module;
  /** All statements that declare it: overloads of a function are several. */
  readonly nodes: readonly Node[];
}

const fileAt = (module: Module, specifier: string): string | undefined =>
  specifier.startsWith(".") ? join(dirname(module.path), specifier) : undefined;

/** The names that an entry point exports, in its order. */
export function exportsOf(path: string): string[] {
  return readModule(path)
    .body.filter(({ type }) => type === "ExportNamedDeclaration")
    .flatMap((node) => {
      if (node.declaration) return declaredNames(node.declaration as Node);
      return (node.specifiers as Node[]).map(({ exported }) => nameOf(exported));
    });
}

const declaredNames = (node: Node): string[] =>
  node.type === "VariableDeclaration"
    ? (node.declarations as Node[]).map(({ id }) => nameOf(id))
    : node.id
      ? [nameOf(node.id)]
      : [];

/** Where a name that a module exports, declares or imports is declared; undefined: in a package, or by the language. */
export function find(module: Module, name: string): Found | undefined {
  const nodes = module.body.filter((node) => declaredNames((node.declaration ?? node) as Node).includes(name));
  if (nodes.length > 0) return { module, nodes };
  for (const node of module.body) {
    if (node.type !== "ImportDeclaration" && node.type !== "ExportNamedDeclaration") continue;
    const from = node.source ? fileAt(module, nameOf(node.source)) : undefined;
    if (from === undefined) continue;
    for (const one of node.specifiers as Node[]) {
      const own = node.type === "ImportDeclaration" ? one.local : one.exported;
      if (nameOf(own) !== name) continue;
      const original = node.type === "ImportDeclaration" ? (one.imported ?? one.local) : one.local;
      return find(readModule(from), nameOf(original));
    }
  }
  return undefined;
}
