import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseSync } from "rolldown/utils";

/** A node of the syntax tree. Few kinds matter here, so it is loosely typed. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

/** A name exported by a file or a package. */
export interface Target {
  readonly from: string;
  readonly name: string;
}

/** One statement that declares names, with the comment before it. */
export interface Declaration {
  readonly names: readonly Node[];
  readonly node: Node;
  /** Start of its comment. */
  readonly start: number;
}

/** A parsed declaration file. */
export interface Module {
  readonly path: string;
  readonly text: string;
  readonly declarations: ReadonlyMap<string, readonly Declaration[]>;
  readonly imports: ReadonlyMap<string, Target>;
  readonly exports: ReadonlyMap<string, Target & { readonly typeOnly: boolean }>;
}

export const all = "*";
const nameOf = (node: unknown): string => ((node as Node).name ?? (node as Node).value) as string;
export const isFile = (from: string): boolean => from.endsWith(".d.ts");

export function readModule(path: string): Module {
  const text = readFileSync(path, "utf8");
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]!.message}`);
  const declarations = new Map<string, Declaration[]>();
  const imports = new Map<string, Target>();
  const exports = new Map<string, Target & { typeOnly: boolean }>();
  const place = (specifier: unknown): string => fileOf(path, nameOf(specifier));
  let start = 0;
  for (const node of program.body as unknown as Node[]) {
    if (node.type === "ImportDeclaration") {
      for (const one of node.specifiers as Node[]) {
        const name = one.type === "ImportNamespaceSpecifier" ? all : nameOf(one.imported ?? { name: "default" });
        imports.set(nameOf(one.local), { from: place(node.source), name });
      }
    } else if (node.type === "ExportNamedDeclaration" && node.declaration === null) {
      for (const one of node.specifiers as Node[]) {
        const from = node.source === null ? path : place(node.source);
        const typeOnly = node.exportKind === "type" || one.exportKind === "type";
        exports.set(nameOf(one.exported), { from, name: nameOf(one.local), typeOnly });
      }
    } else {
      const exported = node.type === "ExportNamedDeclaration";
      const names = namesOf((exported ? node.declaration : node) as Node);
      for (const id of names) {
        const name = nameOf(id);
        declarations.set(name, [...(declarations.get(name) ?? []), { names, node, start }]);
        if (exported) exports.set(name, { from: path, name, typeOnly: false });
      }
    }
    start = node.end;
  }
  return { path, text, declarations, imports, exports };
}

function namesOf(node: Node): readonly Node[] {
  if (node.type === "VariableDeclaration") return (node.declarations as Node[]).map(({ id }) => id as Node);
  if (node.id === undefined) throw new Error(`the build does not support a declaration of type ${node.type}`);
  return [node.id as Node];
}

/** Resolves like the compiler: a relative specifier names a file, any other a package. */
export const fileOf = (path: string, specifier: string): string =>
  specifier.startsWith(".") ? join(dirname(path), specifier).replace(/(\.d)?\.[jt]s$/, ".d.ts") : specifier;

/** A reference to a name, alone or qualified (`a.b`). */
export interface Use {
  readonly start: number;
  readonly end: number;
  readonly name: string;
  readonly member?: string;
  /** `import("…").name` */
  readonly from?: string;
}

/** References in a part of a module, and the type parameters that it declares. */
export function usesIn(node: Node): { readonly uses: readonly Use[]; readonly own: ReadonlySet<string> } {
  const uses: Use[] = [];
  const own = new Set<string>();
  const use = (found: Node | null): void => {
    if (found?.type === "Identifier") uses.push({ start: found.start, end: found.end, name: nameOf(found) });
    if (found?.type !== "TSQualifiedName" && found?.type !== "MemberExpression") return;
    const [left, right] = [found.left ?? found.object, found.right ?? found.property] as [Node, Node];
    if (left.type !== "Identifier") use(left);
    else uses.push({ start: found.start, end: found.end, name: nameOf(left), member: nameOf(right) });
  };
  const visit = (at: Node): void => {
    if (at.type === "TSTypeReference") use(at.typeName as Node);
    if (at.type === "TSTypeQuery") use(at.exprName as Node);
    if (at.type === "TSInterfaceHeritage" || at.type === "TSClassImplements") use(at.expression as Node);
    if (at.type === "ClassDeclaration") use(at.superClass as Node | null);
    if (at.computed === true) use(at.key as Node);
    if (at.type === "TSTypeParameter") own.add(nameOf(at.name));
    if (at.type === "TSMappedType") own.add(nameOf(at.key));
    if (at.type === "TSImportType") {
      const name = at.qualifier as Node;
      uses.push({ start: at.start, end: name.end, name: nameOf(name), from: nameOf(at.source) });
    }
    for (const value of Object.values(at)) {
      for (const child of Array.isArray(value) ? value : [value]) {
        if (typeof child === "object" && child !== null && typeof (child as Node).type === "string")
          visit(child as Node);
      }
    }
  };
  visit(node);
  return { uses, own };
}
