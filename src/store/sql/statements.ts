import type { SqlFiles } from "./files.ts";

/**
 * SQL is in plain files, one for each group of tables. Each statement starts with a header and ends with a semicolon:
 *
 *   -- name: <name>        the name that plans and stores use
 *   -- fenced              changes rows under a fence that the same transaction has checked
 *   -- unfenced: <why>     or: changes rows without one, and why that is right
 *   -- read                or: changes nothing
 *   -- writes: <tables>    of all but reads: the tables it changes
 *
 * A statement without such a header is rejected, so an unfenced write cannot go unnoticed. Parameters are written
 * `:snake_case` and are bound by position. PostgreSQL infers their types; where it cannot, the SQL has a cast
 * (`:tenant::text is null`). Text that several statements share is defined once:
 *
 *   -- macro: <text>       replaces this text in every statement of the store by what follows
 */
export interface Statement {
  readonly name: string;
  readonly role: "fenced" | "unfenced" | "read";
  readonly text: string;
  /** In order of position, in camelCase: the fields of the parameter object. */
  readonly params: readonly string[];
  readonly returnsRows: boolean;
  /** The tables that it changes, by its header. */
  readonly writes: ReadonlySet<string>;
}

/** How the backend writes the parameter `param`. */
export type Placeholder = (position: number, param: string) => string;

/** By the text that they replace. */
export type Macros = ReadonlyMap<string, string>;

export function loadStatements(
  files: SqlFiles,
  placeholder: Placeholder,
  schema?: string,
  prepare: (name: string, source: string, macros: Macros) => string = (_name, source) => source,
): ReadonlyMap<string, Statement> {
  const parts = [...files].flatMap(([file, text]) => partsOf(file, text));
  const macros = new Map(parts.filter(({ macro }) => macro).map(({ name, source }) => [name, withoutComments(source)]));
  const statements = new Map<string, Statement>();
  for (const { file, macro, name, source } of parts) {
    if (macro) continue;
    if (statements.has(name)) throw new Error(`${file}: duplicate statement ${name}`);
    const expanded = expand(prepare(name, source, macros), macros);
    statements.set(name, parseStatement(name, expanded, placeholder, schema));
  }
  return statements;
}

/** One statement or macro of a file: the text after the line with its name, without the last semicolon. */
export interface SqlPart {
  readonly file: string;
  readonly macro: boolean;
  readonly name: string;
  readonly source: string;
}

export function partsOf(file: string, text: string): SqlPart[] {
  const [before, ...parts] = text.split(/^-- (?=name: |macro: )/m);
  if (before!.trim() !== "") throw new Error(`${file} must begin with "-- name: " or "-- macro: "`);
  return parts.map((part) => {
    const end = part.indexOf("\n");
    const [kind = "", name = ""] = part.slice(0, end).split(": ");
    const source = part.slice(end + 1).trimEnd();
    return { file, macro: kind === "macro", name: name.trim(), source: source.replace(/;$/, "") };
  });
}

const withoutComments = (source: string): string =>
  source
    .split("\n")
    .filter((line) => !line.startsWith("--"))
    .join("\n")
    .trim();

function expand(source: string, macros: Macros): string {
  const once = (line: string): string =>
    [...macros].reduce((text, [name, replacement]) => text.replaceAll(name, () => replacement), line);
  // A macro may use others.
  const inCode = (line: string): string => {
    const text = once(line);
    return text === line ? text : inCode(text);
  };
  return source
    .split("\n")
    .map((line) => (line.startsWith("--") ? line : inCode(line)))
    .join("\n");
}

export function parseStatement(name: string, source: string, placeholder: Placeholder, schema?: string): Statement {
  const lines = source.split("\n");
  const header = lines[0] ?? "";
  const match = /^-- (fenced$|unfenced: \S.*|read$)/.exec(header);
  if (match === null) {
    throw new Error(`${name} must begin with "-- fenced", "-- unfenced: <why>" or "-- read", not "${header}"`);
  }
  const role = match[1]!.startsWith("unfenced") ? "unfenced" : (match[1] as "fenced" | "read");
  const body = withoutComments(source);
  if (role === "read" && /\b(insert (?:or \w+ )?into|update \S+ set|delete from)\b/i.test(body)) {
    throw new Error(`${name} changes rows but says "-- read"`);
  }
  const params: string[] = [];
  const text = body.replace(/(?<![:\w]):([a-z][a-z_]*)/g, (_whole, snake: string) => {
    const camel = toCamel(snake);
    let position = params.indexOf(camel);
    if (position < 0) position = params.push(camel) - 1;
    return placeholder(position + 1, camel);
  });
  return {
    name,
    role,
    text: schema === undefined ? text : qualify(text, schema),
    params,
    writes: new Set(/^-- writes: (.+)$/m.exec(source)?.[1]?.split(", ")),
    returnsRows:
      role === "read" || /\b(?:returning|then return)\b/i.test(body) || /^with\b[\s\S]*\bselect\b[^()]*$/i.test(body),
  };
}

/** The SQL files use the schema `tape`; a store may have another one. */
export function qualify(text: string, schema: string): string {
  return schema === "tape" ? text : text.replace(/\btape\./g, `"${schema.replaceAll('"', '""')}".`);
}

const camels = new Map<string, string>();

export function toCamel(snake: string): string {
  let camel = camels.get(snake);
  if (camel === undefined) {
    camel = snake.replace(/_([a-z])/g, (_whole, letter: string) => letter.toUpperCase());
    camels.set(snake, camel);
  }
  return camel;
}
