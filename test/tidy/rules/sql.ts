import type { SourceFile } from "../files.ts";
import { stringsOf } from "../syntax.ts";

const statementFile = /^src\/store\/([^/]+)\/sql\/.+\.sql$/;
const maxSqlLines = 320;
const kinds = "`-- fenced`, `-- unfenced: <why>` or `-- read`";

/** The text without comments and quoted strings, in which a keyword is a keyword. */
export function bareSql(text: string): string {
  return text.replace(/--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'/g, " ");
}

interface NamedStatement extends SourceFile {
  readonly store: string;
  readonly name: string;
}

/** Each statement or macro as if it were a file of its own; `path` names the file and the statement. */
function partsOf(files: SourceFile[], kind: "name" | "macro"): NamedStatement[] {
  return files.flatMap(({ path, text }) => {
    const store = statementFile.exec(path)?.[1];
    if (store === undefined) return [];
    return text
      .split(/^-- (?=name: |macro: )/m)
      .filter((part) => part.startsWith(`${kind}: `))
      .map((part) => {
        const [first = "", ...lines] = part.split("\n");
        const name = first.slice(kind.length + 2);
        return { path: `${path} ${name}`, store, name, text: lines.join("\n") };
      });
  });
}

const statementsOf = (files: SourceFile[]): NamedStatement[] => partsOf(files, "name");

/** What statements share stands once: no statement spells out the text of a macro, and each macro is used. */
export function sqlMacros(files: SourceFile[]): string[] {
  const statements = statementsOf(files).map((statement) => ({ ...statement, code: oneLine(bareSql(statement.text)) }));
  const code = files.filter(({ path }) => path.endsWith(".ts"));
  return partsOf(files, "macro").flatMap(({ path, store, name, text }) => {
    const body = oneLine(bareSql(text).replace(/;\s*$/, ""));
    const inner = body.replace(/^\(select (.*?)(?: from .*)?\)$/, "$1");
    const ofStore = statements.filter((statement) => statement.store === store);
    const used =
      ofStore.some((statement) => statement.text.includes(name)) || code.some((file) => file.text.includes(name));
    return [
      ...(used ? [] : [`${path}: no statement uses it`]),
      ...ofStore
        .filter((statement) => statement.code.includes(body) || statement.code.includes(inner))
        .map((statement) => `${statement.path}: spells out a macro; say ${name}`),
    ];
  });
}

const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ").trim();

export function sqlHeaders(files: SourceFile[]): string[] {
  return [...sqlFileForms(files), ...statementsOf(files).flatMap(headerOf)];
}

/** A file holds named statements and nothing else, each name once in its store. */
function sqlFileForms(files: SourceFile[]): string[] {
  const named = statementsOf(files);
  const twice = named.filter(({ store, name }, k) =>
    named.slice(0, k).some((other) => other.store === store && other.name === name),
  );
  const statementFiles = files.filter(({ path }) => statementFile.test(path));
  return [
    ...twice.map(({ path }) => `${path}: the store has a statement of that name already`),
    ...statementFiles
      .filter(({ text }) => !/^-- (name|macro): /.test(text))
      .map(({ path }) => `${path}: begin with -- name: or -- macro:`),
    ...statementFiles
      .filter(({ text }) => text.split("\n").length - 1 > maxSqlLines)
      .map(({ path }) => `${path} is longer than ${maxSqlLines} lines; split it by table`),
  ];
}

const writing = /\b(?:insert\s+(?:or\s+\w+\s+)?into|delete\s+from|update(?!\s+set\b))\s+(?:tape\.)?(\w+)/gi;

function headerOf(file: NamedStatement): string[] {
  const lines = file.text.split("\n");
  const firstCode = lines.findIndex((line) => line.trim() !== "" && !line.startsWith("--"));
  const header = firstCode < 0 ? lines : lines.slice(0, firstCode);
  const declarations = header.filter((line) => /^--\s*(fenced|unfenced|read)\b/.test(line));
  const declaration = declarations[0];
  if (declaration === undefined || declarations.length > 1) {
    return [`${file.path}: ${declarations.length} declarations in the first comment; say exactly one of ${kinds}`];
  }
  if (!/^-- (fenced|read|unfenced: \S.*)\s*$/.test(declaration)) {
    return [`${file.path}: "${declaration}" is no declaration; say ${kinds}`];
  }
  // `for update` and `for no key update` lock rows and change none.
  const code = bareSql(file.text).replace(/\bfor\s+(no\s+key\s+)?update\b/gi, " ");
  const write = /\b(insert|update|delete|merge|truncate)\b/i.exec(code);
  if (write && declaration.trimEnd() === "-- read") {
    return [`${file.path}: declared as read but contains ${write[0]}; declare it fenced, or unfenced with the reason`];
  }
  if (!/;\s*$/.test(bareSql(file.text)) || bareSql(file.text).trim().slice(0, -1).includes(";")) {
    return [`${file.path}: one statement, and a semicolon at its end`];
  }
  const written = [...new Set([...code.matchAll(writing)].map((found) => found[1]!))].sort().join(", ");
  const declared = /^-- writes: (.+)$/m.exec(file.text)?.[1] ?? "";
  if (declared !== written) return [`${file.path}: says "writes: ${declared}", but writes ${written || "nothing"}`];
  return [];
}

/**
 * A statement names the columns that it reads: one that says `*` answers another thing once a migration has added a column,
 * and PostgreSQL refuses it to the processes of the version before, which have it prepared. `*` of what the statement
 * itself has named is fine: of a select in parentheses, or of an alias with columns, `as i(a, b)`.
 */
export function sqlStars(files: SourceFile[]): string[] {
  return statementsOf(files).flatMap(({ path, text }) => {
    const code = bareSql(text);
    const all = [...code.matchAll(/\b(?:select|returning)(?:\s+distinct)?\s+\*(?!\s*from\s*\()/gi)].map(
      ([found]) => found,
    );
    const ofOne = [...code.matchAll(/\b(\w+)\.\*/g)].filter(
      ([, alias]) => !new RegExp(`\\bas\\s+${alias}\\s*\\(`, "i").test(code),
    );
    return [...all, ...ofOne.map(([found]) => found)].map((found) => `${path}: "${found}"; name the columns`);
  });
}

/**
 * Both SQL stores have the same statements, so that the difference between the folders is the difference between the
 * databases. `exceptions` maps a name that only one of them has to the reason.
 */
export function sqlParity(
  files: SourceFile[],
  exceptions: Record<string, string>,
  ofSpanner: Record<string, string> = {},
): string[] {
  const sqlite = namesIn(files, "sqlite");
  const postgres = namesIn(files, "postgres");
  const lonely = [...new Set([...sqlite, ...postgres])].filter((name) => sqlite.has(name) !== postgres.has(name));
  return [
    ...spannerParity(
      namesIn(files, "spanner"),
      [...sqlite].filter((name) => postgres.has(name)),
      ofSpanner,
    ),
    ...lonely
      .filter((name) => !Object.hasOwn(exceptions, name))
      .map((name) => {
        const [has, lacks] = sqlite.has(name) ? ["sqlite", "postgres"] : ["postgres", "sqlite"];
        return `${name} is in src/store/${has}/sql only; add it to src/store/${lacks}/sql or name the reason in the test`;
      }),
    ...Object.keys(exceptions)
      .filter((name) => !lonely.includes(name))
      .map((name) => `${name} is listed as a difference but is none; remove the entry`),
  ];
}

/** Spanner has what the other two share. */
function spannerParity(spanner: Set<string>, shared: string[], exceptions: Record<string, string>): string[] {
  if (spanner.size === 0) return [];
  const missing = shared.filter((name) => !spanner.has(name));
  const different = new Set([...missing, ...[...spanner].filter((name) => !shared.includes(name))]);
  return [
    ...[...different]
      .filter((name) => !Object.hasOwn(exceptions, name))
      .map((name) =>
        spanner.has(name)
          ? `${name} is in src/store/spanner/sql only; name the reason in the test`
          : `${name} is missing in src/store/spanner/sql; add it or name the reason in the test`,
      ),
    ...Object.keys(exceptions)
      .filter((name) => !different.has(name))
      .map((name) => `${name} is listed as a difference of Spanner but is none; remove the entry`),
  ];
}

function namesIn(files: SourceFile[], store: string): Set<string> {
  return new Set(statementsOf(files).flatMap((found) => (found.store === store ? [found.name] : [])));
}

const migrationFile = /^src\/store\/postgres\/migrations\/\d{4}_.*\.sql$/;
const longOnes: readonly (readonly [RegExp, string])[] = [
  [/\b(update|delete from) (?!tape\.meta\b)/, "changes rows: do it in batches, in a file that says -- online"],
  [/\balter column \w+ (set data )?type\b/, "rewrites the table: add a column and fill it in batches"],
  [/\badd column\b.*\bdefault [^;]*\(/, "gives each row a value of its own: add the column and fill it in batches"],
  [/\bconcurrently\b/, "cannot be part of a transaction: say -- online in the first line"],
];

/** Files that are one transaction hold their locks until its end: none may do what takes long on a large table. */
export function onlineMigrations(files: SourceFile[]): string[] {
  return files.flatMap(({ path, text }) => {
    if (!migrationFile.test(path) || text.startsWith("-- online\n")) return [];
    const code = bareSql(text);
    const made = [...code.matchAll(/\bcreate table (?:if not exists )?(tape\.\w+)/g)].map((found) => found[1]);
    const blocks = [...code.matchAll(/\bcreate (?:unique )?index (?:if not exists )?\w+ on (tape\.\w+)/g)]
      .filter((found) => !made.includes(found[1]))
      .map(
        (found) =>
          `${path}: an index of ${found[1]} blocks its writers: build it concurrently, in a file that says -- online`,
      );
    const others = longOnes.flatMap(([form, why]) => (form.test(code) ? [`${path} ${why}`] : []));
    return [...blocks, ...others];
  });
}

const rowStatement = /\binsert\s+into\b|\bupdate\b[^;]*?\bset\b|\bdelete\s+from\b|\bselect\b[^;]*?\bfrom\b/i;
const sessionStatement =
  /^\s*(begin\s+(immediate|transaction|isolation)|savepoint\s+\w|pragma\s+\w|listen\s+\w|notify\s+\w)/i;

/**
 * A shard's own tables, and moves, which copy each table by the columns that it has. They run on connections of their
 * own, outside the store's statements, and a move compares checksums of what it has copied.
 */
const ofShards = /^src\/store\/postgres\/shards\/\w+\.ts$/;

/** Statements on rows live in .sql files; a store's code itself may only steer its session (begin, pragma, listen, …). */
export function sqlInCode(files: SourceFile[]): string[] {
  const findings: string[] = [];
  for (const file of files.filter(({ path }) => path.endsWith(".ts") && !ofShards.test(path))) {
    const inStore = /^src\/store\/[^/]+\//.test(file.path);
    for (const { text, line } of stringsOf(file)) {
      const found = rowStatement.exec(text)?.[0] ?? (inStore ? undefined : sessionStatement.exec(text)?.[0]);
      if (!found) continue;
      const statement = found.replaceAll(/\s+/g, " ").trim().slice(0, 60);
      findings.push(`${file.path}:${line} has SQL in a string ("${statement}"); put it into src/store/<store>/sql`);
    }
  }
  return findings;
}
