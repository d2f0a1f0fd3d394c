import { TapeError } from "../../model/errors.ts";
import { sqlFiles } from "../sql/files.ts";
import {
  type AppliedMigration,
  appliedOf,
  loadMigrations,
  type Migration,
  newestOf,
  pendingMigrations,
  type Step,
} from "../sql/migrations.ts";
import { qualify } from "../sql/statements.ts";
import { isForbidden } from "./errors.ts";
import { Progress } from "./migrating/progress.ts";
import { type MigrationClient, Session, type SessionOptions } from "./migrating/session.ts";

export const migrations = loadMigrations(sqlFiles(new URL("migrations/", import.meta.url)));

export interface MigrateOptions extends SessionOptions {
  /** A seam for tests. Default: the migrations of this version. */
  readonly migrations?: readonly Migration[];
}

/** A batch locks its rows for some milliseconds; their heartbeats wait no longer than that. */
const batchRows = 1_000;
/** Interval of the checks whether another process has finished migrating. */
const pollMs = 250;

/**
 * Brings the schema up to date and returns its version. One process migrates, under an advisory lock, and the others
 * wait for it; processes of the previous version keep working. A crash leaves each file applied or untouched; an online
 * file may be left with some of its statements executed, which can be repeated.
 */
export async function migrate(options: MigrateOptions): Promise<number> {
  const { connections, migrations: known = migrations } = options;
  const readApplied = (client: MigrationClient): Promise<AppliedMigration[] | undefined> =>
    appliedBefore(client, options);
  const pool = await connections.connect();
  try {
    if (isDone(known, await readApplied(pool))) return newestOf(known);
  } finally {
    pool.release();
  }
  const session = await Session.open(options);
  const progress = new Progress(options);
  try {
    if (session.direct && !(await becomeMigrator(session, options, progress))) return newestOf(known);
    await progress
      .during(() => work(session, options, progress))
      .catch((error: unknown) => {
        throw isForbidden(error) ? ownersWork(error, connections.settings.schema) : error;
      });
  } finally {
    await session.close();
  }
  return newestOf(known);
}

function ownersWork(error: unknown, schema: string): TapeError {
  const message = `the schema ${schema} has to be migrated, and this role may not: ${(error as Error).message}`;
  return new TapeError("TAPE_STORE_FORBIDDEN", message, { schema }, error);
}

const isDone = (known: readonly Migration[], applied: AppliedMigration[] | undefined): boolean =>
  applied !== undefined && pendingMigrations(known, applied).length === 0;

/**
 * Waits until this connection is the one that migrates; false: another process has finished the migration meanwhile.
 */
async function becomeMigrator(session: Session, options: MigrateOptions, progress: Progress): Promise<boolean> {
  const { connections, clock, migrations: known = migrations } = options;
  for (;;) {
    const [lock] = await session.ask("lock", { schema: connections.settings.schema });
    if (lock?.mine === true) return true;
    await progress.report("another process migrates");
    await clock.sleep(pollMs);
    if (isDone(known, await appliedBefore(session.client, options))) return false;
  }
}

async function work(session: Session, options: MigrateOptions, progress: Progress): Promise<void> {
  const { log, migrations: known = migrations } = options;
  const before = await appliedBefore(session.client, options);
  if (before === undefined) return create(session, options);
  for (const migration of pendingMigrations(known, before)) {
    log("info", "store.migrating", { migration: migration.name, online: migration.online });
    progress.begin(migration);
    if (migration.online) await online(session, migration, options, progress);
    else await inTransaction(session, migration, options);
    log("info", "store.migrated", { migration: migration.name });
  }
}

