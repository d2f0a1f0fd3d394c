import { describe, expect, it } from "vitest";
import { readFiles, repositoryPaths, type SourceFile } from "./files.ts";
import { onlineMigrations, sqlHeaders, sqlInCode, sqlMacros, sqlParity, sqlStars } from "./rules/sql.ts";

/** Statements that only one of the SQL stores has, each with its reason. */
const onlyInOne: Record<string, string> = {
  "leases.reboot": "SQLite counts lease time by the machine's monotonic clock, which restarts with each boot",
  "meta.boot": "the same",
  "migrations.size": "PostgreSQL can report the sizes of its tables",
  "meta.file": "only a file can be copied beside itself",
  "meta.anchor": "sleeps count by that clock, too",
  "shard.assign": "only PostgreSQL databases are shards of a set",
  "shard.identity": "the same",
  "shard.locate": "the same",
  "shard.moving": "the same",
  "shard.moves": "the same",
  "shard.residence": "the same",
  "shard.roster": "the same",
  "shard.settle": "the same",
  "shard.tenants": "the same",
  append_many: "PostgreSQL writes many journals in one statement; SQLite runs a prepared insert many times",
  append_one: "the same, for one that is alone in its batch",
  create_many: "the same",
  "create_many.check": "the same",
  "create_many.counted": "the same",
  "create_many.labelled": "the same",
  park_many: "the same",
  end_sleep_many: "the same",
  end_many: "the same",
  "end_many.children": "the same, for runs whose parent gets a note",
  spawn_many: "the same, for runs that start children",
  "create_many.queued": "the same, for runs of queues",
  "park_many.queued": "the same",
  "end_many.queued": "the same",
  "claim_many.pin": "PostgreSQL claims many runs in one statement, and pins those of one build in another",
  "admit.pick": "PostgreSQL admits many runs of a queue in two statements",
  "admit.take": "the same",
  "append_many.check": "the response to such a statement can be lost",
  stream_many: "PostgreSQL writes the chunks of many runs in one statement",
  "stream_many.check": "the response to such a statement can be lost",
  renew_many: "PostgreSQL renews many leases in one statement",
  "renew_many.lost": "the same",
  fire_many: "PostgreSQL fires many timers in one statement",
  "fire_many.check": "the response to such a statement can be lost",
  claim_many: "PostgreSQL takes many leases in one statement",
  "leases.read": "the same",
  "journal.heads": "the same",
  "records.append": "the same",
  "queue.open": "a transaction costs PostgreSQL several round trips",
  "journals.short": "PostgreSQL reads many journals in one statement",
  "fence.release": "PostgreSQL needs a stronger row lock to end a term; SQLite locks the file",
  "feed.blocker": "only where transactions overlap can one delay the feed",
  "witness.settle": "only there can a lost response belong to a transaction that is still open",
  "transaction.enter": "SQLite compares files, and node:sqlite shows whether a connection is in a transaction",
  "transaction.mark": "the same",
  "transaction.server": "the same",
  "store.standbys": "only a server has standbys",
  "store.protection": "only there can an administrator change an index or a table, or a role lack a right",
  "meta.promoted": "only a server can be promoted",
};

/** Statements that the other two share and Spanner lacks, or that only Spanner has among all three, with the reason. */
const ofSpanner: Record<string, string> = {
  "erase.old_labels": "no statement changes a part of a key: new rows replace the old ones",
  "labels.adopt": "labels are listed with their run since the first version of this store",
  "labels.listed": "the same",
  "meta.create": "a schema change cannot insert rows",
  "migrations.create": "the first migration creates the table",
  "slot.reach": "GoogleSQL has no recursion: one statement finds the next runs",
  time: "a record is a mutation, which cannot ask for the time",
  "witness.settle": "a lost response can belong to a transaction that is still open, as on PostgreSQL",
};

const sources = readFiles(repositoryPaths().filter((path) => /^(src|testkit|simulation)\/.*\.(ts|sql)$/.test(path)));
const statement = (text: string): SourceFile => ({
  path: "src/store/sqlite/sql/a.sql",
  text: `-- name: a\n${text};\n`,
});
const code = (path: string, text: string): SourceFile => ({ path, text });

