import { type Database, Spanner } from "@google-cloud/spanner";
import { startEmulator } from "./emulator.ts";

const project = "tape-test";
const instance = "test";

/** A client of the emulator for what the store does not do: instances, databases, and emptying tables. */
export interface Admin {
  /** The URL of a new, empty database. */
  create(name?: string): Promise<string>;
  /** Deletes the rows of all tables, apart from those of a new store. */
  empty(url: string): Promise<void>;
  query(url: string, sql: string): Promise<Record<string, unknown>[]>;
  schema(url: string): Promise<string[]>;
  close(): Promise<void>;
}

let databases = 0;
/** All but those that keep their rows. */
let tables: string[] | undefined;

async function tablesOf(database: Database): Promise<string[]> {
  const sql =
    "select table_name as name from information_schema.tables where table_schema = '' and table_type = 'BASE TABLE'";
  const [rows] = await database.run({ sql, json: true });
  return (rows as { name: string }[]).map(({ name }) => name).filter((name) => !["meta", "migrations"].includes(name));
}

/** The rows of the store's own journal, whose number is 1. */
const journal = "4611686018427387904";
const times = { ttl_ms: "0", expires_at: "0", acquired_at: "0", renewed_at: "0", progress_at: "0" };
const newStore = {
  leases: { journal, kind: "store", tenant: "", run: journal, token: "0", ...times },
  records: {
    ...{ journal, seq: "1", token: "0", at: "0", kind: "store.restored" },
    body: Buffer.from('{"v":1,"epoch":0,"reason":"created","ended":0}'),
    committed: "spanner.commit_timestamp()",
  },
};

/** Starts an emulator, for this process and those that it starts. */
export async function startAdmin(): Promise<Admin> {
  const emulator = await startEmulator();
  process.env.SPANNER_EMULATOR_HOST = emulator.host;
  for (const suffix of ["", "_FOR_RW", "_PARTITIONED_OPS"])
    process.env[`GOOGLE_CLOUD_SPANNER_MULTIPLEXED_SESSIONS${suffix}`] = "false";
  process.env.METADATA_SERVER_DETECTION = "none";
  const client = new Spanner({ projectId: project });
  const home = client.instance(instance);
  const [exists] = await home.exists();
  if (!exists) {
    const [, operation] = await client.createInstance(instance, {
      config: "emulator-config",
      nodes: 1,
      displayName: "test",
    });
    await operation.promise();
  }
  const databaseOf = (url: string) => home.database(url.split("?")[0]!.split("/").at(-1)!);
  return {
    async create(name = `t${process.pid}-${++databases}`) {
      const [, operation] = await home.createDatabase(name);
      await operation.promise();
      return `spanner://${project}/${instance}/${name}`;
    },
    async empty(url) {
      const database = databaseOf(url);
      tables ??= await tablesOf(database);
      const deletes = tables.map((table) => ({ delete: { table, keySet: { all: true } } }));
      await database.runTransactionAsync(async (transaction) => {
        transaction.setQueuedMutations(deletes as Parameters<typeof transaction.setQueuedMutations>[0]);
        for (const [table, row] of Object.entries(newStore)) transaction.insert(table, [row]);
        transaction.update("meta", [{ one: true, epoch: "0", token_floor: "0" }]);
        await transaction.commit();
      });
    },
    async query(url, sql) {
      const [rows] = await databaseOf(url).run({ sql, json: true, jsonOptions: { wrapNumbers: true } });
      return rows as Record<string, unknown>[];
    },
    async schema(url) {
      return (await databaseOf(url).getSchema())[0];
    },
    async close() {
      client.close();
      await emulator.stop();
    },
  };
}