/** A new schema is created in one transaction: no other process uses it yet, and it exists completely or not at all. */
function create(session: Session, options: MigrateOptions): Promise<void> {
  const { connections, migrations: known = migrations } = options;
  const { schema } = connections.settings;
  return session.transaction(
    "a new schema",
    async () => {
      if (isDone(known, await appliedBefore(session.client, options))) return;
      await session.client.query(`create schema if not exists "${schema}"`);
      await connections.query(session.client, "migrations.create", {});
      for (const migration of pendingMigrations(known, (await appliedBefore(session.client, options)) ?? [])) {
        for (const { text, batch } of migration.steps) {
          if (batch === undefined) await session.client.query(qualify(text.replace(" concurrently", ""), schema));
        }
        await record(session.client, migration, options);
      }
    },
    { patient: true },
  );
}

function inTransaction(session: Session, migration: Migration, options: MigrateOptions): Promise<void> {
  const { schema } = options.connections.settings;
  return session.transaction(migration.name, async () => {
    const applied = (await appliedBefore(session.client, options)) ?? [];
    if (applied.some(({ number }) => number === migration.number)) return; // by another process, behind a pooler
    for (const { text } of migration.steps) await session.client.query(qualify(text, schema));
    await record(session.client, migration, options);
  });
}

async function online(
  session: Session,
  migration: Migration,
  options: MigrateOptions,
  progress: Progress,
): Promise<void> {
  if (!session.direct) {
    const message = `${migration.name} changes large tables and cannot go through a pooler: run durable-tape migrate with the server's own address, or add listen_url`;
    throw new TapeError("TAPE_BAD_STORE_URL", message, { key: "listen_url", migration: migration.name });
  }
  const { schema } = options.connections.settings;
  for (const step of migration.steps) {
    const text = qualify(step.text, schema);
    if (step.batch !== undefined) await inBatches(session, migration, { ...step, text }, schema, progress);
    else if (text.startsWith("create") && text.includes(" concurrently "))
      await buildIndex(session, migration, text, schema);
    else await session.statement(migration.name, text, text.includes(" concurrently ") ? "nothing" : "table");
  }
  await session.retry(migration.name, () => record(session.client, migration, options));
}

/**
 * Already built: nothing to do. Half built, because its builder was killed or met a deadlock: dropped and built again.
 */
function buildIndex(session: Session, migration: Migration, text: string, schema: string): Promise<void> {
  const name = /concurrently (\w+) on /.exec(text)![1]!;
  const index = `"${schema}".${name}`;
  return session.retry(migration.name, async () => {
    const [found] = await session.ask("index", { index });
    if (found?.valid === true) return;
    // It blocks neither reads nor writes of the table, so it may wait without a limit.
    await session.client.query("set lock_timeout = 0");
    if (found !== undefined) await session.client.query(`drop index concurrently ${index}`);
    await session.client.query(text);
  });
}

async function inBatches(
  session: Session,
  migration: Migration,
  step: Step,
  schema: string,
  progress: Progress,
): Promise<void> {
  const { table, key } = step.batch!;
  const replacements = { batched_table: qualify(table, schema), batched_key: key };
  for (let after = -(2n ** 63n), rows = 0; ; ) {
    const [row] = await session.ask("edge", { after, size: batchRows }, replacements);
    if (typeof row?.edge !== "string") return;
    const range = step.text.replaceAll(/:after\b/g, `${after}`).replaceAll(/:until\b/g, row.edge);
    rows += await session.statement(migration.name, range, "rows");
    progress.changed(table, rows);
    after = BigInt(row.edge);
  }
}

async function record(client: MigrationClient, migration: Migration, { connections }: MigrateOptions): Promise<void> {
  const { number, name, checksum } = migration;
  await connections.query(client, "migrations.add", { number, name, checksum });
}

/** undefined: the schema does not exist yet. */
async function appliedBefore(
  client: MigrationClient,
  { connections }: MigrateOptions,
): Promise<AppliedMigration[] | undefined> {
  const { rows } = await client.query("select to_regclass($1) as found", [
    `"${connections.settings.schema}".migrations`,
  ]);
  if ((rows[0] as { found: string | null }).found === null) return undefined;
  return appliedOf((await connections.query(client, "migrations.list", {})).rows);
}
