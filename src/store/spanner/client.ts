import { loadPeer } from "../../model/peer.ts";

/** What the store uses of `@google-cloud/spanner`, an optional peer dependency of 90 MB. */
export interface SpannerTransaction {
  run(query: SpannerQuery): Promise<[rows: SpannerRow[], stats?: { readonly rowCountExact?: unknown }]>;
  insert(table: string, rows: object[]): void;
  commit(): Promise<unknown>;
  rollback(): Promise<unknown>;
  /** Releases the session. */
  end(): void;
  /** Undefined until the first statement has started the transaction. */
  readonly id?: unknown;
}

export type SpannerSnapshot = Pick<SpannerTransaction, "run" | "end">;

export interface SpannerQuery {
  readonly sql: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly types: Readonly<Record<string, unknown>>;
}

/** The columns of a row. INT64 is an object with the number as text. */
export type SpannerRow = readonly { readonly name: string; readonly value: unknown }[];

export interface SpannerDatabase {
  getTransaction(): Promise<[SpannerTransaction]>;
  getSnapshot(): Promise<[SpannerSnapshot]>;
  run(query: SpannerQuery): Promise<[rows: SpannerRow[]]>;
  runStream(query: SpannerQuery): AsyncIterable<SpannerRow>;
  updateSchema(statements: readonly string[]): Promise<[{ promise(): Promise<unknown> }]>;
  getSchema(): Promise<[string[]]>;
  close(): Promise<unknown>;
}

interface SpannerModule {
  readonly Spanner: new (options: {
    readonly projectId: string;
  }) => {
    instance(name: string): { database(name: string, pool: object): SpannerDatabase };
    close(): void;
  };
}

/** Written to a column, it becomes the timestamp of the commit. */
export const commitTimestamp = "spanner.commit_timestamp()";

/** An open client, and how to close it. */
export interface OpenClient {
  readonly database: SpannerDatabase;
  close(): Promise<void>;
}

/** Loaded when a store is opened, so that other stores do not pay for it. */
export async function openClient(
  { project, instance, database: name }: { project: string; instance: string; database: string },
  sessions: number,
): Promise<OpenClient> {
  if (process.env.SPANNER_EMULATOR_HOST !== undefined) prepareForEmulator(process.env);
  const peer = "@google-cloud/spanner";
  const { Spanner } = await loadPeer<SpannerModule>(peer, "a store on Spanner", [`${peer}@9`]);
  const client = new Spanner({ projectId: project });
  const database = client.instance(instance).database(name, { min: 0, max: sessions, acquireTimeout: 10_000 });
  return {
    database,
    async close() {
      await database.close();
      client.close();
    },
  };
}

/** The emulator has no multiplexed sessions, and no metadata server answers beside it. */
function prepareForEmulator(env: NodeJS.ProcessEnv): void {
  const multiplexed = "GOOGLE_CLOUD_SPANNER_MULTIPLEXED_SESSIONS";
  for (const name of [multiplexed, `${multiplexed}_FOR_RW`, `${multiplexed}_PARTITIONED_OPS`]) env[name] ??= "false";
  env.METADATA_SERVER_DETECTION ??= "none";
}
