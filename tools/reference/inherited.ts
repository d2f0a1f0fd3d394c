import { type Member, membersOf } from "./members.ts";
import { find, lineText, type Module, type Node, nameOf } from "./syntax.ts";

/** What a declaration has from others. */
export interface InheritedMembers {
  /** Members of types that are not public themselves, so that a reader finds them nowhere else. */
  readonly members: readonly Member[];
  /** Public types, as they are written. */
  readonly parents: readonly string[];
}

const none: InheritedMembers = { members: [], parents: [] };
const joined = (parts: readonly InheritedMembers[]): InheritedMembers => ({
  members: parts.flatMap(({ members }) => members),
  parents: parts.flatMap(({ parents }) => parents),
});

export function inheritedMembers(module: Module, node: Node, published: ReadonlySet<string>): InheritedMembers {
  if (node.type === "TSTypeAliasDeclaration") return ofType(module, node.typeAnnotation as Node, published, true);
  const clauses = [...((node.extends ?? []) as Node[]), ...((node.implements ?? []) as Node[])];
  return joined(clauses.map((clause) => ofReference(module, clause, published)));
}

function ofType(module: Module, type: Node, published: ReadonlySet<string>, alone: boolean): InheritedMembers {
  if (type.type === "TSIntersectionType") {
    return joined((type.types as Node[]).map((one) => ofType(module, one, published, false)));
  }
  if (type.type !== "TSTypeReference") return none;
  // An alias of one public type shows it in its signature.
  return ofReference(module, type, alone ? new Set() : published);
}

/** `A`, `Omit<A, "b">`, `Pick<A, "b">`, `Partial<A>`. */
function ofReference(module: Module, node: Node, published: ReadonlySet<string>): InheritedMembers {
  const name = nameOf(node.typeName ?? node.expression);
  const args = ((node.typeArguments as { params?: Node[] } | null)?.params ?? []) as Node[];
  if (["Omit", "Pick", "Partial", "Readonly"].includes(name)) {
    const inner = ofType(module, args[0]!, published, false);
    const listed = args[1]
      ? lineText(module, args[1])
          .match(/"[^"]+"/g)
          ?.map((text) => text.slice(1, -1))
      : [];
    const isKept = ({ name: own }: Member): boolean =>
      name === "Omit" ? !listed?.includes(own) : name === "Pick" ? listed?.includes(own) === true : true;
    return { members: inner.members.filter(isKept), parents: inner.parents.length > 0 ? [lineText(module, node)] : [] };
  }
  if (published.has(name)) return { members: [], parents: [lineText(module, node)] };
  const found = find(module, name);
  if (found === undefined) return none;
  const declared = (found.nodes[0]!.declaration ?? found.nodes[0]) as Node;
  const own = membersOf(found.module, declared);
  return joined([{ members: own, parents: [] }, inheritedMembers(found.module, declared, published)]);
}

/** Sentences of the members of what a class implements, or of the type that a constant declares. */
export function promisedBy(module: Module, node: Node): ReadonlyMap<string, Member> {
  const types =
    node.type === "VariableDeclaration"
      ? (node.declarations as Node[]).flatMap(({ id }) => {
          const annotation = (id as { typeAnnotation?: Node }).typeAnnotation;
          return annotation ? [annotation.typeAnnotation as Node] : [];
        })
      : ((node.implements ?? []) as Node[]);
  const members = types.flatMap((type) => ofReference(module, type, new Set()).members);
  return new Map(members.map((member) => [member.name, member]));
}
