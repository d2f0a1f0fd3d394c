import { TapeError } from "../../model/errors.ts";
import { sqlFiles } from "../sql/files.ts";
import type { Query, Row } from "../sql/plan.ts";
import { loadStatements, type Statement } from "../sql/statements.ts";
import type { SpannerQuery, SpannerRow } from "./client.ts";
import { journalOf, storedOf } from "./numbers.ts";
import { journals, lists, nullTypes, payloads, withTexts } from "./types.ts";

const times: ReadonlySet<string> = new Set(["at", "now", "steady"]);
const isTime = (param: string): boolean => times.has(param);

/** The database's clock, in milliseconds. */
const serverTime = "unix_millis(current_timestamp())";
const givenTime = "given_time";

/** The statements with this expression for the time. */
export class Statements {
  static readonly all: ReadonlyMap<string, Statement> = statementsWith(serverTime);
  readonly #all: ReadonlyMap<string, Statement>;
  readonly #time: (() => number) | undefined;

  /** `time`: a seam for tests, which replaces the database's clock. */
  constructor(time?: () => number) {
    this.#time = time;
    this.#all = time === undefined ? Statements.all : statementsWith(`@${givenTime}`);
  }

  get(name: string): Statement {
    const found = this.#all.get(name);
    if (found === undefined) throw new TapeError("TAPE_INVARIANT", `unknown statement ${name}`, { name });
    return found;
  }

  /** Parameters with their types: the database infers none for a null. */
  bind({ sql: name, params: given }: Pick<Query, "params"> & { readonly sql: string }): SpannerQuery {
    const { text, params: names } = this.get(name);
    const params: Record<string, unknown> = {};
    const types: Record<string, unknown> = {};
    for (const param of names) {
      if (isTime(param)) continue;
      [params[param], types[param]] = bound(name, param, given[param]);
    }
    if (this.#time !== undefined && text.includes(`@${givenTime}`))
      [params[givenTime], types[givenTime]] = [String(this.#time()), "int64"];
    return { sql: text, params, types };
  }
}

function statementsWith(time: string): ReadonlyMap<string, Statement> {
  const placeholder = (_position: number, param: string): string => (isTime(param) ? time : `@${param}`);
  return loadStatements(sqlFiles(new URL("sql/", import.meta.url)), placeholder);
}

const int64s = { type: "array", child: { type: "int64" } };

function bound(name: string, param: string, value: unknown): [value: unknown, type: unknown] {
  if (value === null || value === undefined) return [null, nullTypes.get(param) ?? "string"];
  switch (typeof value) {
    case "boolean":
      return [value, "bool"];
    case "number":
    case "bigint":
      return [String(journals.has(param) ? storedOf(value) : value), "int64"];
    case "string":
      if (payloads.has(param) && !withTexts.has(name)) return [Buffer.from(value), "bytes"];
      if (!lists.has(param)) return [value, "string"];
      return [(JSON.parse(value) as number[]).map((journal) => String(storedOf(journal))), int64s];
    default:
      return [value, int64s];
  }
}

/** Columns with the number of a journal, wherever they are of that type. */
const journalColumns: ReadonlySet<string> = new Set([...["journal", "run", "root", "parent", "item", "authority"]]);

/** A row as plans expect it: whole numbers as numbers. Tokens and nonces are selected as text. */
export function rowOf(columns: SpannerRow): Row {
  const row: Record<string, unknown> = {};
  for (const { name, value } of columns) row[name] = plain(name, value);
  return row;
}

function plain(name: string, value: unknown): unknown {
  if (value === null || typeof value !== "object") return value;
  if (Buffer.isBuffer(value)) return value.toString();
  const text = (value as { value?: unknown }).value;
  if (typeof text !== "string") return value;
  return Number(journalColumns.has(name) ? journalOf(BigInt(text)) : text);
}
