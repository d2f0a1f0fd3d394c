import { Spanner } from "@google-cloud/spanner";
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
      await database.runTransactionAsync(async (transaction) => {
        const [rows] = await transaction.run({
          sql: "select table_name from information_schema.tables where table_schema = '' and table_type = 'BASE TABLE' and table_name not in ('meta', 'migrations', 'leases', 'records')",
          json: true,
        });
        const one = "4611686018427387904"; // the store's own journal
        const deletes = [
          ...(rows as { table_name: string }[]).map((row) => `delete from ${row.table_name} where true`),
          `delete from leases where journal <> ${one}`,
          `delete from records where journal <> ${one} or seq > 1`,
          "update meta set epoch = 0, token_floor = 0 where one",
        ];
        await transaction.batchUpdate(deletes.map((sql) => ({ sql })));
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
