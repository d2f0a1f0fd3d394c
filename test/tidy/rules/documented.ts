import { posix } from "node:path";
import type { SourceFile } from "../files.ts";
import { isNode, lineOf, type Node, nameOf, parse, parsedComments } from "../syntax.ts";

/** A public name whose declaration has no doc comment. */
export interface UndocumentedName {
  readonly path: string;
  readonly line: number;
  readonly name: string;
}

export interface Documentation {
  readonly exported: number;
  readonly undocumented: readonly UndocumentedName[];
}

/** Follows the re-exports of an index to the declarations, and checks that each has a doc comment. */
export function documentation(index: string, files: SourceFile[]): Documentation {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const undocumented: UndocumentedName[] = [];
  const names = reexportsOf(byPath.get(index)!);
  for (const { name, from } of names) {
    const found = declarationOf(byPath, posix.join(posix.dirname(index), from), name);
    if (!found) throw new Error(`${index} exports ${name}, which is declared nowhere`);
    if (found.documented) continue;
    undocumented.push({ path: found.file.path, line: lineOf(found.file, found.node), name });
  }
  return { exported: names.length, undocumented };
}

function reexportsOf(file: SourceFile): { name: string; from: string }[] {
  return (parse(file).body as Node[]).flatMap((statement) => {
    const from = statement.type === "ExportNamedDeclaration" ? nameOf(statement.source) : undefined;
    if (from === undefined) return [];
    return (statement.specifiers as Node[]).map(({ local }) => ({ name: nameOf(local)!, from }));
  });
}

interface Declaration {
  readonly file: SourceFile;
  readonly node: Node;
  readonly documented: boolean;
}

function declarationOf(files: ReadonlyMap<string, SourceFile>, path: string, name: string): Declaration | undefined {
  const file = files.get(path);
  if (!file) return undefined;
  const found = (parse(file).body as Node[]).filter(
    (node) => isNode(node.declaration) && declaredNames(node.declaration).includes(name),
  );
  if (found.length > 0) {
    return { file, node: found[0]!, documented: found.some((node) => hasDocComment(file, node)) };
  }
  const further = reexportsOf(file).find((other) => other.name === name);
  return further && declarationOf(files, posix.join(posix.dirname(path), further.from), name);
}

function declaredNames(declaration: Node): string[] {
  const several = declaration.declarations as Node[] | undefined;
  return (several ?? [declaration]).map(({ id }) => nameOf(id) ?? "");
}

function hasDocComment(file: SourceFile, node: Node): boolean {
  return parsedComments(file).some(
    ({ value, end }) => value.startsWith("*") && end <= node.start && file.text.slice(end, node.start).trim() === "",
  );
}
