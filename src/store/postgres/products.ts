import pg from "pg";
import { TapeError } from "../../model/errors.ts";
import type { PostgresSettings } from "./url.ts";

/** Databases that speak PostgreSQL's protocol, by the text of version(), and what a store would miss there. */
const products = [
  {
    name: "CockroachDB",
    pattern: /\bCockroachDB\b/i,
    lacks:
      "the fence needs a key-share lock that conflicts with a takeover, and the feed needs transaction ids in the order of their start",
  },
  {
    name: "YugabyteDB",
    pattern: /-YB-|\bYugabyte/i,
    lacks: "the feed needs transaction ids that one server issues in the order of their start",
  },
];

/** Throws if this server is another database: there a store would work most of the time, and lose a fence or a record. */
export function assertProduct(version: string): void {
  const found = products.find(({ pattern }) => pattern.test(version));
  if (found === undefined) return;
  const { name, lacks } = found;
  const message = `the server is ${name} (${version.slice(0, 60)}): ${lacks}`;
  throw new TapeError("TAPE_STORE_UNSUPPORTED", message, { product: name, version: version.slice(0, 200) });
}

/**
 * Another database may already reject our startup parameters. So if the server has answered with an error, it is asked
 * over a connection without them.
 */
export async function foreignProduct(error: unknown, settings: PostgresSettings): Promise<TapeError | undefined> {
  if (error instanceof TapeError || (error as { severity?: unknown }).severity === undefined) return undefined;
  const { connectionString, transactionBoundMs } = settings;
  const client = new pg.Client({
    connectionString,
    connectionTimeoutMillis: transactionBoundMs,
    query_timeout: transactionBoundMs,
  });
  client.on("error", () => {});
  try {
    await client.connect();
    const { rows } = await client.query("select version() as version");
    assertProduct(String((rows[0] as { version: unknown }).version));
  } catch (fault) {
    if (fault instanceof TapeError) return fault;
  } finally {
    void client.end().catch(() => {});
  }
  return undefined;
}
