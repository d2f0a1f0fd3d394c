import { suggest } from "../../base/suggest.ts";
import { TapeError } from "../../model/errors.ts";

/** The settings of a store URL besides the address of the database. */
export interface PostgresSettings {
  readonly connectionString: string;
  readonly schema: string;
  /** "transaction": behind a pooler that drops SET, LISTEN and named statements. */
  readonly pooler: "none" | "transaction";
  /** Where to LISTEN when the main URL goes through a pooler. */
  readonly listenUrl: string | undefined;
  readonly connections: number;
  /** Statement, lock and idle-in-transaction timeouts: no guarded transaction lasts longer. */
  readonly transactionBoundMs: number;
  /** The operator accepts that acknowledged writes may be lost. */
  readonly acceptLoss: boolean;
}

const known = ["schema", "pooler", "listen_url", "connections", "transaction_bound_ms", "accept_loss"] as const;
/** Our own keys are removed from the URL; these belong to the driver and stay. */
const driverKeys = [
  "sslmode",
  "ssl",
  "sslrootcert",
  "sslcert",
  "sslkey",
  "application_name",
  "host",
  "port",
  "user",
  "password",
  "dbname",
];

export function parsePostgresUrl(text: string): PostgresSettings {
  let url: URL;
  try {
    url = new URL(text.replace(/^alloydb:/, "postgres:").replace(/^postgresql:/, "postgres:"));
  } catch (error) {
    throw new TapeError("TAPE_BAD_STORE_URL", "not the URL of a PostgreSQL database", {}, error);
  }
  const settings = new Map<string, string>();
  for (const [key, value] of [...url.searchParams]) {
    if ((known as readonly string[]).includes(key)) {
      settings.set(key, value);
      url.searchParams.delete(key);
    } else if (!driverKeys.includes(key)) {
      const near = suggest(key, [...known, ...driverKeys]);
      throw new TapeError(
        "TAPE_BAD_STORE_URL",
        `unknown parameter ${key}${near === undefined ? "" : `; did you mean ${near}?`}`,
        {
          key,
        },
      );
    }
  }
  const pooler = settings.get("pooler") ?? "none";
  if (pooler !== "none" && pooler !== "transaction") {
    throw new TapeError("TAPE_BAD_STORE_URL", `pooler must be none or transaction, not ${pooler}`, { key: "pooler" });
  }
  const acceptLoss = settings.get("accept_loss") ?? "false";
  if (acceptLoss !== "true" && acceptLoss !== "false") {
    throw new TapeError("TAPE_BAD_STORE_URL", `accept_loss must be true or false, not ${acceptLoss}`, {
      key: "accept_loss",
    });
  }
  const schema = settings.get("schema") ?? "tape";
  if (!/^[a-z_][a-z0-9_]{0,40}$/.test(schema)) {
    throw new TapeError("TAPE_BAD_STORE_URL", "schema must be a plain lower-case name", { key: "schema" });
  }
  return {
    connectionString: url.href,
    schema,
    pooler,
    listenUrl: settings.get("listen_url"),
    connections: whole("connections", settings.get("connections") ?? "8", 2),
    transactionBoundMs: whole("transaction_bound_ms", settings.get("transaction_bound_ms") ?? "5000", 50),
    acceptLoss: acceptLoss === "true",
  };
}

function whole(key: string, text: string, min: number): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= min) return value;
  throw new TapeError("TAPE_BAD_STORE_URL", `${key} must be a whole number of at least ${min}`, { key });
}
