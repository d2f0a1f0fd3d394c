import { relative, resolve } from "node:path";
import { commonMembers } from "./common-members.ts";
import { type DocComment, docOf } from "./doc-comment.ts";
import { type EntryPoint, entryPoints, type Subject, subjects } from "./entry-points.ts";
import { type InheritedMembers, inheritedMembers, promisedBy } from "./inherited.ts";
import { callText, type Member, membersOf } from "./members.ts";
import { exportsOf, find, lineText, type Module, type Node, nameOf, readModule, root } from "./syntax.ts";

/** One public name. */
export interface Export {
  readonly name: string;
  readonly kind: "function" | "class" | "interface" | "type" | "constant";
  /** Where it is declared, from the root of the repository. */
  readonly file: string;
  readonly doc: DocComment;
  /** As a reader would write it: one for each overload. */
  readonly signatures: readonly string[];
  readonly members: readonly Member[];
  /** Public types whose members it also has, such as `Omit<StartOptions, "transaction">`. */
  readonly parents: readonly string[];
}

export interface Page {
  /** The file below docs/api, without its extension. */
  readonly page: string;
  readonly title: string;
  readonly about: string;
  readonly guide: string | undefined;
  readonly specifier: string;
  readonly exports: readonly Export[];
}

const kindOf: Readonly<Record<string, Export["kind"]>> = {
  FunctionDeclaration: "function",
  TSDeclareFunction: "function",
  ClassDeclaration: "class",
  TSInterfaceDeclaration: "interface",
  TSTypeAliasDeclaration: "type",
  VariableDeclaration: "constant",
};

/** All pages: the subjects of the main entry point, then the other entry points. */
export function readPages(): Page[] {
  const [main, ...others] = entryPoints.map((entryPoint) => ({ entryPoint, exports: readEntryPoint(entryPoint) }));
  const pages = subjects.map(({ page, title, about, first }) => {
    const own = main!.exports.filter(({ name, file }) => subjectOf(name, file).page === page);
    return {
      page,
      title,
      about,
      guide: undefined,
      specifier: main!.entryPoint.specifier,
      exports: ordered(own, first),
    };
  });
  const rest = others.map(({ entryPoint: { specifier, about, guide }, exports }) => {
    const page = specifier.slice(specifier.indexOf("/") + 1);
    return { page, title: `\`${specifier}\``, about, guide, specifier, exports: ordered(exports) };
  });
  return [...pages, ...rest];
}

/** Functions and classes before the types that they use; within each in the order of the entry point. */
function ordered(exports: readonly Export[], first: readonly string[] = []): Export[] {
  const rank = ({ name, kind }: Export): number => {
    if (first.includes(name)) return first.indexOf(name) - first.length;
    return kind === "interface" || kind === "type" ? 1 : 0;
  };
  return exports.toSorted((a, b) => rank(a) - rank(b));
}

function subjectOf(name: string, file: string): Subject {
  const fits = (part: string): boolean =>
    part.endsWith("/") ? file.startsWith(`src/${part}`) : file === `src/${part}.ts`;
  const found = subjects
    .flatMap((subject) => subject.files.filter(fits).map((part) => ({ subject, part })))
    .sort((a, b) => b.part.length - a.part.length);
  if (found.length === 0) throw new Error(`${name} (${file}) has no page: add its file to entry-points.ts`);
  return found[0]!.subject;
}

export function readEntryPoint({ file }: EntryPoint): Export[] {
  const module = readModule(resolve(root, file));
  const names = exportsOf(module.path);
  return names.map((name) => describe(module, name, new Set(names)));
}

function describe(from: Module, name: string, published: ReadonlySet<string>): Export {
  const found = find(from, name);
  if (found === undefined) throw new Error(`${name} is declared nowhere`);
  const { module, nodes } = found;
  const declared = nodes.map((node) => (node.declaration ?? node) as Node);
  const docs = nodes.map((node) => docOf(module, node));
  const doc = docs.find(({ text }) => text !== "") ?? docs[0]!;
  const example = docs.find((one) => one.example !== undefined)?.example;
  const first = declared[0]!;
  const inherited: InheritedMembers = inheritedMembers(module, first, published);
  const promised = promisedBy(module, first);
  // Without a comment, a constructor is not for users: an app creates such objects.
  const own = [...membersOf(module, first), ...inherited.members].filter(
    (member) => member.name !== "constructor" || member.doc.text !== "",
  );
  return {
    name,
    kind: kindOf[first.type] ?? "constant",
    file: relative(root, module.path),
    doc: { ...doc, example: example ?? doc.example, throws: docs.flatMap(({ throws }) => throws) },
    signatures: signaturesOf(module, name, declared),
    members: own.map((member) => documented(module, member, own, promised)),
    parents: inherited.parents,
  };
}

