import { readFileSync } from "node:fs";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { schemaFiles } from "../../tools/schema.ts";
import {
  type Descriptions,
  describePostgres,
  describeSqlite,
  type StatementDescription,
  statementTypes,
} from "../../tools/statements.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";

describe("statements.gen.ts", () => {
  const db = openDatabase(":memory:");
  migrate(db, silentLog);
  const sqlite = describeSqlite(db);
  let url: string;
  let client: pg.Client;
  let postgres: Descriptions;
  beforeAll(async () => {
    url = await freshDatabase(inject("postgres18"));
    await (await openPostgres({ url })).close();
    client = new pg.Client(url);
    await client.connect();
    postgres = await describePostgres(client);
  });
  afterAll(async () => {
    await client.end();
    await dropDatabase(url);
    db.close();
  });

  it("is what the databases say of the SQL files: run `npm run schema`", () => {
    expect(statementTypes(postgres, sqlite)).toBe(readFileSync(schemaFiles.statements, "utf8"));
  });

  it("PostgreSQL takes no number as 32 bits, except those with a small bound", () => {
    const small = ["weight of partition.adjust", "n of blob.get", "n of blob.put", "chunks of blob.put"];
    const narrow = [...postgres].flatMap(([name, { params }]) =>
      [...params].flatMap(([param, type]) => (type === "int4" || type === "int2" ? [`${param} of ${name}`] : [])),
    );
    // An amount, a time or a journal compared with a literal is one: cast the parameter to bigint.
    expect(narrow.sort()).toEqual([...small, "boundMs of transaction.enter"].sort());
  });

  /** The same descriptions with one statement changed. */
  const changed = (
    of: Descriptions,
    name: string,
    change: (was: StatementDescription) => Partial<StatementDescription>,
  ): Descriptions => new Map(of).set(name, { ...of.get(name)!, ...change(of.get(name)!) });
  const column = { type: "text", nullable: true };

  it("cannot be written while the stores return different columns", () => {
    const more = (of: Descriptions) =>
      changed(of, "run.get", ({ columns }) => ({ columns: new Map(columns).set("extra", column) }));
    expect(() => statementTypes(more(postgres), sqlite)).toThrow("run.get: only PostgreSQL returns extra");
    expect(() => statementTypes(postgres, more(sqlite))).toThrow("run.get: only SQLite returns extra");
    expect(statementTypes(more(postgres), more(sqlite))).toContain("extra: string | null");
  });

  it("cannot be written while a difference is listed that is none", () => {
    const same = changed(postgres, "meta.get", ({ columns }) => ({ columns: new Map(columns).set("file", column) }));
    expect(() => statementTypes(same, sqlite)).toThrow("meta.get: file is listed as a difference but is none");
  });

  it("cannot be written while PostgreSQL has a type that needs a cast", () => {
    const odd = (type: string) =>
      changed(postgres, "run.get", ({ params, columns }) =>
        type === "numeric"
          ? { columns: new Map(columns).set("root", { type, nullable: false }) }
          : { params: new Map(params).set("id", type) },
      );
    expect(() => statementTypes(odd("numeric"), sqlite)).toThrow("run.get: column root is numeric: cast it");
    expect(() => statementTypes(odd("float8"), sqlite)).toThrow("run.get: parameter id is float8: cast it");
  });

  it("a statement that PostgreSQL cannot describe says which one it is", async () => {
    await client.query("begin; alter table tape.vals rename column value to other");
    await expect(describePostgres(client)).rejects.toThrow(/value\.get: column "value" does not exist/);
    await client.query("rollback");
  });
});
