import { type DocComment, docOf } from "./doc-comment.ts";
import { lineText, type Module, type Node, nameOf, placeOf } from "./syntax.ts";

/** A property or method of an interface, class or object type. */
export interface Member {
  readonly name: string;
  /** What follows the name: a type, or parameters and result. */
  readonly type: string;
  readonly isMethod: boolean;
  readonly isStatic: boolean;
  readonly optional: boolean;
  readonly doc: DocComment;
  /** Where it stands, for messages. */
  readonly place: string;
  /** Members of an object type that is written in place and has comments of its own; otherwise its text shows them. */
  readonly inner: readonly Member[];
}

const keyOf = (module: Module, node: Node): string =>
  node.computed ? `[${lineText(module, node.key as Node)}]` : nameOf(node.key);

/** From the parameters to the result, without a body. */
export function callText(module: Module, node: Node): string {
  const value = (node.value ?? node) as Node;
  const from = (value.typeParameters ?? value) as Node;
  const open = module.text.indexOf("(", value.typeParameters ? from.end : nameEnd(node));
  const result = value.returnType as Node | null;
  const end = result?.end ?? closing(module.text, open) + 1;
  const types = value.typeParameters ? lineText(module, from) : "";
  return `${types}${lineText(module, { start: open, end })}`;
}

const nameEnd = (node: Node): number => ((node.key ?? node.id) as Node | undefined)?.end ?? node.start;

function closing(text: string, open: number): number {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    if (text[at] === "(") depth++;
    if (text[at] === ")" && --depth === 0) return at;
  }
  throw new Error("a parenthesis is not closed");
}

function memberOf(module: Module, node: Node): Member[] {
  const isMethod = ["TSMethodSignature", "MethodDefinition", "TSCallSignatureDeclaration"].includes(node.type);
  const isGetter = node.kind === "get";
  const value = (node.value ?? node) as Node;
  const annotation = (isGetter ? value.returnType : node.typeAnnotation) as Node | undefined;
  const type = isMethod && !isGetter ? callText(module, node) : typeText(module, node, annotation);
  const literal = (annotation as { typeAnnotation?: Node } | undefined)?.typeAnnotation;
  const within =
    literal?.type === "TSTypeLiteral" ? (literal.members as Node[]).flatMap((one) => memberOf(module, one)) : [];
  return [
    {
      name: keyOf(module, node),
      type,
      isMethod: isMethod && !isGetter,
      isStatic: node.static === true,
      optional: node.optional === true,
      doc: docOf(module, node),
      place: placeOf(module, node),
      inner: within.some(({ doc }) => doc.text !== "") ? within : [],
    },
  ];
}

/** The type of a property; one without an annotation shows its value: `as const` and functions are types of their own. */
function typeText(module: Module, node: Node, annotation: Node | undefined): string {
  if (annotation) return lineText(module, (annotation.typeAnnotation ?? annotation) as Node);
  const value = node.value as Node | null;
  if (value && /FunctionExpression$/.test(value.type)) return callText(module, value);
  return value ? lineText(module, value) : "unknown";
}

const kinds = [
  ...["TSPropertySignature", "TSMethodSignature", "MethodDefinition", "PropertyDefinition"],
  ...["TSCallSignatureDeclaration", "TSIndexSignature", "Property", "AccessorProperty"],
];

/** Members that a declaration itself lists: not private ones, not implementations of overloads. */
export function membersOf(module: Module, declared: Node): Member[] {
  return bodyOf(module, declared)
    .filter((node) => kinds.includes(node.type) && !isHidden(module, node))
    .filter((node, _, all) => !isImplementation(node, all))
    .flatMap((node) => memberOf(module, node));
}

function isHidden(module: Module, node: Node): boolean {
  const key = node.key as Node | undefined;
  if (key?.type === "PrivateIdentifier" || node.accessibility === "private") return true;
  return node.kind === "constructor" && node.value !== null && node.accessibility === "private"
    ? true
    : keyOf(module, node).startsWith("[Symbol");
}

const isOverload = (node: Node): boolean => (node.value as Node | undefined)?.type === "TSEmptyBodyFunctionExpression";
const isImplementation = (node: Node, all: readonly Node[]): boolean =>
  node.type === "MethodDefinition" &&
  !isOverload(node) &&
  all.some((other) => isOverload(other) && nameOf(other.key) === nameOf(node.key));

function bodyOf(module: Module, node: Node): readonly Node[] {
  if (node.type === "TSInterfaceDeclaration" || node.type === "ClassDeclaration")
    return (node.body as Node).body as Node[];
  if (node.type === "TSTypeAliasDeclaration") return ofType(module, node.typeAnnotation as Node);
  if (node.type === "VariableDeclaration") {
    const { init } = (node.declarations as Node[])[0] as { init?: Node };
    const value =
      init?.type === "TSAsExpression" || init?.type === "TSSatisfiesExpression" ? (init.expression as Node) : init;
    return value?.type === "ObjectExpression" ? (value.properties as Node[]) : [];
  }
  return [];
}

/** Object types, also those in an intersection. A union is shown as it is written. */
function ofType(module: Module, type: Node): readonly Node[] {
  if (type.type === "TSTypeLiteral") return type.members as Node[];
  if (type.type === "TSIntersectionType") return (type.types as Node[]).flatMap((one) => ofType(module, one));
  return [];
}
