import { join } from "node:path";
import {
  all,
  type Declaration,
  fileOf,
  isFile,
  type Module,
  type Node,
  readModule,
  type Target,
  usesIn,
} from "./declaration.ts";

/** A range of a module's text: names within `node` are resolved, those it declares are `names`. */
interface SourceRange {
  readonly module: Module;
  readonly node: Node;
  readonly start: number;
  readonly end: number;
  readonly names: readonly Node[];
  /** Position of the keyword `export`. */
  readonly exports?: { readonly start: number; readonly end: number };
}
type Piece = SourceRange | string;

/** A public name, and whether it can only be used as a type. */
interface Public {
  readonly name: string;
  readonly target: Target;
  readonly typeOnly: boolean;
}

/** The text of most entry points. */
export const commonText = "./types.js";

const idOf = ({ from, name }: Target): string => `${from}#${name}`;
const nameOf = (node: Node): string => (node.name ?? node.value) as string;

/**
 * All declarations that are reachable from the entry points of the package, and no others, in one text: each once, under a
 * unique name. One file instead of a hundred.
 */
export class Declarations {
  readonly #folder: string;
  /** Whether a user has the types of a package. */
  readonly #mayImport: (specifier: string) => boolean;
  readonly #plain: Module;
  readonly #written: ReadonlyMap<string, Node>;
  readonly #modules = new Map<string, Module>();
  readonly #entryPoints: ReadonlyMap<string, readonly Public[]>;
  readonly #reached = new Map<string, { readonly target: Target; readonly statements: readonly Piece[][] }>();
  readonly #globals = new Set<string>();
  readonly #names = new Map<string, string>();
  readonly #common: Declarations | undefined;
  /** Names that other texts import from this one. */
  readonly #shared = new Set<string>();

  /**
   * `folder`: the compiler's output for src, testkit and plain.ts. `entryPoints`: modules, without extension. `common`:
   * what its text has is imported from `commonText`, so that both mean the same type.
   */
  constructor(
    folder: string,
    entryPoints: readonly string[],
    mayImport: (specifier: string) => boolean,
    common?: Declarations,
  ) {
    this.#folder = folder;
    this.#mayImport = mayImport;
    this.#common = common;
    this.#plain = this.#module(join(folder, "tools", "build", "plain.d.ts"));
    this.#written = this.#writtenOut();
    this.#entryPoints = new Map(entryPoints.map((entryPoint) => [entryPoint, this.#publicOf(entryPoint)]));
    const publics = [...this.#entryPoints.values()].flat();
    for (const { target } of publics) this.#reach(target);
    for (const { target, name } of publics) this.#assignName(idOf(target), name);
    for (const [id, { target }] of this.#reached) this.#assignName(id, target.name);
  }

  /** Text of an entry point, which re-exports the common text under public names. */
  entryPoint(entryPoint: string, text: string): string {
    const names = this.#entryPoints.get(entryPoint)!.map(({ name, target, typeOnly }) => {
      const own = this.#names.get(idOf(target))!;
      return `  ${typeOnly ? "type " : ""}${own === name ? name : `${own} as ${name}`},`;
    });
    return `export {\n${names.join("\n")}\n} from "${text}";\n`;
  }

