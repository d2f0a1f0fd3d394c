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

/** A stretch of a module's text: names within `node` are looked up, those it declares are `names`. */
interface Stretch {
  readonly module: Module;
  readonly node: Node;
  readonly start: number;
  readonly end: number;
  readonly names: readonly Node[];
  /** Where the word `export` stands. */
  readonly exports?: { readonly start: number; readonly end: number };
}
type Piece = Stretch | string;

/** A public name, and whether it may be used as a type only. */
interface Public {
  readonly name: string;
  readonly target: Target;
  readonly typeOnly: boolean;
}

const idOf = ({ from, name }: Target): string => `${from}#${name}`;
const nameOf = (node: Node): string => (node.name ?? node.value) as string;

/**
 * The declarations that users can reach from the doors of the package, and no others, in one text: each once, under a
 * name that no other has. One file in place of a hundred.
 */
export class Declarations {
  readonly #folder: string;
  /** From which packages a user has the types. */
  readonly #mayImport: (specifier: string) => boolean;
  readonly #plain: Module;
  readonly #written: ReadonlyMap<string, Node>;
  readonly #modules = new Map<string, Module>();
  readonly #doors: ReadonlyMap<string, readonly Public[]>;
  readonly #reached = new Map<string, { readonly target: Target; readonly statements: readonly Piece[][] }>();
  readonly #globals = new Set<string>();
  readonly #names = new Map<string, string>();

  /** `folder`: what the compiler has put out for src, testkit and plain.ts. `doors`: modules, without ending. */
  constructor(folder: string, doors: readonly string[], mayImport: (specifier: string) => boolean) {
    this.#folder = folder;
    this.#mayImport = mayImport;
    this.#plain = this.#module(join(folder, "tools", "build", "plain.d.ts"));
    this.#written = this.#writtenOut();
    this.#doors = new Map(doors.map((door) => [door, this.#publicOf(door)]));
    const publics = [...this.#doors.values()].flat();
    for (const { target } of publics) this.#reach(target);
    for (const { target, name } of publics) this.#give(target, name);
    for (const { target } of this.#reached.values()) this.#give(target, target.name);
  }

  /** A door hands on what the one text declares, under public names. */
  door(door: string, text: string): string {
    const names = this.#doors.get(door)!.map(({ name, target, typeOnly }) => {
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
    const publics = new Set([...this.#doors.values()].flat().map(({ target }) => this.#names.get(idOf(target))!));
    return `${[...imports.sort(), ...statements].join("\n")}\nexport { ${[...publics].sort().join(", ")} };\n`;
  }

  #module(path: string): Module {
    const found = this.#modules.get(path) ?? readModule(path);
    this.#modules.set(path, found);
    return found;
  }

  #publicOf(door: string): Public[] {
    const { path, exports } = this.#module(join(this.#folder, `${door}.d.ts`));
    return [...exports].map(([name, { typeOnly }]) => ({ name, typeOnly, target: this.#exported(path, name) }));
  }

  /** The types of plain.ts, by what they stand for. */
  #writtenOut(): ReadonlyMap<string, Node> {
    const [constant] = this.#plain.declarations.get("writtenOut")![0]!.names;
    const typeOf = (node: Node): Node => (node.typeAnnotation as Node).typeAnnotation as Node;
    const members = (type: Node) =>
      (type.members as Node[]).map((one) => [nameOf(one.key as Node), typeOf(one)] as const);
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
    if (found === undefined) throw new Error(`${path} has no ${name}`);
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
      if (!this.#mayImport(target.from)) throw new Error(`users have no types of ${target.from}: ${target.name}`);
      this.#reached.set(id, { target, statements: [] });
      return;
    }
    const module = this.#module(target.from);
    const declarations = module.declarations.get(target.name)!;
    const statements = declarations.map((one) => this.#pieces(module, one, this.#written.get(id)));
    this.#reached.set(id, { target, statements });
    for (const name of declarations.flatMap(({ names }) => names))
      this.#reach({ from: module.path, name: nameOf(name) });
    for (const piece of statements.flat()) {
      if (typeof piece !== "string") for (const { to } of this.#usesOf(piece)) this.#reach(to);
    }
  }

  #pieces(module: Module, { node, start, names }: Declaration, written: Node | undefined): Piece[] {
    const declared = (node.declaration ?? node) as Node;
    const whole: Stretch = {
      ...{ module, node: declared, start, end: node.end, names },
      exports: { start: node.start, end: declared.start },
    };
    if (written === undefined) return [whole];
    const parameters = declared.typeParameters as Node | null;
    const head = parameters ?? (declared.id as Node);
    const [parameter] = (parameters?.params ?? []) as Node[];
    const chosen = parameter === undefined ? "" : `[${nameOf(parameter.name as Node)}]`;
    const type: Stretch = { module: this.#plain, node: written, start: written.start, end: written.end, names: [] };
    return [{ ...whole, node: head, end: head.end }, " = ", type, `${chosen};`];
  }

  /** What a stretch names outside itself, and where. */
  #usesOf({ module, node, names }: Stretch): { readonly start: number; readonly end: number; readonly to: Target }[] {
    const { uses, own } = usesIn(node);
    const found = uses.flatMap(({ start, end, name, member, from }) => {
      if (from !== undefined) return { start, end, to: this.#exported(fileOf(module.path, from), name) };
      const to = this.#local(module, name);
      if (to === undefined) {
        if (!own.has(name)) this.#globals.add(name);
        return [];
      }
      if (own.has(name)) throw new Error(`${module.path}: ${name} names a parameter of a type and something else`);
      if (to.name !== all) return { start, end: start + name.length, to };
      if (member === undefined) throw new Error(`${module.path}: ${name}, a whole module, is used as one value`);
      return { start, end, to: this.#exported(to.from, member) };
    });
    const declared = names.map((id) => {
      const name = nameOf(id);
      return { start: id.start, end: id.start + name.length, to: { from: module.path, name } };
    });
    return [...declared, ...found];
  }

  #give(target: Target, wanted: string): void {
    const id = idOf(target);
    if (this.#names.has(id)) return;
    const taken = new Set(this.#names.values());
    let name = wanted;
    for (let k = 2; taken.has(name) || this.#globals.has(name); k++) name = `${wanted}${k}`;
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