describe("each statement says how it relates to the fence", () => {
  it("there are statements to judge", () => {
    expect(sources.some(({ path }) => /^src\/store\/[^/]+\/sql\/.*\.sql$/.test(path))).toBe(true);
  });

  it("holds", () => expect(sqlHeaders(sources)).toEqual([]));

  it("refuses text before the first name, and a file that is too long", () => {
    const file = (text: string): SourceFile => ({ path: "src/store/sqlite/sql/a.sql", text });
    expect(sqlHeaders([file("-- read\nselect 1;\n")])).toHaveLength(1);
    expect(sqlHeaders([file(`-- name: a\n-- read\nselect 1${"\n".repeat(400)};\n`)])).toHaveLength(1);
  });

  it.each([
    "insert into a values (1)",
    "-- fenced\nupdate a set b = 1",
    "-- fenced\n-- writes: b\nupdate a set b = 1",
    "-- read\n-- writes: b\nselect 1",
    "-- read\nselect 1; select 2",
    "-- read\nselect 1;\n-- name: a\n-- read\nselect 2",
    "-- what it does\nselect 1",
    "-- fenced\n-- read\nselect 1",
    "-- unfenced\ninsert into a values (1)",
    "-- unfenced:\ninsert into a values (1)",
    "-- fenced, mostly\nupdate a set b = 1",
    "-- read\nupdate a set b = 1",
    "-- read\nwith x as (delete from a returning b) select b from x",
    "-- read\n-- more words\nINSERT INTO a values (1)",
    "select 1\n-- read",
  ])("refuses %j", (text) => expect(sqlHeaders([statement(text)])).toHaveLength(1));

  it.each([
    "-- fenced\n-- writes: a\nupdate a set b = 1",
    "-- Puts the row.\n-- unfenced: it has no owner yet\n-- writes: a\ninsert into a values (1)",
    "-- read\n-- update is a word here\nselect 'delete' as verb from a",
    "-- read\nselect b from a for no key update",
    "-- read\nselect updated_at from a",
  ])("allows %j", (text) => expect(sqlHeaders([statement(text)])).toEqual([]));
});

describe("statements name their columns", () => {
  it("holds", () => expect(sqlStars(sources)).toEqual([]));

  it.each([
    "-- read\nselect * from tape.runs",
    "-- read\nselect a.*, b.c from a cross join b",
    "-- read\nselect x.c from (select * from a limit 1) x",
    "-- read\nselect * from (select r.* from runs r) x",
    "-- read\nselect distinct * from a",
    "-- fenced\ndelete from a returning *",
    "-- fenced\nupdate a set b = 1\nreturning a.*",
    "-- read\nwith w as (select b from a) select w.* from w",
  ])("refuses %j", (text) => expect(sqlStars([statement(text)])).toHaveLength(1));

  it.each([
    "-- read\nselect count(*) from a",
    "-- read\nselect b * 2 as twice from a",
    "-- read\n-- select * from a\nselect b from a where c <> 'select * from d'",
    "-- read\nselect * from (select b from a limit 1) x",
    "-- fenced\nwith f as (select i.*, l.b from unnest(:x::bigint[]) as i(a) cross join l) select a from f",
  ])("allows %j", (text) => expect(sqlStars([statement(text)])).toEqual([]));
});

describe("what statements share stands once", () => {
  it("holds", () => expect(sqlMacros(sources)).toEqual([]));

  const macro = "-- macro: tape.next()\n-- The next number.\n(select m.last + 1 from tape.meta m);\n\n";
  const file = (text: string): SourceFile => ({ path: "src/store/postgres/sql/a.sql", text: macro + text });

  it.each([
    "-- name: a\n-- read\nselect 1;\n",
    "-- name: a\n-- read\nselect tape.next(), (select m.last + 1\n  from tape.meta m);\n",
    "-- name: a\n-- read\nselect tape.next(), m.last + 1 as next from tape.meta m;\n",
  ])("refuses %j", (text) => expect(sqlMacros([file(text)])).toHaveLength(1));

  it("allows a statement that says its name", () => {
    expect(sqlMacros([file("-- name: a\n-- read\nselect tape.next();\n")])).toEqual([]);
  });
});

