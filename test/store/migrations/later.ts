import { migrations as postgresMigrations } from "../../../src/store/postgres/migrate.ts";
import { loadMigrations } from "../../../src/store/sql/migrations.ts";
import { migrations as sqliteMigrations } from "../../../src/store/sqlite/migrate.ts";

/**
 * The migrations of this version and of two that do not exist: one creates a table, the other adds a column to a table
 * with rows, fills it, and replaces an index.
 */
export const laterSqlite = [
  ...sqliteMigrations,
  ...loadMigrations(
    new Map([
      [
        "9001_remarks.sql",
        `create table remarks(run integer primary key, text text not null) strict;
        create index remarks_text on remarks(text);`,
      ],
      [
        "9002_budgets.sql",
        `alter table budgets add column workflow text not null default '';
        update budgets set workflow = (select r.workflow from runs r where r.journal = budgets.run);
        create index budgets_workflow on budgets(tenant, workflow, run);
        drop index budgets_tenant;`,
      ],
    ]),
  ),
];

export const laterPostgres = [
  ...postgresMigrations,
  ...loadMigrations(
    new Map([
      [
        "9001_remarks.sql",
        `create table tape.remarks(run bigint primary key, text text not null);
        create index remarks_text on tape.remarks(text);`,
      ],
      [
        "9002_budgets.sql",
        `-- online
        alter table tape.budgets add column if not exists workflow text not null default '';
        -- in batches of tape.budgets(run)
        update tape.budgets b set workflow = r.workflow from tape.runs r
        where r.journal = b.run and b.workflow = '' and b.run > :after and b.run <= :until;
        create index concurrently budgets_workflow on tape.budgets(tenant, workflow, run);
        drop index concurrently if exists tape.budgets_tenant;`,
      ],
    ]),
  ),
];
