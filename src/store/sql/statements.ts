import type { SqlFiles } from "./files.ts";

/**
 * SQL lives in plain files, one for each group of tables. Each statement begins with a header and ends with a semicolon:
 *
 *   -- name: <name>        by which plans and stores ask for it
 *   -- fenced              changes rows under a fence that the same transaction has checked
 *   -- unfenced: <why>     or: changes rows without one, and why that is right
 *   -- read                or: changes nothing
 *   -- writes: <tables>    of all but reads: the tables it changes
 *
 * A statement without such a header is refused, so an unfenced write cannot be shipped unseen. Parameters are written
 * `:snake_case`, are bound by position, and have one type each by name (see paramTypes).
 */
export interface Statement {
  readonly name: string;
  readonly role: "fenced" | "unfenced" | "read";
  readonly text: string;
  /** In order of position, in camelCase: the fields of the object they are taken from. */
  readonly params: readonly string[];
  readonly returnsRows: boolean;
  /** The tables that it changes, as its header says. */
  readonly writes: ReadonlySet<string>;
}

/** How the backend writes the parameter `param` of the statement `name`; `cast`: the SQL casts it by itself. */
export type Placeholder = (position: number, param: string, name: string, cast: boolean) => string;

export function loadStatements(
  files: SqlFiles,
  placeholder: Placeholder,
  schema?: string,
  prepare: (name: string, source: string) => string = (_name, source) => source,
): ReadonlyMap<string, Statement> {
  const statements = new Map<string, Statement>();
  for (const [file, text] of files) {
    for (const [name, source] of namedSources(file, text)) {
      if (statements.has(name)) throw new Error(`${file}: there is a second statement ${name}`);
      statements.set(name, parseStatement(name, prepare(name, source), placeholder, schema));
    }
  }
  return statements;
}

/** The statements of one file by name, each from the line that says what it may do, without the last semicolon. */
export function namedSources(file: string, text: string): [name: string, source: string][] {
  const [before, ...parts] = text.split(/^-- name: /m);
  if (before!.trim() !== "") throw new Error(`${file} must begin with "-- name: "`);
  return parts.map((part) => {
    const end = part.indexOf("\n");
    return [
      part.slice(0, end).trim(),
      part
        .slice(end + 1)
        .trimEnd()
        .replace(/;$/, ""),
    ];
  });
}

export function parseStatement(name: string, source: string, placeholder: Placeholder, schema?: string): Statement {
  const lines = source.split("\n");
  const header = lines[0] ?? "";
  const match = /^-- (fenced$|unfenced: \S.*|read$)/.exec(header);
  if (match === null) {
    throw new Error(`${name} must begin with "-- fenced", "-- unfenced: <why>" or "-- read", not "${header}"`);
  }
  const role = match[1]!.startsWith("unfenced") ? "unfenced" : (match[1] as "fenced" | "read");
  const body = lines
    .filter((line) => !line.startsWith("--"))
    .join("\n")
    .trim();
  if (role === "read" && /\b(insert into|update \S+ set|delete from)\b/i.test(body)) {
    throw new Error(`${name} changes rows but says "-- read"`);
  }
  const params: string[] = [];
  const text = body.replace(/(?<![:\w]):([a-z][a-z_]*)/g, (whole, snake: string, offset: number) => {
    const camel = toCamel(snake);
    let position = params.indexOf(camel);
    if (position < 0) position = params.push(camel) - 1;
    return placeholder(position + 1, camel, name, body.startsWith("::", offset + whole.length));
  });
  return {
    name,
    role,
    text: schema === undefined ? text : qualify(text, schema),
    params,
    writes: new Set(/^-- writes: (.+)$/m.exec(source)?.[1]?.split(", ")),
    returnsRows: role === "read" || /\breturning\b/i.test(body) || /^with\b[\s\S]*\bselect\b[^()]*$/i.test(body),
  };
}

/** The SQL files say `tape.`; a store may live in a schema of another name. */
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

/** One name, one type, in every statement. What is not listed is text. */
export const bigintParams: ReadonlySet<string> = new Set(
  (
    "journal seq after token nonce run root source pos sub parent parentPos authority item by hand attempt sendInMs inMs until " +
    "taken cap amount spent reserved version through ttlMs maxStallMs progress limit from size minAgeMs before nextAt " +
    "below olderMs n moment stamp id number since edge startedSince startedUntil endedSince endedUntil buckets " +
    "pageBytes scan runs bytes schedules streams used afterAt afterRun afterPos afterSub createdAt endedAt"
  ).split(" "),
);
export const booleanParams: ReadonlySet<string> = new Set(
  "open paused surplus armed force held fresh doubt admitted".split(" "),
);
/** Exceptions, by statement: there the same word names text. */
export const textIn: Readonly<Record<string, readonly string[]>> = {
  "run.phase": ["from"],
  "effect.status": ["from"],
  "run.create": ["id", "version"],
  "run.root": ["id", "version"],
  "run.find": ["id"],
  "run.get": ["id"],
  "tombstone.find": ["id"],
  "prune.tombstone": ["id"],
  "schedule.put": ["id"],
  "schedule.change": ["id"],
  "schedule.delete": ["id"],
  "schedule.fire": ["id"],
  "token.put": ["id"],
  "token.get": ["id"],
  "token.revoke": ["id"],
  "token.touch": ["id"],
  "signal.find": ["id"],
  "schedule.find": ["id"],
};
