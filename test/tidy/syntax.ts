import { parseSync } from "vite";
import type { SourceFile } from "./files.ts";

/** A node of the syntax tree (ESTree with TypeScript's additions). Rules use few kinds, so it stays loosely typed. */
export interface Node {
  type: string;
  start: number;
  end: number;
  [key: string]: unknown;
}

export interface Import {
  specifier: string;
  line: number;
  /** Imported names; empty for a side-effect or dynamic import, `*` for a namespace, `default` for a default one. */
  names: { imported: string; local: string }[];
  /** `import type`, which leaves nothing at run time. */
  typesOnly: boolean;
}

/** `value` is the comment's text without its marks. */
export interface Comment {
  value: string;
  start: number;
  end: number;
}

interface ParsedFile {
  tree: Node;
  comments: Comment[];
}

const known = new WeakMap<SourceFile, ParsedFile>();

export const parse = (file: SourceFile): Node => parsed(file).tree;

export const parsedComments = (file: SourceFile): Comment[] => parsed(file).comments;

function parsed(file: SourceFile): ParsedFile {
  const before = known.get(file);
  if (before) return before;
  const { program, comments, errors } = parseSync(file.path, file.text);
  if (errors.length > 0) throw new Error(`${file.path} does not parse: ${errors[0]?.message}`);
  const found: ParsedFile = { tree: program as unknown as Node, comments };
  known.set(file, found);
  return found;
}

export function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && typeof (value as Node).type === "string";
}

/** Visits every node, parents first. `key` is the parent's property that holds the node. */
export function walk(node: Node, visit: (node: Node, parent: Node | undefined, key: string) => void): void {
  const step = (current: Node, parent: Node | undefined, key: string) => {
    visit(current, parent, key);
    for (const [name, value] of Object.entries(current)) {
      if (Array.isArray(value)) {
        for (const child of value) if (isNode(child)) step(child, current, name);
      } else if (isNode(value)) step(value, current, name);
    }
  };
  step(node, undefined, "");
}

export function lineOf(file: SourceFile, node: Node): number {
  return file.text.slice(0, node.start).split("\n").length;
}

/** Each name of a file with the line of its first use. */
export function identifiersOf(file: SourceFile): Map<string, number> {
  const found = new Map<string, number>();
  walk(parse(file), (node) => {
    if (!["Identifier", "PrivateIdentifier", "JSXIdentifier"].includes(node.type)) return;
    const name = node.name as string;
    if (!found.has(name)) found.set(name, lineOf(file, node));
  });
  return found;
}

export function nameOf(node: unknown): string | undefined {
  if (!isNode(node)) return undefined;
  if (node.type === "Identifier" || node.type === "PrivateIdentifier") return node.name as string;
  return node.type === "Literal" && typeof node.value === "string" ? node.value : undefined;
}

const withSource = new Set([
  "ImportDeclaration",
  "ExportNamedDeclaration",
  "ExportAllDeclaration",
  "ImportExpression",
  "TSImportType",
]);

/** Everything that makes this file depend on another: imports, re-exports, dynamic imports and imported types. */
export function importsOf(file: SourceFile): Import[] {
  const found: Import[] = [];
  walk(parse(file), (node) => {
    const specifier = withSource.has(node.type) ? nameOf(node.source) : undefined;
    if (specifier === undefined) return;
    const specifiers = Array.isArray(node.specifiers) ? node.specifiers.filter(isNode) : [];
    const typesOnly = node.importKind === "type" || node.exportKind === "type";
    found.push({ specifier, line: lineOf(file, node), names: specifiers.map(importedName), typesOnly });
  });
  return found;
}

function importedName(node: Node): { imported: string; local: string } {
  const local = nameOf(node.local) ?? "";
  if (node.type === "ImportNamespaceSpecifier") return { imported: "*", local };
  if (node.type === "ImportDefaultSpecifier") return { imported: "default", local };
  return { imported: nameOf(node.imported) ?? local, local };
}

/** The strings of a file, template literals with a placeholder for each expression, so that a statement stays whole. */
export function stringsOf(file: SourceFile): { text: string; line: number }[] {
  const found: { text: string; line: number }[] = [];
  walk(parse(file), (node) => {
    if (node.type === "Literal" && typeof node.value === "string") {
      found.push({ text: node.value, line: lineOf(file, node) });
    }
    if (node.type === "TemplateLiteral" && Array.isArray(node.quasis)) {
      const text = node.quasis.map((part: { value: { cooked: string | null } }) => part.value.cooked ?? "").join(" x ");
      found.push({ text, line: lineOf(file, node) });
    }
  });
  return found;
}