  text(): string {
    const imports: string[] = [];
    const statements = new Set<string>();
    for (const [id, { target, statements: own }] of this.#reached) {
      for (const pieces of own) statements.add(pieces.map((piece) => this.#print(piece)).join(""));
      if (isFile(target.from)) continue;
      const name = this.#names.get(id)!;
      imports.push(`import { ${name === target.name ? name : `${target.name} as ${name}`} } from "${target.from}";`);
    }
    const publics = new Set([...this.#entryPoints.values()].flat().map(({ target }) => this.#names.get(idOf(target))!));
    const exported = [...new Set([...publics, ...this.#shared])].sort().join(", ");
    return `${[...imports.sort(), ...statements].join("\n")}\nexport { ${exported} };\n`;
  }

  /** The name under which this text exports a declaration from now on; undefined: it does not have it. */
  share(id: string): string | undefined {
    if (!this.#reached.has(id)) return undefined;
    const name = this.#names.get(id)!;
    this.#shared.add(name);
    return name;
  }

  #module(path: string): Module {
    const found = this.#modules.get(path) ?? readModule(path);
    this.#modules.set(path, found);
    return found;
  }

  #publicOf(entryPoint: string): Public[] {
    const { path, exports } = this.#module(join(this.#folder, `${entryPoint}.d.ts`));
    return [...exports].map(([name, { typeOnly }]) => ({ name, typeOnly, target: this.#exported(path, name) }));
  }

  /** The types of plain.ts, by the types they replace. */
  #writtenOut(): ReadonlyMap<string, Node> {
    const [constant] = this.#plain.declarations.get("writtenOut")![0]!.names;
    const typeOf = (node: Node): Node => (node.typeAnnotation as Node).typeAnnotation as Node;
    const members = (type: Node) =>
      (type.members as Node[]).map((member) => [nameOf(member.key as Node), typeOf(member)] as const);
    return new Map(
      members(typeOf(constant!)).flatMap(([module, types]) => {
        const from = join(this.#folder, "src", `${module}.d.ts`);
        return members(types).map(([name, type]) => [idOf({ from, name }), type] as const);
      }),
    );
  }

  #exported(path: string, name: string): Target {
    if (!isFile(path)) return { from: path, name };
    const module = this.#module(path);
    const found = module.exports.get(name);
    if (found === undefined) throw new Error(`${path} does not export ${name}`);
    return found.from === path ? this.#local(module, found.name)! : this.#exported(found.from, found.name);
  }

  #local(module: Module, name: string): Target | undefined {
    if (module.declarations.has(name)) return { from: module.path, name };
    const found = module.imports.get(name);
    return found === undefined || found.name === all ? found : this.#exported(found.from, found.name);
  }

  #reach(target: Target): void {
    const id = idOf(target);
    if (this.#reached.has(id)) return;
    if (!isFile(target.from)) {
      if (!this.#mayImport(target.from))
        throw new Error(`${target.name} needs the types of ${target.from}, which users do not have`);
      this.#reached.set(id, { target, statements: [] });
      return;
    }
    const common = this.#common?.share(id);
    if (common !== undefined) {
      this.#reached.set(id, { target: { from: commonText, name: common }, statements: [] });
      return;
    }
    const module = this.#module(target.from);
    const declarations = module.declarations.get(target.name)!;
    const statements = declarations.map((declaration) => this.#pieces(module, declaration, this.#written.get(id)));
    this.#reached.set(id, { target, statements });
    for (const name of declarations.flatMap(({ names }) => names))
      this.#reach({ from: module.path, name: nameOf(name) });
    for (const piece of statements.flat()) {
      if (typeof piece !== "string") for (const { to } of this.#usesOf(piece)) this.#reach(to);
    }
  }

  #pieces(module: Module, { node, start, names }: Declaration, written: Node | undefined): Piece[] {
    const declared = (node.declaration ?? node) as Node;
    const whole: SourceRange = {
      ...{ module, node: declared, start, end: node.end, names },
      exports: { start: node.start, end: declared.start },
    };
    if (written === undefined) return [whole];
    const parameters = declared.typeParameters as Node | null;
    const head = parameters ?? (declared.id as Node);
    const [parameter] = (parameters?.params ?? []) as Node[];
    const chosen = parameter === undefined ? "" : `[${nameOf(parameter.name as Node)}]`;
    const type: SourceRange = { module: this.#plain, node: written, start: written.start, end: written.end, names: [] };
    return [{ ...whole, node: head, end: head.end }, " = ", type, `${chosen};`];
  }

  /** References of a range to declarations outside of it, with their positions. */
  #usesOf({
    module,
    node,
    names,
  }: SourceRange): { readonly start: number; readonly end: number; readonly to: Target }[] {
    const { uses, own } = usesIn(node);
    const found = uses.flatMap(({ start, end, name, member, from }) => {
      if (from !== undefined) return { start, end, to: this.#exported(fileOf(module.path, from), name) };
      const to = this.#local(module, name);
      if (to === undefined) {
        if (!own.has(name)) this.#globals.add(name);
        return [];
      }
      if (own.has(name)) throw new Error(`${module.path}: ${name} names a type parameter and something else`);
      if (to.name !== all) return { start, end: start + name.length, to };
      if (member === undefined) throw new Error(`${module.path}: ${name}, a namespace import, is used as a value`);
      return { start, end, to: this.#exported(to.from, member) };
    });
    const declared = names.map((id) => {
      const name = nameOf(id);
      return { start: id.start, end: id.start + name.length, to: { from: module.path, name } };
    });
    return [...declared, ...found];
  }

  #assignName(id: string, preferred: string): void {
    if (this.#names.has(id)) return;
    const taken = new Set(this.#names.values());
    let name = preferred;
    for (let k = 2; taken.has(name) || this.#globals.has(name); k++) name = `${preferred}${k}`;
    this.#names.set(id, name);
  }

  #print(piece: Piece): string {
    if (typeof piece === "string") return piece;
    const { module, start, end, exports } = piece;
    const named = this.#usesOf(piece).map((use) => ({ ...use, text: this.#names.get(idOf(use.to))! }));
    const edits = exports === undefined ? named : [...named, { ...exports, text: "" }];
    let text = "";
    let at = start;
    for (const edit of edits.sort((a, b) => a.start - b.start)) {
      text += module.text.slice(at, edit.start) + edit.text;
      at = edit.end;
    }
    return (text + module.text.slice(at, end)).trim();
  }
}
