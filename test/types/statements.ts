import type { Change } from "../../src/model/changes.ts";
import type { Connections } from "../../src/store/postgres/connections.ts";
import { type Plan, query, queryRow, queryRows } from "../../src/store/sql/plan.ts";
import type { ParamsOf, RowOf } from "../../src/store/sql/statements.gen.ts";
import type { Statements, Times } from "../../src/store/sqlite/statements.ts";
import { inferred, same } from "./same.ts";

/** The statements that plans and stores may execute. Only compiled, never executed: tsc is part of the test command. */

export function* right(): Plan<void> {
  const row = yield* queryRow("name.find", { tenant: "t", name: "lead" });
  inferred(row)<RowOf<"name.find"> | undefined>();
  inferred(row!.journal)<number>();
  inferred((yield* queryRows("value.get", { tenant: "t", key: "k" }))[0]!.value)<string | null>();
  inferred((yield* query("leases.doom")).count)<number>();
}

export function* wrong(): Plan<void> {
  // @ts-expect-error unknown statement
  yield* queryRow("name.fnd", { tenant: "t", name: "lead" });
  // @ts-expect-error a parameter is missing
  yield* queryRow("name.find", { tenant: "t" });
  // @ts-expect-error all parameters are missing
  yield* queryRow("name.find");
  // @ts-expect-error a parameter is misspelt
  yield* query("name.create", { tenant: "t", nmae: "lead", journal: 1 });
  // @ts-expect-error an extra parameter
  yield* queryRow("name.find", { tenant: "t", name: "lead", journal: 1 });
  // @ts-expect-error a number instead of a string
  yield* queryRow("name.find", { tenant: "t", name: 1 });
  // @ts-expect-error undefined is not a value
  yield* queryRow("name.find", { tenant: "t", name: undefined });
  const row = yield* queryRow("name.find", { tenant: "t", name: "lead" });
  // @ts-expect-error a column that the statement does not return
  row!.jurnal;
  // @ts-expect-error a column may be null
  (yield* queryRow("value.get", { tenant: "t", key: "k" }))!.value.length;
}

export function stores(connections: Connections, statements: Statements, times: Times): void {
  connections.ask("store.standbys", {});
  statements.run("migrations.size", {}, times);
  // @ts-expect-error only SQLite has it
  connections.ask("migrations.size", {});
  // @ts-expect-error only PostgreSQL has it
  statements.run("store.standbys", {}, times);
  // @ts-expect-error a parameter is missing
  connections.ask("witness.purge", {});
  // @ts-expect-error a parameter is misspelt
  statements.run("witness.purge", { older: 1 }, times);
}

/** The statement with the same name executes a change, without other parameters. `query` only sees their union. */
type OneStatement = Exclude<Change, { do: "note.create" | "slot.set" | "labels.set" }>;
type ParamsFor<K extends OneStatement["do"]> = Omit<Extract<OneStatement, { do: K }>, "tenant"> & { tenant: string };
type Incomplete = { [K in OneStatement["do"]]: ParamsFor<K> extends ParamsOf<K> ? never : K }[OneStatement["do"]];
same<Incomplete>()<never>();
