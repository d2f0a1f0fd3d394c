import { configJsonSchema } from "./schema.ts";

/** One setting, as the schema describes it. */
export interface Leaf {
  /** Such as `tape.reactors.outbox.batch`; `*` stands for a name that the file chooses, such as a custom reactor's. */
  readonly path: string;
  readonly types: readonly string[];
  readonly choices: readonly string[] | undefined;
  readonly fallback: string | number | boolean | undefined;
  readonly description: string;
}

interface Node {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly additionalProperties?: Node | boolean;
  readonly anyOf?: readonly Node[];
  readonly enum?: readonly string[];
  readonly default?: string | number | boolean;
  readonly description?: string;
}

let root: Node | undefined;
let found: readonly Leaf[] | undefined;

function schemaRoot(): Node {
  root ??= configJsonSchema() as Node;
  return root;
}

/** All settings, derived from the schema. */
export function leaves(): readonly Leaf[] {
  found ??= leavesOf(schemaRoot(), []);
  return found;
}

function leavesOf(node: Node, path: readonly string[]): Leaf[] {
  if (node.type !== "object") {
    const types = node.anyOf?.flatMap(({ type = "string" }) => [type]) ?? [node.type ?? "string"];
    const { description = "", enum: choices, default: fallback } = node;
    return [{ path: path.join("."), types, choices, fallback, description }];
  }
  const named = Object.entries(node.properties ?? {}).flatMap(([key, child]) => leavesOf(child, [...path, key]));
  const others =
    typeof node.additionalProperties === "object" ? leavesOf(node.additionalProperties, [...path, "*"]) : [];
  return [...named, ...others];
}

/** The keys allowed at a path; undefined if the path is a value or does not exist. */
export function keysAt(path: readonly string[]): readonly string[] | undefined {
  let node: Node | undefined = schemaRoot();
  for (const key of path) {
    const others: Node | boolean | undefined = node.additionalProperties;
    node = node.properties?.[key] ?? (typeof others === "object" ? others : undefined);
    if (node === undefined) return undefined;
  }
  return node.properties === undefined ? undefined : Object.keys(node.properties);
}

export function leafAt(path: readonly string[]): Leaf | undefined {
  const text = path.join(".");
  return leaves().find((leaf) => leaf.path === text) ?? leaves().find((leaf) => fits(leaf.path.split("."), path));
}

/** Whether a pattern with `*` for one name describes the path. */
function fits(pattern: readonly string[], path: readonly string[]): boolean {
  return pattern.length === path.length && pattern.every((part, k) => part === "*" || part === path[k]);
}

/** `tape.reactors.outbox.batch` → `TAPE_REACTORS_OUTBOX_BATCH`, `project.name` → `TAPE_PROJECT_NAME`. */
export function variableOf(path: string): string {
  const words = path.replace(/^tape\./, "").replaceAll(/[.-]/g, "_");
  return `TAPE_${words.toUpperCase()}`;
}

/** Converts text from the environment, a flag or `${…}` to the type of the setting; undefined if it does not fit. */
export function valueFromText(text: string, leaf: Leaf): string | number | boolean | string[] | undefined {
  const { types } = leaf;
  if (types.includes("array")) return text.split(",").map((part) => part.trim());
  if (types.includes("boolean")) return text === "true" ? true : text === "false" ? false : undefined;
  if (types.includes("integer") || types.includes("number")) {
    if (/^-?\d+(\.\d+)?$/.test(text)) return Number(text);
    return types.includes("string") ? text : undefined;
  }
  return text;
}
