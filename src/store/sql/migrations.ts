import { createHash } from "node:crypto";
import { TapeError } from "../../model/errors.ts";
import type { SqlFiles } from "./files.ts";

/**
 * Numbered files, applied in order, one transaction each, under a lock of the store. DDL is transactional on both
 * databases: killed at any statement, a migration has not happened and is simply run again.
 */
export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
  readonly statements: readonly string[];
}

export function loadMigrations(files: SqlFiles): Migration[] {
  return [...files]
    .filter(([file]) => /^\d{4}_.*\.sql$/.test(file))
    .map(([file, source]) => {
      const checksum = createHash("sha256").update(source).digest("hex");
      return { number: Number(file.slice(0, 4)), name: file, checksum, statements: splitStatements(source) };
    });
}

/** Splits at semicolons outside comments, quotes and dollar quotes; enough for files that we write ourselves. */
export function splitStatements(source: string): string[] {
  const statements: string[] = [];
  let current = "";
  const token = /--[^\n]*|'(?:[^']|'')*'|\$\$[\s\S]*?\$\$|;|[^-';$]+|./g;
  for (const [part] of source.matchAll(token)) {
    if (part.startsWith("--")) continue;
    if (part !== ";") current += part;
    else if (current.trim() !== "") {
      statements.push(current.trim());
      current = "";
    }
  }
  if (current.trim() !== "") statements.push(current.trim());
  return statements;
}

export interface Applied {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
}

/** What is left to do; refuses a schema that is newer than this code, or one whose past was edited. */
export function pendingMigrations(known: readonly Migration[], applied: readonly Applied[]): Migration[] {
  const newest = known.at(-1)?.number ?? 0;
  for (const done of applied) {
    if (done.number > newest) {
      const message = `the store is at schema ${done.number}, this Tape knows ${newest}`;
      throw new TapeError("TAPE_SCHEMA_NEWER", message, { found: done.number, known: newest });
    }
    const ours = known.find((migration) => migration.number === done.number);
    if (ours?.checksum !== done.checksum) {
      throw new TapeError("TAPE_SCHEMA_CHANGED", `migration ${done.name} is not the one that was applied`, {
        migration: done.name,
      });
    }
  }
  return known.filter((migration) => !applied.some((done) => done.number === migration.number));
}
