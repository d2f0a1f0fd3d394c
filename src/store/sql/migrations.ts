import { createHash } from "node:crypto";
import { TapeError } from "../../model/errors.ts";
import type { SqlFiles } from "./files.ts";
import type { RowOf } from "./statements.gen.ts";

/**
 * Numbered files, applied in order by one process at a time, while processes of the previous version keep running.
 *
 * A file is one transaction: killed at any statement, it has not happened and is run again. It may create tables and
 * columns, and indexes of tables that it creates. Slow changes of large tables belong in a file whose first line is
 *
 *   -- online
 *
 * Its statements are executed one by one, on PostgreSQL only: an index is built concurrently, and a statement under
 *
 *   -- in batches of tape.<table>(<key>)
 *
 * is executed for one range of keys after the other, `key > :after and key <= :until`; the key is a bigint with an
 * index. Killed at any statement, the file is run again from its start, so each statement must be repeatable.
 */
export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
  readonly online: boolean;
  readonly steps: readonly Step[];
}

export interface Step {
  readonly text: string;
  readonly batch?: Batch;
}

/** The table whose keys are walked, and the key. */
export interface Batch {
  readonly table: string;
  readonly key: string;
}

export function loadMigrations(files: SqlFiles): Migration[] {
  const found = [...files]
    .filter(([file]) => /^\d{4}_.*\.sql$/.test(file))
    .map(([file, source]) => {
      const checksum = createHash("sha256").update(source).digest("hex");
      const online = source.startsWith("-- online\n");
      const steps = splitSteps(source);
      if (online) for (const step of steps) assertRepeatable(file, step);
      else if (steps.some(({ batch }) => batch !== undefined)) throw new Error(`${file} has batches: add "-- online"`);
      return { number: Number(file.slice(0, 4)), name: file, checksum, online, steps };
    });
  const twice = found.find(({ number }, k) => number === found[k + 1]?.number);
  if (twice !== undefined) throw new Error(`two migrations have the number ${twice.number}: rename one`);
  return found;
}

/** Splits at semicolons outside comments, quotes and dollar quotes; enough for our own files. */
export function splitSteps(source: string): Step[] {
  const steps: Step[] = [];
  let current = "";
  let batch: Batch | undefined;
  const flush = (): void => {
    const text = current.trim();
    if (text !== "") steps.push(batch === undefined ? { text } : { text, batch });
    if (text !== "") batch = undefined;
    current = "";
  };
  const token = /--[^\n]*|'(?:[^']|'')*'|\$\$[\s\S]*?\$\$|;|[^-';$]+|./g;
  for (const [part] of source.matchAll(token)) {
    if (part === ";") flush();
    else if (part.startsWith("--")) batch = batchOf(part) ?? batch;
    else current += part;
  }
  flush();
  return steps;
}

function batchOf(comment: string): Batch | undefined {
  const found = /^-- in batches of (tape\.\w+)\((\w+)\)$/.exec(comment);
  return found === null ? undefined : { table: found[1]!, key: found[2]! };
}

/** Forms of statements that may be executed twice, and that hold a lock only briefly. */
const repeatable = [
  /^create (unique )?index concurrently \w+ on /,
  /^drop index concurrently if exists /,
  /^alter table \S+ add column if not exists /,
  /^alter table \S+ drop column if exists /,
  /^create or replace function /,
  /^create table if not exists /,
];

function assertRepeatable(file: string, { text, batch }: Step): void {
  const inBatches = batch !== undefined && /:after\b/.test(text) && /:until\b/.test(text);
  if (inBatches || repeatable.some((form) => form.test(text))) return;
  throw new Error(`${file} is online and has a statement that cannot be repeated: ${text.slice(0, 80)}`);
}

export interface AppliedMigration {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
}

export const appliedOf = (rows: readonly RowOf<"migrations.list">[]): AppliedMigration[] =>
  rows.map(({ number, name, checksum }) => ({
    number: Number(number),
    name: String(name),
    checksum: String(checksum),
  }));

/**
 * The pending migrations. Rejects a schema that is newer than this code, or one whose applied migrations were edited.
 */
export function pendingMigrations(known: readonly Migration[], applied: readonly AppliedMigration[]): Migration[] {
  const newest = newestOf(known);
  for (const done of applied) {
    if (done.number > newest) {
      const message = `the store has schema ${done.number}, this version of Tape knows ${newest}`;
      throw new TapeError("TAPE_SCHEMA_NEWER", message, { found: done.number, known: newest });
    }
    const own = known.find((migration) => migration.number === done.number);
    if (own?.checksum !== done.checksum) {
      throw new TapeError("TAPE_SCHEMA_CHANGED", `migration ${done.name} differs from the one that was applied`, {
        migration: done.name,
      });
    }
  }
  return known.filter((migration) => !applied.some((done) => done.number === migration.number));
}

export const newestOf = (known: readonly Migration[]): number => known.at(-1)?.number ?? 0;