/** Overloads without their implementation. */
function signaturesOf(module: Module, name: string, declared: readonly Node[]): string[] {
  const first = declared[0]!;
  if (first.type === "TSDeclareFunction" || first.type === "FunctionDeclaration") {
    const overloads = declared.filter(({ type }) => type === "TSDeclareFunction");
    const shown = overloads.length > 0 ? overloads : declared;
    return shown.map((node) => `function ${name}${callText(module, node)}`);
  }
  if (first.type === "TSTypeAliasDeclaration") {
    const type = first.typeAnnotation as Node;
    if (type.type === "TSTypeLiteral" || /\bz\./.test(lineText(module, type))) return [];
    return [`type ${name}${parameters(module, first)} = ${lineText(module, type)}`];
  }
  if (first.type === "ClassDeclaration" || first.type === "TSInterfaceDeclaration") {
    const word = first.type === "ClassDeclaration" ? "class" : "interface";
    const end = (first.body as Node).start;
    const start = (first.id as Node).end;
    return [`${word} ${name} ${lineText(module, { start, end })}`.replace(/ ([<,])/, "$1").trim()];
  }
  const one = (first.declarations as Node[]).find(({ id }) => nameOf(id) === name)!;
  const annotation = (one.id as { typeAnnotation?: Node }).typeAnnotation;
  return annotation ? [`const ${name}${lineText(module, annotation)}`] : constant(module, name, one.init as Node);
}

function constant(module: Module, name: string, value: Node): string[] {
  if (/FunctionExpression$/.test(value.type)) return [`function ${name}${callText(module, value)}`];
  return [`const ${name} = ${value.type === "ObjectExpression" ? "{ … }" : lineText(module, value)}`];
}

const parameters = (module: Module, node: Node): string =>
  node.typeParameters ? lineText(module, node.typeParameters as Node) : "";

/** What such a type is says nothing about the member. */
const plainTypes = ["Duration", "Semantics", "Clock", "Random", "Log", "LogOption"];

const commonMeaning = ({ name, isMethod }: Member): string | undefined =>
  !isMethod && Object.hasOwn(commonMembers, name) ? commonMembers[name] : undefined;

/**
 * Where a member has no comment: that of another overload, of what its class implements, of the type it has, or what its
 * name means everywhere.
 */
function documented(
  module: Module,
  member: Member,
  all: readonly Member[],
  promised: ReadonlyMap<string, Member>,
): Member {
  const inner = member.inner.map((one) => documented(module, one, [], new Map()));
  if (member.doc.text !== "") return { ...member, inner };
  const { name } = member;
  const elsewhere = all.find((other) => other.name === name && other.doc.text !== "") ?? promised.get(name);
  const text = elsewhere?.doc.text || ofItsType(module, member) || commonMeaning(member) || "";
  return { ...member, inner, doc: { ...member.doc, text } };
}

function ofItsType(module: Module, { type, isMethod, name }: Member): string | undefined {
  const [, owner, field] = /^(\w+)\["(\w+)"\]$/.exec(type) ?? [];
  if (owner !== undefined) {
    const [node] = find(module, owner)?.nodes ?? [];
    const declared = (node?.declaration ?? node) as Node | undefined;
    const from = find(module, owner)?.module;
    return declared && from && membersOf(from, declared).find((one) => one.name === field)?.doc.text;
  }
  const [, used] =
    /^(\w+)(?:<.*>)?$/.exec(type.replace(/ \| undefined$/, "").replace(/^readonly (\w+)\[\]$/, "$1")) ?? [];
  if (isMethod || name === "" || used === undefined || plainTypes.includes(used)) return undefined;
  const found = find(module, used);
  const texts = found?.nodes.map((node) => docOf(found.module, node).text) ?? [];
  return texts.find((text) => text !== "");
}