describe("the SQL stores have the same statements", () => {
  it("holds", () => expect(sqlParity(sources, onlyInOne, ofSpanner)).toEqual([]));

  it("refuses a statement that Spanner lacks, or has alone, without a reason", () => {
    const files = ["sqlite/sql/a.sql", "postgres/sql/a.sql", "spanner/sql/b.sql"];
    const found = files.map((path) => ({ path: `src/store/${path}`, text: `-- name: ${path.slice(-5, -4)}\n` }));
    expect(sqlParity(found, {})).toHaveLength(2);
    expect(sqlParity(found, {}, { a: "why", b: "why" })).toEqual([]);
    expect(sqlParity(found, {}, { a: "why", b: "why", c: "why" })).toHaveLength(1);
  });

  it("refuses a statement of one store without a reason, and a reason without one", () => {
    const files = ["sqlite/sql/a.sql", "sqlite/sql/b.sql", "postgres/sql/a.sql", "postgres/sql/c.sql"];
    const lonely = files.map((path) => ({ path: `src/store/${path}`, text: `-- name: ${path.slice(-5, -4)}\n` }));
    expect(sqlParity(lonely, {})).toHaveLength(2);
    expect(sqlParity(lonely, { b: "why", c: "why" })).toEqual([]);
    expect(sqlParity(lonely, { a: "why", b: "why", c: "why" })).toHaveLength(1);
  });
});

describe("migrations run beside working processes", () => {
  const migration = (text: string): SourceFile => ({
    path: "src/store/postgres/migrations/0002_a.sql",
    text,
  });

  it("holds", () => expect(onlineMigrations(sources)).toEqual([]));

  it.each([
    "create index a on tape.runs(id);",
    "create table tape.new(a bigint);\ncreate unique index a on tape.runs(id);",
    "update tape.runs set id = '';",
    "delete from tape.runs;",
    "alter table tape.runs alter column id type varchar;",
    "alter table tape.runs add column a bigint not null default random();",
    "create table tape.new(a bigint);\ncreate index concurrently a on tape.runs(id);",
  ])("refuses %j", (text) => expect(onlineMigrations([migration(text)])).toHaveLength(1));

  it.each([
    "create table tape.new(a bigint);\ncreate index b on tape.new(a);",
    "alter table tape.runs add column a bigint not null default 0;",
    "create or replace function tape.a() returns bigint language sql return 1;",
    "-- online\ncreate index concurrently a on tape.runs(id);",
    "update tape.meta set epoch = 1;",
  ])("allows %j", (text) => expect(onlineMigrations([migration(text)])).toEqual([]));
});

describe("no SQL in strings", () => {
  it("holds", () => expect(sqlInCode(sources)).toEqual([]));

  it.each([
    ["src/engine/a.ts", "const q = 'insert into a values (1)';"],
    ["src/engine/a.ts", "const q = `update $" + "{table} set b = 1`;"],
    ["src/engine/a.ts", "const q = 'delete from a';"],
    ["src/store/sqlite/a.ts", "const q = `\n  select b\n  from a`;"],
    ["src/engine/a.ts", "db.exec('begin immediate');"],
    ["src/engine/a.ts", "db.exec('pragma synchronous');"],
  ])("refuses in %s %s", (path, text) => expect(sqlInCode([code(path, text)])).toHaveLength(1));

  it.each([
    ["src/store/sqlite/a.ts", "db.exec('begin immediate'); db.exec('pragma synchronous = full');"],
    ["src/store/postgres/a.ts", "db.query('listen tape'); db.query('set local lock_timeout = 1');"],
    ["src/engine/a.ts", "throw new Error('cannot update the run');"],
    ["src/engine/a.ts", "// select a from b"],
  ])("allows in %s %s", (path, text) => expect(sqlInCode([code(path, text)])).toEqual([]));
});
