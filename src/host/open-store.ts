import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { suggest } from "../base/suggest.ts";
import { openRemote } from "../client/open.ts";
import type { RemoteOptions } from "../client/remote.ts";
import { environmentToken } from "../client/token.ts";
import { TapeError } from "../model/errors.ts";
import type { Limits } from "../model/limits.ts";
import type { Store } from "../store/contract/store.ts";
import type { PlannedStep } from "../store/sql/migration-plan.ts";
import { inMemory } from "../store/sqlite/database.ts";
import { openSqlite, type SqliteOptions } from "../store/sqlite/open.ts";
import { parseShardList } from "./shard-list.ts";

/** How a store is opened: limits, clock, randomness and log. */
export interface OpenStoreOptions {
  /** Bounds to raise or lower. Default: `defaultLimits`. */
  readonly limits?: Partial<Limits>;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Log;
  /** For SQLite: opens the database. Tests replace it. */
  readonly open?: NonNullable<SqliteOptions["open"]>;
  /** For SQLite: this file is a copy and independent from now on; its epoch is raised next. Default false. */
  readonly restored?: boolean;
  /** For a store behind a server: how to reach it. Default of the token: TAPE_TOKEN. */
  readonly remote?: Pick<RemoteOptions, "token" | "tls" | "allowPlain" | "retryForMs">;
}

/**
 * Opens a store by its URL. No other place knows which stores exist.
 *
 * - `memory:` for tests: SQLite in memory, one store per handle, lost when the handle is closed
 * - `sqlite:./tape.db` one file, several processes; `?processes=single` locks it for one, `?durability=relaxed`
 * - `http://127.0.0.1:7878`, `https://…` a store behind a server; several replicas with commas between them
 * - `shards:eu=postgres://…;us=postgres://…` several PostgreSQL databases, each with its tenants
 * - `postgres://user@host/db` many replicas; `alloydb://` likewise; `?schema=…&connections=…&pooler=transaction&…`
 * - `spanner://project/instance/database` many replicas; needs the package `@google-cloud/spanner`
 *
 * @example
 * const store = await openStore("sqlite:./tape.db");
 */
export async function openStore(url: string, options: OpenStoreOptions = {}): Promise<Store> {
  const scheme = /^([a-z]+):/.exec(typeof url === "string" ? url : "")?.[1];
  switch (scheme) {
    case "memory":
      return openSqlite({ ...options, file: inMemory });
    case "sqlite":
      return openSqlite({ ...options, ...parseSqliteUrl(url) });
    case "postgres":
    case "postgresql":
    case "alloydb": {
      // Loaded on demand: with its driver it is the largest part of the package, and users of SQLite do not need it.
      const { openPostgres } = await import("../store/postgres/open.ts");
      return openPostgres({ ...options, url });
    }
    case "shards": {
      const { openShards } = await import("../store/postgres/shards/open.ts");
      return openShards({ ...options, shards: parseShardList(url) });
    }
    case "http":
    case "https": {
      const { limits: _, open: _open, remote, ...seams } = options; // the server sets the limits
      return openRemote(url, { ...seams, token: remote?.token ?? environmentToken(url, process.env), ...remote });
    }
    case "spanner": {
      // Loaded on demand, and so is its client, which is not part of the package.
      const { openSpanner } = await import("../store/spanner/open.ts");
      return openSpanner({ ...options, url });
    }
    case "bigtable":
      throw new TapeError("TAPE_STORE_PLANNED", `a store for ${scheme}: is planned, not there yet`, { scheme });
    default: {
      const near =
        scheme === undefined
          ? undefined
          : suggest(scheme, ["memory", "sqlite", "postgres", "alloydb", "spanner", "https"]);
      const hint = near === undefined ? "" : `; did you mean ${near}:?`;
      throw new TapeError("TAPE_BAD_STORE_URL", `no store has the scheme ${scheme ?? "(none)"}${hint}`, { scheme });
    }
  }
}

const sqliteChoices = { processes: ["many", "single"], durability: ["full", "relaxed"] } as const;

export function parseSqliteUrl(url: string): Pick<SqliteOptions, "file" | "processes" | "durability"> {
  const [path = "", query = ""] = url.slice("sqlite:".length).split("?", 2);
  const file = path.replace(/^\/\/(?=\/)/, "");
  if (file.startsWith("//")) {
    const name = file.slice(2);
    const message = `sqlite://${name} would name a host: write sqlite:./${name} for a file here, sqlite:///${name} for one in the root`;
    throw new TapeError("TAPE_BAD_STORE_URL", message, { key: "path" });
  }
  if (file === "") throw new TapeError("TAPE_BAD_STORE_URL", "sqlite: needs a path, for example sqlite:./tape.db");
  const chosen: Record<string, string> = {};
  for (const [key, value] of new URLSearchParams(query)) {
    const choices: readonly string[] | undefined = Object.hasOwn(sqliteChoices, key)
      ? sqliteChoices[key as keyof typeof sqliteChoices]
      : undefined;
    if (choices === undefined) {
      const near = suggest(key, Object.keys(sqliteChoices));
      throw new TapeError(
        "TAPE_BAD_STORE_URL",
        `unknown parameter ${key}${near === undefined ? "" : `; did you mean ${near}?`}`,
        {
          key,
        },
      );
    }
    if (!choices.includes(value)) {
      throw new TapeError("TAPE_BAD_STORE_URL", `${key} is ${choices.join(" or ")}, not ${value}`, { key });
    }
    chosen[key] = value;
  }
  return { file, ...chosen };
}

/** Whether only the process that opens this URL can see the store. */
export const isMemoryUrl = (url: string): boolean => /^(memory:|sqlite::memory:(\?|$))/.test(url);

const isPostgresUrl = (url: string): boolean => /^(postgres|postgresql|alloydb):/.test(url);

/** The migrations that opening the store with this version would run, and what they would block. Changes nothing. */
export async function planMigration(url: string): Promise<PlannedStep[]> {
  if (url.startsWith("sqlite:")) return (await import("../store/sqlite/plan.ts")).planSqlite(parseSqliteUrl(url).file);
  if (isPostgresUrl(url)) {
    return (await import("../store/postgres/migrating/plan.ts")).planPostgres(url);
  }
  const why = url.startsWith("spanner:") ? ": Spanner changes a schema while its tables are in use" : "";
  throw new TapeError("TAPE_BAD_STORE_URL", `only a SQLite file or a PostgreSQL database can be migrated${why}`);
}

/** The grants that a PostgreSQL role needs to run Tape, once the schema's owner has migrated it. */
export async function grantsOf(url: string, role: string): Promise<string[]> {
  if (!isPostgresUrl(url))
    throw new TapeError("TAPE_BAD_STORE_URL", "only a PostgreSQL database has roles to grant to");
  const [{ grantsFor }, { parsePostgresUrl }] = await Promise.all([
    import("../store/postgres/grants.ts"),
    import("../store/postgres/url.ts"),
  ]);
  return grantsFor(parsePostgresUrl(url).schema, role);
}

/** Makes the database of a new name in a list of shards one of them. */
export async function addShardOf(url: string, name: string): Promise<{ readonly number: number }> {
  const { addShard } = await import("../store/postgres/shards/add.ts");
  return addShard({ shards: parseShardList(url) }, name);
}

/** Closes the store if the app that it was opened for cannot be created. */
export async function closedUnless<T>(store: Store, make: () => T): Promise<T> {
  try {
    return make();
  } catch (error) {
    await store.close();
    throw error;
  }
}
