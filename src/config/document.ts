import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type YAMLSeq } from "yaml";

export interface Place {
  readonly line: number;
  readonly column: number;
}

export interface Problem {
  /** `tape.yaml:4:7`, the variable `TAPE_…`, or a flag. */
  readonly where: string;
  readonly message: string;
}

/** One value of the file, its place, and the variables inserted into it. */
export interface FileValue {
  readonly path: readonly string[];
  readonly value: unknown;
  readonly place: Place;
  readonly variables: readonly string[];
  /** Those of them that have a default in the file. */
  readonly defaulted: readonly string[];
}

export interface FileContent {
  readonly values: readonly FileValue[];
  /** The place of each key and section, by path. */
  readonly keys: ReadonlyMap<string, Place>;
  readonly problems: readonly (Place & { readonly message: string })[];
}

/** Far more than a configuration needs; a larger file is a mistake or an attack. */
const maxNodes = 10_000;
const maxDepth = 20;

/** Values below this key keep their variables: `durable-tape deploy` passes them on, and other programs ignore them. */
const kept = "tape.deploy.";

/** Parses YAML and records the place of every key and value. Replaces `${VAR}` and `${VAR:-default}` in values. */
export function readDocument(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
  missing: (name: string) => string = notSet,
): FileContent {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true });
  const problems: (Place & { message: string })[] = [];
  const values: FileValue[] = [];
  const keys = new Map<string, Place>();
  const placeAt = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const placeOf = (node: Node | null | undefined): Place => placeAt(node?.range?.[0] ?? 0);
  const report = (place: Place, message: string): void => void problems.push({ ...place, message });
  for (const { pos, message } of [...document.errors, ...document.warnings]) report(placeAt(pos[0]), message);
  if (problems.length > 0) return { values, keys, problems };

  let nodes = 0;
  const walk = (node: Node | null, path: readonly string[], at: Place): void => {
    if (++nodes > maxNodes || path.length > maxDepth) {
      if (nodes <= maxNodes + 1) report(at, "too large for a configuration");
      nodes = maxNodes + 1;
      return;
    }
    if (isAlias(node)) {
      walk(node.resolve(document) ?? null, path, at);
      return;
    }
    if (isMap(node)) {
      for (const { key, value } of node.items) {
        const name = isScalar(key) ? String(key.value) : undefined;
        const place = placeOf(key as Node);
        if (name === undefined || name === "__proto__") report(place, "a key must be plain text");
        else {
          keys.set([...path, name].join("."), place);
          const empty = value === null || (isScalar(value) && value.value === null);
          walk(value as Node | null, [...path, name], empty ? place : placeOf(value as Node));
        }
      }
      return;
    }
    if (isSeq(node)) {
      nodes += node.items.length;
      const list = listOf(node, (value) => filledIn(value, path));
      if ("problem" in list) report(at, `${path.join(".")}: ${list.problem}`);
      else values.push({ path, value: list.text, place: at, ...insertedIn(list) });
      return;
    }
    if (!isScalar(node)) return;
    const filled = filledIn(node.value, path);
    if ("problem" in filled) report(at, filled.problem);
    else if (path.join(".") === "tape.store.url" && leaks(String(node.value), String(filled.text))) {
      report(
        at,
        "tape.store.url: a server's address must not contain a variable, because its value would be sent to that server",
      );
    } else values.push({ path, value: filled.text, place: at, ...insertedIn(filled) });
  };
  const filledIn = (value: unknown, path: readonly string[]): Filled<unknown> =>
    typeof value === "string" && !`${path.join(".")}.`.startsWith(kept)
      ? substitute(value, env, missing)
      : { text: value, variables: [], defaulted: [] };
  if (document.contents !== null) walk(document.contents as Node, [], { line: 1, column: 1 });
  return { values, keys, problems };
}

/** A list of plain values, each with its variables filled in. */
function listOf(node: YAMLSeq, fill: (value: unknown) => Filled<unknown>): Filled<unknown[]> {
  const items = node.items.filter(isScalar).map(({ value }) => fill(value));
  if (items.length < node.items.length) return { problem: "must be a list of plain values" };
  const texts: unknown[] = [];
  const variables: string[] = [];
  const defaulted: string[] = [];
  for (const item of items) {
    if ("problem" in item) return item;
    texts.push(item.text);
    variables.push(...item.variables);
    defaulted.push(...item.defaulted);
  }
  return { text: texts, variables, defaulted };
}

/** True for a server address that contains a variable. An address that is one variable is the choice of its author. */
const leaks = (raw: string, filled: string): boolean =>
  /^https?:/i.test(filled) && /\$\{/.test(raw.replaceAll("$${", "")) && !/^\$\{[A-Za-z_]\w*(?::-[^}]*)?\}$/.test(raw);

type InsertedVariables = Pick<FileValue, "variables" | "defaulted">;
type Filled<T> = ({ readonly text: T } & InsertedVariables) | { readonly problem: string };

const insertedIn = ({ variables, defaulted }: InsertedVariables): InsertedVariables => ({ variables, defaulted });

const notSet = (name: string): string => `variable ${name} is not set; set it, or add a default with \${${name}:-…}`;

/** Replaces `${NAME}`; `$${` stands for `${`. An empty variable counts as not set, as in a shell's `:-`. */
export function substitute(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
  missing: (name: string) => string = notSet,
): Filled<string> {
  const variables: string[] = [];
  const defaulted: string[] = [];
  let problem: string | undefined;
  const filled = text.replaceAll(/\$\$\{|\$\{([^}]*)(\}?)/g, (whole, inner: string | undefined, close: string) => {
    if (inner === undefined) return "${";
    const match = /^([A-Za-z_]\w*)(?::-(.*))?$/s.exec(inner);
    if (match === null || close === "") {
      problem ??= `\${${inner}${close} must be \${NAME} or \${NAME:-default}`;
      return whole;
    }
    const [, name, fallback] = match;
    variables.push(name!);
    if (fallback !== undefined && fallback !== "") defaulted.push(name!);
    const value = env[name!] || fallback;
    if (value === undefined) problem ??= missing(name!);
    return value ?? "";
  });
  return problem === undefined ? { text: filled, variables, defaulted } : { problem };
}
